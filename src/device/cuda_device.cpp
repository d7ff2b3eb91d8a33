#include "device/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "support/check.h"

namespace stax::device {
namespace {

constexpr size_t kPool = 32;

struct Device {
  CudaDeviceId id = 0;
  CudaProperties properties;
  std::once_flag retained;
  CudaContext context = nullptr;
  std::mutex mutex;  // of what follows
  std::vector<CudaStreamHandle> pool;
  size_t next_in_pool = 0;
  std::vector<std::shared_ptr<DeferredCheck>> checks;
};

CudaProperties properties_of(CudaDeviceId id) {
  const auto attribute = [&](int32_t which) {
    int32_t value = 0;
    STAX_CUDA(cuDeviceGetAttribute, &value, which, id);
    return value;
  };
  CudaProperties p;
  char name[256] = {};
  STAX_CUDA(cuDeviceGetName, name, static_cast<int32_t>(sizeof name) - 1, id);
  p.name = name;
  p.capability = 10 * attribute(kCudaCapabilityMajor) + attribute(kCudaCapabilityMinor);
  p.processors = attribute(kCudaMultiprocessors);
  p.threads_each = attribute(kCudaThreadsEach);
  p.cache_bytes = attribute(kCudaL2Bytes);
  p.shared_bytes = attribute(kCudaSharedOptIn);
  for (int32_t d = 0; d < 3; ++d) p.grid_blocks[d] = attribute(kCudaGridX + d);
  size_t bytes = 0;
  STAX_CUDA(cuDeviceTotalMem_v2, &bytes, id);
  p.total_bytes = static_cast<int64_t>(bytes);
  return p;
}

/// Never destroyed: tensors in static objects may outlive it.
const std::vector<std::unique_ptr<Device>>& devices() {
  static const auto* const all = [] {
    auto list = std::make_unique<std::vector<std::unique_ptr<Device>>>();
    int32_t count = 0;
    STAX_CUDA(cuDeviceGetCount, &count);
    for (int32_t k = 0; k < count; ++k) {
      auto device = std::make_unique<Device>();
      STAX_CUDA(cuDeviceGet, &device->id, k);
      device->properties = properties_of(device->id);
      list->push_back(std::move(device));
    }
    return list.release();
  }();
  return *all;
}

Device& device_at(int32_t index) {
  const auto& all = devices();
  STAX_CHECK(index >= 0 && index < static_cast<int32_t>(all.size()),
             "there is no device cuda:{}; this machine has {} CUDA devices", index, all.size());
  return *all[static_cast<size_t>(index)];
}

/// What a thread works with.
struct ThreadState {
  int32_t device = 0;
  std::vector<CudaStreamHandle> streams;  // by device
};
thread_local ThreadState the_thread;

/// Of one stream, or of all where there is none.
void run_checks(Device& device, const CudaStream* stream) {
  std::vector<std::shared_ptr<DeferredCheck>> checks;
  {
    const std::lock_guard lock(device.mutex);
    std::erase_if(device.checks, [](const auto& check) { return check->finished(); });
    checks = device.checks;
  }
  for (const auto& check : checks) check->check(stream);
}

CudaAddress address(const void* pointer) {
  return reinterpret_cast<CudaAddress>(pointer);
}

}  // namespace

int32_t cuda_device_count() {
  return cuda_problem().empty() ? static_cast<int32_t>(devices().size()) : 0;
}

const CudaProperties& cuda_properties(int32_t device) {
  return device_at(device).properties;
}

CudaContext cuda_context(int32_t index) {
  Device& device = device_at(index);
  std::call_once(device.retained, [&] {
    static std::once_flag first;
    std::call_once(first, start_beside_first_cuda_context);
    STAX_CUDA(cuDevicePrimaryCtxRetain, &device.context, device.id);
  });
  return device.context;
}

void use_cuda_device(int32_t device) {
  const CudaContext context = cuda_context(device);
  CudaContext current = nullptr;
  STAX_CUDA(cuCtxGetCurrent, &current);
  if (current != context) STAX_CUDA(cuCtxSetCurrent, context);
}

int32_t current_cuda_device() {
  return the_thread.device;
}

void set_current_cuda_device(int32_t device) {
  device_at(device);
  the_thread.device = device;
}

CudaStream current_cuda_stream(int32_t device) {
  const auto at = static_cast<size_t>(device);
  return {device, at < the_thread.streams.size() ? the_thread.streams[at] : nullptr};
}

void set_current_cuda_stream(const CudaStream& stream) {
  device_at(stream.device);
  const auto at = static_cast<size_t>(stream.device);
  if (at >= the_thread.streams.size()) the_thread.streams.resize(at + 1, nullptr);
  the_thread.streams[at] = stream.handle;
}

CudaStream pooled_cuda_stream(int32_t index) {
  Device& device = device_at(index);
  use_cuda_device(index);
  const std::lock_guard lock(device.mutex);
  if (device.pool.size() < kPool) {
    CudaStreamHandle handle = nullptr;
    STAX_CUDA(cuStreamCreate, &handle, kCudaStreamNonBlocking);
    device.pool.push_back(handle);
    return {index, handle};
  }
  return {index, device.pool[device.next_in_pool++ % kPool]};
}

void add_deferred_check(int32_t index, std::shared_ptr<DeferredCheck> check) {
  Device& device = device_at(index);
  const std::lock_guard lock(device.mutex);
  std::erase_if(device.checks, [](const auto& known) { return known->finished(); });
  device.checks.push_back(std::move(check));
}

void raise_deferred(const CudaStream& stream) {
  run_checks(device_at(stream.device), &stream);
}

void synchronize(const CudaStream& stream) {
  use_cuda_device(stream.device);
  STAX_CUDA(cuStreamSynchronize, stream.handle);
  raise_deferred(stream);
}

void synchronize_cuda_device(int32_t device) {
  use_cuda_device(device);
  STAX_CUDA(cuCtxSynchronize);
  run_checks(device_at(device), nullptr);
}

void copy_to_host(void* to, const void* from, int64_t bytes, int32_t device) {
  if (bytes <= 0) return;
  use_cuda_device(device);
  const CudaStream stream = current_cuda_stream(device);
  STAX_CUDA(cuMemcpyDtoHAsync_v2, to, address(from), static_cast<size_t>(bytes), stream.handle);
  synchronize(stream);
}

void copy_to_device(void* to, const void* from, int64_t bytes, int32_t device) {
  if (bytes <= 0) return;
  use_cuda_device(device);
  // From pageable memory: the driver has copied it to a place of its own when it returns.
  STAX_CUDA(cuMemcpyHtoDAsync_v2, address(to), from, static_cast<size_t>(bytes),
            current_cuda_stream(device).handle);
}

bool fill_on_device(void* to, const void* element, int64_t width, int64_t count, int32_t device) {
  if (count <= 0) return true;
  uint32_t words[2] = {};
  std::memcpy(words, element, static_cast<size_t>(width));
  if (width == 8 && words[0] != words[1]) return false;
  use_cuda_device(device);
  const CudaStreamHandle stream = current_cuda_stream(device).handle;
  const auto elements = static_cast<size_t>(count);
  if (width == 1)
    STAX_CUDA(cuMemsetD8Async, address(to), static_cast<uint8_t>(words[0]), elements, stream);
  else if (width == 2)
    STAX_CUDA(cuMemsetD16Async, address(to), static_cast<uint16_t>(words[0]), elements, stream);
  else
    STAX_CUDA(cuMemsetD32Async, address(to), words[0], elements * static_cast<size_t>(width / 4), stream);
  return true;
}

void copy_on_device(void* to, int32_t to_device, const void* from, int32_t from_device, int64_t bytes) {
  if (bytes <= 0) return;
  use_cuda_device(from_device);
  const CudaStream stream = current_cuda_stream(from_device);
  if (to_device == from_device) {
    STAX_CUDA(cuMemcpyDtoDAsync_v2, address(to), address(from), static_cast<size_t>(bytes), stream.handle);
    return;
  }
  synchronize(current_cuda_stream(to_device));  // what used the target's memory before is done
  use_cuda_device(from_device);
  STAX_CUDA(cuMemcpyPeerAsync, address(to), cuda_context(to_device), address(from), cuda_context(from_device),
            static_cast<size_t>(bytes), stream.handle);
  synchronize(stream);
}

}  // namespace stax::device
