// stax doctor: what this machine can do, and how to get what is missing.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <functional>
#include <string>

#include "cli/commands.h"
#include "device/cpu_info.h"
#include "runtime/host_compiler.h"
#include "support/check.h"
#include "support/file.h"
#include "support/process.h"

namespace stax::cli {
namespace {

void line(std::string_view what, std::string_view text) {
  fmt::print("{:<14} {}\n", what, text);
}

/// The first line that a program writes, or nothing where it cannot be run.
std::string first_line(const std::vector<std::string>& command) {
  try {
    const ProcessResult result = run_process(command, {.time_limit = std::chrono::seconds(30)});
    if (!result.ok()) return "";
    return result.output.substr(0, result.output.find('\n'));
  } catch (const RuntimeError&) {
    return "";
  }
}

/// Whether a function compiles, loads and runs: the whole way of a kernel.
bool report_compiler() {
  try {
    runtime::HostCompiler compiler;
    const auto& identity = compiler.identity();
    const std::string version = identity.version_text.substr(0, identity.version_text.find('\n'));
    const auto module = compiler.compile(
        "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 42; }\n", {});
    const auto answer = reinterpret_cast<int (*)()>(module->symbol("answer"));
    if (answer() != 42) throw_runtime_error("a compiled function returned a wrong number");
    line("host compiler", fmt::format("{} ({})", identity.path, version));
    return true;
  } catch (const Error& error) {
    line("host compiler", error.what());
    line("", "install one (apt-get install g++), or name one in STAX_CXX");
    return false;
  }
}

void report_cache() {
  const std::string folder = runtime::CodeCache::default_folder();
  if (folder.empty()) {
    line("cache", "none: set STAX_CACHE_DIR or HOME");
    return;
  }
  const runtime::CodeCache cache(folder);
  line("cache", cache.problem().empty() ? fmt::format("{}, {} bytes", folder, cache.size())
                                        : fmt::format("not used: {}", cache.problem()));
}

void report_python() {
  const auto python = find_program("python3");
  if (!python) {
    line("Python", "not found; only Triton kernels need it (apt-get install python3 python3-venv)");
    return;
  }
  line("Python", fmt::format("{} ({})", *python, first_line({*python, "--version"})));
  const std::string triton = first_line({*python, "-c", "import triton; print(triton.__version__)"});
  line("Triton", triton.empty() ? "not found; only kernels for GPUs need it (pip install triton)" : triton);
}

void report_gpu() {
  if (std::filesystem::exists("/proc/driver/nvidia/version")) {
    const auto program = find_program("nvidia-smi");
    const std::string name =
        program ? first_line({*program, "--query-gpu=name", "--format=csv,noheader"}) : "";
    line("GPU", name.empty() ? "a driver is loaded; its device could not be named" : name);
  } else {
    line("GPU", "no NVIDIA driver is loaded; programs run on the CPU");
  }
}

}  // namespace

int doctor() {
  const auto target = device::cpu_target();
  line("CPU", fmt::format("{}: vectors of {} bytes, {} processors, last cache {} KiB", target.name,
                          target.vector_bytes, device::available_processors(),
                          device::last_level_cache_bytes() / 1024));
  const bool works = report_compiler();
  report_cache();
  report_python();
  report_gpu();
  return works ? 0 : 1;
}

}  // namespace stax::cli
