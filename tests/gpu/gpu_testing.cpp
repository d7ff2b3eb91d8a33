#include "gpu/gpu_testing.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "stax/error.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/file.h"
#include "support/process.h"
#include "support/python.h"

namespace stax {
namespace {

/// Why tests cannot run; empty where they can. Decided before the first use of a device.
const std::string problem = [] {
  if (std::filesystem::exists("/dev/nvidiactl") || std::getenv("STAX_CUDA_DRIVER") != nullptr)
    return std::string();
  try {
    const std::string python = find_python();
    const ProcessResult result = run_process({python, "-c", "import triton, numpy"}, {});
    if (!result.ok()) return python + " has no Triton";
    setenv("FAKE_CUDA_PYTHON", python.c_str(), 1);
  } catch (const RuntimeError& error) {
    return std::string(error.what());
  }
  setenv("STAX_PYTHON", FAKE_CUDA_COMPILER, 1);
  setenv("STAX_TUNING", "none", 0);  // the interpreter takes long for each launch
  setenv("FAKE_CUDA_GRID", "8", 0);  // so that larger grids need no large tensors
  // Without records of earlier runs: kernels are measured.
  static const TemporaryFolder cache(temporary_root(), "stax-gpu-tests-");
  setenv("STAX_CACHE_DIR", cache.path().c_str(), 1);
  fake_cuda::use();
  return std::string();
}();

}  // namespace

bool on_real_gpu() {
  return problem.empty() && std::getenv("STAX_CUDA_DRIVER") == nullptr;
}

int64_t transfers(const std::function<void()>& f) {
  if (on_real_gpu()) return f(), 0;
  const size_t before = fake_cuda::calls().size();
  f();
  const std::vector<std::string> calls = fake_cuda::calls();
  return std::count_if(calls.begin() + static_cast<std::ptrdiff_t>(before), calls.end(),
                       [](const std::string& call) { return call.find("toH") + 1 || call.find("HtoD") + 1; });
}

void GpuTest::SetUp() {
  if (!problem.empty()) GTEST_SKIP() << problem;
  if (!cuda::is_available()) GTEST_SKIP() << cuda::unavailable_reason();
}

}  // namespace stax
