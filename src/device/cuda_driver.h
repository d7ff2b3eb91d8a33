// NVIDIA's driver library, opened at run time: building Stax needs no CUDA.
//
// STAX_CUDA_DRIVER names another library than libcuda.so.1; tests put one in its place that works on host
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "stax/error.h"

namespace stax::device {

// The driver's types. Handles are opaque, addresses of device memory are numbers.
using CudaResult = int32_t;
using CudaDeviceId = int32_t;
using CudaAddress = uint64_t;
using CudaContext = struct CudaContextStruct*;
using CudaStreamHandle = struct CudaStreamStruct*;
using CudaEventHandle = struct CudaEventStruct*;
using CudaModule = struct CudaModuleStruct*;
using CudaFunction = struct CudaFunctionStruct*;

/// The functions that Stax calls, by the names that the library exports, with their parameters.
#define STAX_CUDA_FUNCTIONS(X)                                                                              \
  X(cuInit, (uint32_t flags))                                                                               \
  X(cuDriverGetVersion, (int32_t * version))                                                                \
  X(cuGetErrorString, (CudaResult error, const char** text))                                                \
  X(cuDeviceGetCount, (int32_t * count))                                                                    \
  X(cuDeviceGet, (CudaDeviceId * device, int32_t ordinal))                                                  \
  X(cuDeviceGetName, (char* name, int32_t length, CudaDeviceId device))                                     \
  X(cuDeviceGetAttribute, (int32_t * value, int32_t attribute, CudaDeviceId device))                        \
  X(cuDeviceTotalMem_v2, (size_t * bytes, CudaDeviceId device))                                             \
  X(cuDevicePrimaryCtxRetain, (CudaContext * context, CudaDeviceId device))                                 \
  X(cuCtxGetCurrent, (CudaContext * context))                                                               \
  X(cuCtxSetCurrent, (CudaContext context))                                                                 \
  X(cuCtxSynchronize, ())                                                                                   \
  X(cuMemGetInfo_v2, (size_t * free, size_t * total))                                                       \
  X(cuMemAlloc_v2, (CudaAddress * address, size_t bytes))                                                   \
  X(cuMemFree_v2, (CudaAddress address))                                                                    \
  X(cuMemcpyHtoDAsync_v2, (CudaAddress to, const void* from, size_t bytes, CudaStreamHandle stream))        \
  X(cuMemcpyDtoHAsync_v2, (void* to, CudaAddress from, size_t bytes, CudaStreamHandle stream))              \
  X(cuMemcpyDtoDAsync_v2, (CudaAddress to, CudaAddress from, size_t bytes, CudaStreamHandle stream))        \
  X(cuMemcpyPeerAsync, (CudaAddress to, CudaContext to_context, CudaAddress from, CudaContext from_context, \
                        size_t bytes, CudaStreamHandle stream))                                             \
  X(cuMemsetD8Async, (CudaAddress to, uint8_t value, size_t bytes, CudaStreamHandle stream))                \
  X(cuMemsetD16Async, (CudaAddress to, uint16_t value, size_t count, CudaStreamHandle stream))              \
  X(cuMemsetD32Async, (CudaAddress to, uint32_t value, size_t count, CudaStreamHandle stream))              \
  X(cuStreamCreate, (CudaStreamHandle * stream, uint32_t flags))                                            \
  X(cuStreamSynchronize, (CudaStreamHandle stream))                                                         \
  X(cuStreamQuery, (CudaStreamHandle stream))                                                               \
  X(cuStreamWaitEvent, (CudaStreamHandle stream, CudaEventHandle event, uint32_t flags))                    \
  X(cuEventCreate, (CudaEventHandle * event, uint32_t flags))                                               \
  X(cuEventDestroy_v2, (CudaEventHandle event))                                                             \
  X(cuEventRecord, (CudaEventHandle event, CudaStreamHandle stream))                                        \
  X(cuEventQuery, (CudaEventHandle event))                                                                  \
  X(cuEventSynchronize, (CudaEventHandle event))                                                            \
  X(cuEventElapsedTime, (float* milliseconds, CudaEventHandle start, CudaEventHandle end))                  \
  X(cuModuleLoadData, (CudaModule * module, const void* image))                                             \
  X(cuModuleUnload, (CudaModule module))                                                                    \
  X(cuModuleGetFunction, (CudaFunction * function, CudaModule module, const char* name))                    \
  X(cuFuncSetAttribute, (CudaFunction function, int32_t attribute, int32_t value))                          \
  X(cuLaunchKernel, (CudaFunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,              \
                     uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,           \
                     CudaStreamHandle stream, void** arguments, void** extra))

/// One pointer for each function of the table.
struct CudaDriver {
#define STAX_CUDA_MEMBER(name, parameters) CudaResult(*name) parameters = nullptr;
  STAX_CUDA_FUNCTIONS(STAX_CUDA_MEMBER)
#undef STAX_CUDA_MEMBER
};

// Results that Stax treats by themselves.
inline constexpr CudaResult kCudaSuccess = 0, kCudaOutOfMemory = 2, kCudaDeinitialized = 4,
                            kCudaNoDevice = 100, kCudaNotReady = 600;

// Attributes of devices and functions, and flags.
inline constexpr int32_t kCudaGridX = 5, kCudaMultiprocessors = 16, kCudaThreadsEach = 39, kCudaL2Bytes = 38,
                         kCudaCapabilityMajor = 75, kCudaCapabilityMinor = 76, kCudaSharedOptIn = 97,
                         kCudaFunctionSharedBytes = 8;
inline constexpr uint32_t kCudaStreamNonBlocking = 1, kCudaEventDisableTiming = 2;

/// The driver, opened and initialised at the first call. RuntimeError saying what is missing: the library, a
/// function of it, a device, or what its initialisation says.
const CudaDriver& cuda_driver();
/// Why cuda_driver() throws; empty where it does not.
const std::string& cuda_problem();

/// The driver, or the device, cannot do what it was asked to.
class CudaError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

/// CudaError with the call's name and the driver's words unless `result` is success.
void check_cuda(CudaResult result, const char* call);

}  // namespace stax::device

/// Calls a function of the driver; RuntimeError where it fails.
#define STAX_CUDA(function, ...) \
  ::stax::device::check_cuda(::stax::device::cuda_driver().function(__VA_ARGS__), #function)
