#include "device/target.h"

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "device/cuda_device.h"
#include "support/check.h"

namespace stax {
namespace {

/// Multiprocessors of the first device of each architecture that served as data centre GPU: A100, H100, B200.
struct Architecture {
  std::string_view name;
  int32_t processors, threads_each;
};
constexpr Architecture kArchitectures[] = {
    {"cuda:sm_80", 108, 2048}, {"cuda:sm_90", 132, 2048}, {"cuda:sm_100", 148, 2048}};

}  // namespace

Target cuda_target_named(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Architecture& a : kArchitectures) {
    known.push_back(a.name);
    if (a.name == name)
      return {.kind = Target::Kind::cuda,
              .processors = a.processors,
              .threads_each = a.threads_each,
              .narrow_indices = true};
  }
  STAX_CHECK(false, "there is no generator for the target '{}'; there are: cpu, {}", name,
             fmt::join(known, ", "));
}

Target cuda_target_of(int32_t device) {
  const device::CudaProperties& p = device::cuda_properties(device);
  return {.kind = Target::Kind::cuda,
          .processors = p.processors,
          .threads_each = p.threads_each,
          .cache_bytes = p.cache_bytes,
          .narrow_indices = true};
}

std::string cuda_target_name(int32_t device) {
  return fmt::format("cuda:sm_{}", device::cuda_properties(device).capability);
}

}  // namespace stax
