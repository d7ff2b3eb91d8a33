#include "device/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "support/check.h"

namespace stax::device {

namespace {

bool supports(std::string_view name) {
  if (name == "generic") return true;
#if defined(__x86_64__)
  if (name == "x86-64") return true;
  __builtin_cpu_init();
  // These also ask the operating system whether it saves the wide registers.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
                  __builtin_cpu_supports("movbe");
  if (name == "x86-64-v3") return v3;
  return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

const std::vector<CpuTarget>& targets() {
  static const std::vector<CpuTarget> all = {{"x86-64-v4", {"-march=x86-64-v4"}, 64},
                                             {"x86-64-v3", {"-march=x86-64-v3"}, 32},
                                             {"x86-64", {"-march=x86-64"}, 16},
                                             {"generic", {}, 16}};
  return all;
}

}  // namespace

const CpuTarget& cpu_target() {
  static const CpuTarget& best = []() -> const CpuTarget& {
    for (const CpuTarget& target : targets())
      if (supports(target.name)) return target;
    return targets().back();
  }();
  return best;
}

CpuTarget cpu_target_named(std::string_view name) {
  for (const CpuTarget& target : targets())
    if (target.name == name) return target;
  throw_user_error(
      fmt::format("there is no CPU target {}; choose x86-64-v4, x86-64-v3, x86-64 or generic", name));
}

int64_t last_level_cache_bytes() {
  for (int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = sysconf(name); bytes > 0) return bytes;
  return int64_t{8} << 20;
}

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace stax::device
