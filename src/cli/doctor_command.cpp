// stax doctor: what this machine can do, and how to get what is missing.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <functional>
#include <string>

#include "cli/commands.h"
#include "device/cpu_info.h"
#include "device/cuda_device.h"
#include "kernels/cublas_lt.h"
#include "kernels/onednn.h"
#include "runtime/host_compiler.h"
#include "runtime/triton_compiler.h"
#include "stax/cuda.h"
#include "support/check.h"
#include "support/file.h"
#include "support/plural.h"
#include "support/process.h"
#include "support/python.h"

namespace stax::cli {
namespace {

void line(std::string_view what, std::string_view text) {
  fmt::print("{:<14} {}\n", what, text);
}

/// What a program writes, or nothing where it cannot be run.
std::string output_of(const std::vector<std::string>& command) {
  try {
    const ProcessResult result = run_process(command, {.time_limit = std::chrono::seconds(30)});
    return result.ok() ? result.output : "";
  } catch (const RuntimeError&) {
    return "";
  }
}

std::string last_line(const std::vector<std::string>& command) {
  std::string text = output_of(command);
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
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
  if (!cache.problem().empty()) {
    line("cache", fmt::format("not used: {}", cache.problem()));
    line("", "kernels are compiled anew by each process; set STAX_CACHE_DIR to a folder that is yours alone");
    return;
  }
  const bool writable = cache.scratch() != nullptr;
  line("cache", fmt::format("{}: {}, {}{}", folder, counted(cache.list().size(), "entry", "entries"),
                            counted(cache.size(), "byte"), writable ? "" : "; it cannot be written to"));
}

/// A kernel that is compiled to see whether that works.
constexpr const char* kProbe = R"(import triton
import triton.language as tl
from stax_triton.runtime import triton_heuristics


@triton_heuristics.pointwise(size_hints={'x': 1024}, signature={'out_ptr0': '*fp32'}, grid='Grid1D')
@triton.jit
def doctor(out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    tl.store(out_ptr0 + xindex, xindex.to(tl.float32), xindex < xnumel)
)";

/// The assemblers among the files of Triton, with their versions.
void report_assemblers(const Json& triton) {
  for (const Json& file : triton.at("files").as_array()) {
    const std::string& path = file.at(size_t{0}).as_string();
    if (std::filesystem::path(path).filename().string().find("ptxas") == std::string::npos) continue;
    const std::string version = last_line({path, "--version"});
    line("ptxas", version.empty() ? path + " does not run" : fmt::format("{} ({})", path, version));
  }
}

/// What Triton's interpreter needs besides Triton.
void report_numpy() {
  const std::string version = last_line({find_python(), "-c", "import numpy; print(numpy.__version__)"});
  line("NumPy", !version.empty()
                    ? version
                    : "missing: only Triton's interpreter needs it (stax verify --mode interpret)");
}

/// Whether kernels for GPUs can be compiled: the whole way of one.
void report_triton() {
  try {
    const TemporaryFolder cache(temporary_root(), "stax-doctor-");  // nothing of the past counts
    runtime::TritonCompiler compiler({.workers = 1, .cache_folder = cache.path()});
    const Json triton = compiler.describe();
    line("Python", triton.at("python").as_string());
    line("Triton", triton.at("triton").as_string() + ", a version that works");
    report_assemblers(triton);
    report_numpy();
    const auto kernel = compiler.compile(
        {.source = kProbe, .kernel = "doctor", .capability = 90, .config = {.blocks = {{"XBLOCK", 1024}}}});
    line("", fmt::format("compiled a kernel for sm_90 in {:.0f} ms", kernel->seconds * 1e3));
  } catch (const Error& error) {
    line("Triton", fmt::format("not usable: {}", error.what()));
    line("", "only kernels for GPUs need Python and Triton");
  }
}

void report_gpu() {
  try {
    const int32_t count = device::cuda_device_count();
    if (count == 0) return line("GPU", fmt::format("none: {}", cuda::unavailable_reason()));
    int32_t version = 0;  // 1000 * major + 10 * minor
    STAX_CUDA(cuDriverGetVersion, &version);
    line("GPU driver", fmt::format("for CUDA {}.{}", version / 1000, version % 1000 / 10));
    for (int32_t k = 0; k < count; ++k) {
      const device::CudaProperties& p = device::cuda_properties(k);
      line("GPU",
           fmt::format("cuda:{}: {}, sm_{}, {}, {} GiB, L2 {} KiB", k, p.name, p.capability,
                       counted(p.processors, "multiprocessor"), p.total_bytes >> 30, p.cache_bytes >> 10));
    }
  } catch (const Error& error) {
    line("GPU", error.what());
  }
}

/// What does products of matrices on GPUs.
void report_products() {
  const kernels::CublasLtLibrary& library = kernels::cublas_lt_library();
  if (!library.problem.empty()) {
    line("cuBLASLt", library.problem);
    return line("", "products of matrices on GPUs run on the CPU without it");
  }
  line("cuBLASLt", fmt::format("{} ({})", kernels::cublas_lt_version_text(library.version), library.path));
}

}  // namespace

int doctor() {
  const auto target = device::cpu_target();
  line("CPU", fmt::format("{}: vectors of {} bytes, {}, last cache {} KiB", target.name, target.vector_bytes,
                          counted(device::available_processors(), "processor"),
                          device::last_level_cache_bytes() / 1024));
  const bool works = report_compiler();
  line("oneDNN", kernels::onednn::version());
  report_cache();
  report_triton();
  report_gpu();
  report_products();
  return works ? 0 : 1;
}

}  // namespace stax::cli
