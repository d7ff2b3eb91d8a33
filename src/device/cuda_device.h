// NVIDIA GPUs of this machine: their properties and contexts, the device and stream that a thread works with,
// and waiting for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/cuda_driver.h"

namespace stax::device {

struct CudaProperties {
  std::string name;
  int32_t capability = 0;       // 90 for sm_90
  int32_t processors = 0;       // multiprocessors
  int32_t threads_each = 0;     // that one multiprocessor holds
  int64_t cache_bytes = 0;      // L2
  int64_t shared_bytes = 0;     // of a block of threads, at most
  int64_t total_bytes = 0;      // of memory
  int64_t grid_blocks[3] = {};  // along x, y and z of a grid, at most
};

/// Devices of this machine; 0 without a driver (cuda_problem() says why).
int32_t cuda_device_count();
/// UserError where there is no such device, RuntimeError without a driver.
const CudaProperties& cuda_properties(int32_t device);
/// Makes the device's primary context the one of this thread; errors as cuda_properties().
void use_cuda_device(int32_t device);
CudaContext cuda_context(int32_t device);
/// Called before the first context of the process is made, which takes the driver long: starts what may start
/// meanwhile, and does not throw. src/compiler defines it.
void start_beside_first_cuda_context();

/// A queue of work on one device; a null handle is the device's default stream.
struct CudaStream {
  int32_t device = 0;
  CudaStreamHandle handle = nullptr;
  friend bool operator==(const CudaStream&, const CudaStream&) = default;
};

/// The device of this thread, 0 at first, and the stream of this thread on a device, its default one at
/// first.
int32_t current_cuda_device();
void set_current_cuda_device(int32_t device);
CudaStream current_cuda_stream(int32_t device);
void set_current_cuda_stream(const CudaStream& stream);
/// A further stream, from a pool of 32 for each device that are handed out in turn.
CudaStream pooled_cuda_stream(int32_t device);

/// Looked at whenever the host has waited for a device: what kernels found out meanwhile.
class DeferredCheck {
 public:
  virtual ~DeferredCheck() = default;
  /// Raises what kernels of that stream left, or of all streams where there is none; their work is done.
  virtual void check(const CudaStream* stream) = 0;
  /// Whether nothing will come any more: it is forgotten then.
  virtual bool finished() const = 0;
};
void add_deferred_check(int32_t device, std::shared_ptr<DeferredCheck> check);
/// After the work that `stream` had so far was waited for.
void raise_deferred(const CudaStream& stream);

/// Waits for all work of a stream or a device, then raises the errors of its kernels.
void synchronize(const CudaStream& stream);
void synchronize_cuda_device(int32_t device);

/// Copies between host and device memory in the order of the device's current stream. Copies to the host are
/// complete on return, and raise the errors of kernels; host memory that was copied from may be reused.
void copy_to_host(void* to, const void* from, int64_t bytes, int32_t device);
void copy_to_device(void* to, const void* from, int64_t bytes, int32_t device);
/// Writes `count` elements of `width` bytes, each like `element`, in the order of the device's current
/// stream. False where the driver has no call for it: 8 bytes whose halves differ.
bool fill_on_device(void* to, const void* element, int64_t width, int64_t count, int32_t device);
/// Within one device, or to another, in the order of the source's current stream; the other waits for it.
void copy_on_device(void* to, int32_t to_device, const void* from, int32_t from_device, int64_t bytes);

}  // namespace stax::device
