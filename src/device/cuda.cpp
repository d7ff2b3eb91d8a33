#include "stax/cuda.h"

#include "device/cuda_allocator.h"
#include "device/cuda_device.h"
#include "support/check.h"

namespace stax::cuda {
namespace {

int32_t index_of(int64_t device) {
  if (device < 0) return device::current_cuda_device();
  STAX_CHECK(device < device::cuda_device_count(),
             "there is no device cuda:{}; this machine has {} CUDA devices{}{}", device,
             device::cuda_device_count(), device::cuda_problem().empty() ? "" : ": ", device::cuda_problem());
  return static_cast<int32_t>(device);
}

Device device_of(int32_t index) {
  return {DeviceType::cuda, static_cast<int8_t>(index)};
}

device::CudaStream inner(const Stream& stream) {
  return {stream.device().index, static_cast<device::CudaStreamHandle>(stream.stream())};
}

}  // namespace

bool is_available() {
  return device::cuda_device_count() > 0;
}
int64_t device_count() {
  return device::cuda_device_count();
}
std::string unavailable_reason() {
  if (!device::cuda_problem().empty()) return device::cuda_problem();
  return device::cuda_device_count() > 0 ? "" : "the driver finds no device";
}

int64_t current_device() {
  return device::current_cuda_device();
}
void set_device(int64_t device) {
  device::set_current_cuda_device(index_of(device));
}
void synchronize(int64_t device) {
  device::synchronize_cuda_device(index_of(device));
}

bool Stream::query() const {
  device::use_cuda_device(device_.index);
  const device::CudaResult result = device::cuda_driver().cuStreamQuery(inner(*this).handle);
  if (result == device::kCudaNotReady) return false;
  device::check_cuda(result, "cuStreamQuery");
  return true;
}
void Stream::synchronize() const {
  device::synchronize(inner(*this));
}

Stream getDefaultCUDAStream(int64_t device) {
  return {device_of(index_of(device)), nullptr};
}
Stream getCurrentCUDAStream(int64_t device) {
  const int32_t index = index_of(device);
  return {device_of(index), device::current_cuda_stream(index).handle};
}
Stream getStreamFromPool(int64_t device) {
  const int32_t index = index_of(device);
  return {device_of(index), device::pooled_cuda_stream(index).handle};
}
void setCurrentCUDAStream(const Stream& stream) {
  device::set_current_cuda_stream(inner(stream));
}

struct Event::State {
  bool timing = false;
  int32_t device = 0;
  device::CudaStream stream;                 // that it was last recorded in
  device::CudaEventHandle handle = nullptr;  // made when it is first recorded

  ~State() {
    if (handle != nullptr) device::cuda_driver().cuEventDestroy_v2(handle);
  }
};

Event::Event(bool enable_timing) : state_(std::make_unique<State>()) {
  state_->timing = enable_timing;
}
Event::~Event() = default;
Event::Event(Event&& other) noexcept = default;
Event& Event::operator=(Event&& other) noexcept = default;

void Event::record(const Stream& stream) {
  const int32_t device = stream.device().index;
  device::use_cuda_device(device);
  if (state_->handle == nullptr) {
    STAX_CUDA(cuEventCreate, &state_->handle, state_->timing ? 0u : device::kCudaEventDisableTiming);
    state_->device = device;
  }
  STAX_CHECK(state_->device == device,
             "an event of cuda:{} is recorded in a stream of cuda:{}; use an event each", state_->device,
             device);
  STAX_CUDA(cuEventRecord, state_->handle, inner(stream).handle);
  state_->stream = inner(stream);
}
void Event::record() {
  record(getCurrentCUDAStream());
}
void Event::block(const Stream& stream) {
  if (state_->handle == nullptr) return;
  device::use_cuda_device(stream.device().index);
  STAX_CUDA(cuStreamWaitEvent, inner(stream).handle, state_->handle, 0);
}
bool Event::query() const {
  if (state_->handle == nullptr) return true;
  const device::CudaResult result = device::cuda_driver().cuEventQuery(state_->handle);
  if (result == device::kCudaNotReady) return false;
  device::check_cuda(result, "cuEventQuery");
  return true;
}
void Event::synchronize() const {
  if (state_->handle == nullptr) return;
  STAX_CUDA(cuEventSynchronize, state_->handle);
  device::raise_deferred(state_->stream);
}
float Event::elapsed_time(const Event& end) const {
  STAX_CHECK(
      state_->timing && end.state_->timing && state_->handle != nullptr && end.state_->handle != nullptr,
      "elapsed_time: expected two events that were made with timing and recorded");
  float milliseconds = 0;
  STAX_CUDA(cuEventElapsedTime, &milliseconds, state_->handle, end.state_->handle);
  return milliseconds;
}

DeviceGuard::DeviceGuard(Device device) : DeviceGuard(int64_t{device.index}) {
  STAX_CHECK(device.type == DeviceType::cuda, "DeviceGuard: expected a CUDA device, got {}", device.str());
}
DeviceGuard::DeviceGuard(int64_t device) : before_(current_device()) {
  set_device(device);
}
DeviceGuard::~DeviceGuard() {
  set_device(before_);
}

StreamGuard::StreamGuard(const Stream& stream)
    : device_before_(current_device()), before_(getCurrentCUDAStream(stream.device().index)) {
  set_device(stream.device().index);
  setCurrentCUDAStream(stream);
}
StreamGuard::~StreamGuard() {
  setCurrentCUDAStream(before_);
  set_device(device_before_);
}

int64_t memory_allocated(int64_t device) {
  return device::CudaAllocator::of(index_of(device)).stats().in_use_bytes;
}
int64_t memory_reserved(int64_t device) {
  return device::CudaAllocator::of(index_of(device)).stats().reserved_bytes;
}
void empty_cache() {
  for (int32_t k = 0; k < device::cuda_device_count(); ++k) device::CudaAllocator::of(k).empty_cache();
}

}  // namespace stax::cuda
