#include "device/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "support/check.h"
#include "support/symbols.h"

namespace stax::device {
namespace {

struct Opened {
  CudaDriver driver;
  std::string problem;
};

std::string words_of(const CudaDriver& driver, CudaResult result) {
  const char* text = nullptr;
  if (driver.cuGetErrorString != nullptr) driver.cuGetErrorString(result, &text);
  return fmt::format("{} (error {})", text != nullptr ? text : "an error without a description", result);
}

std::string open_library(CudaDriver& driver) {
  const char* named = std::getenv("STAX_CUDA_DRIVER");
  const std::string path = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fmt::format(
        "no CUDA: the driver's library {} cannot be opened ({}); install NVIDIA's driver, or use the CPU",
        path, dlerror());
  }
  Symbols symbols(library);
#define STAX_CUDA_FIND(name, parameters) \
  driver.name = reinterpret_cast<CudaResult(*) parameters>(symbols.find(#name));
  STAX_CUDA_FUNCTIONS(STAX_CUDA_FIND)
#undef STAX_CUDA_FIND
  if (!symbols.missing().empty())
    return fmt::format("no CUDA: {} lacks {}; install a driver of CUDA 12 or later", path, symbols.missing());
  if (const CudaResult result = driver.cuInit(0); result != kCudaSuccess) {
    return fmt::format("no CUDA: cuInit of {} fails: {}; see whether nvidia-smi finds a device", path,
                       words_of(driver, result));
  }
  return {};
}

const Opened& opened() {
  static const Opened one = [] {
    Opened o;
    o.problem = open_library(o.driver);
    return o;
  }();
  return one;
}

}  // namespace

const CudaDriver& cuda_driver() {
  const Opened& o = opened();
  if (!o.problem.empty()) [[unlikely]]
    throw_runtime_error(o.problem);
  return o.driver;
}

const std::string& cuda_problem() {
  return opened().problem;
}

void check_cuda(CudaResult result, const char* call) {
  if (result == kCudaSuccess) [[likely]]
    return;
  throw CudaError(fmt::format("{} fails: {}", call, words_of(opened().driver, result)));
}

}  // namespace stax::device
