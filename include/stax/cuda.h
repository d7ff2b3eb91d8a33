// GPUs of this machine: which there are, waiting for them, streams and events.
//
// Kernels and copies run in the order of a stream, while the program goes on; it waits where it reads values.
// Errors that only data show (an index out of range) are raised where it waits next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "stax/api.h"
#include "stax/device.h"

namespace stax::cuda {

/// Whether there is a GPU that can be used; unavailable_reason() says what is missing, empty where nothing
/// is.
STAX_API bool is_available();
STAX_API int64_t device_count();
STAX_API std::string unavailable_reason();

/// The device of this thread: where Tensor::cuda() moves to.
STAX_API int64_t current_device();
STAX_API void set_device(int64_t device);

/// Waits for all work of a device (-1: the current one), and raises the errors that its kernels found.
STAX_API void synchronize(int64_t device = -1);

/// A queue of work on one device. Copies mean the same queue.
class STAX_API Stream {
 public:
  Device device() const { return device_; }
  /// The driver's CUstream.
  void* stream() const { return handle_; }
  /// Whether all work is done.
  bool query() const;
  /// Waits for all work, and raises the errors that its kernels found.
  void synchronize() const;
  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  friend STAX_API Stream getDefaultCUDAStream(int64_t device);
  friend STAX_API Stream getCurrentCUDAStream(int64_t device);
  friend STAX_API Stream getStreamFromPool(int64_t device);
  Stream(Device device, void* handle) : device_(device), handle_(handle) {}
  Device device_;
  void* handle_;
};

/// The stream that a device has from the start; the one of this thread; another one, of 32 handed out in
/// turn. -1: of the current device.
STAX_API Stream getDefaultCUDAStream(int64_t device = -1);
STAX_API Stream getCurrentCUDAStream(int64_t device = -1);
STAX_API Stream getStreamFromPool(int64_t device = -1);
/// Makes `stream` the one of this thread on its device.
STAX_API void setCurrentCUDAStream(const Stream& stream);

/// A point in a stream.
class STAX_API Event {
 public:
  explicit Event(bool enable_timing = false);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  /// All work so far of the stream; of the current one.
  void record(const Stream& stream);
  void record();
  /// Later work of `stream` waits for it.
  void block(const Stream& stream);
  /// Whether that work is done; true where nothing was recorded.
  bool query() const;
  void synchronize() const;
  /// Milliseconds from this event to `end`; both made with timing, recorded and done.
  float elapsed_time(const Event& end) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The device of this thread, while the guard lives.
class STAX_API DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  explicit DeviceGuard(int64_t device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  int64_t before_;
};

/// The stream of this thread, and its device, while the guard lives.
class STAX_API StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;

 private:
  int64_t device_before_;
  Stream before_;
};

/// Bytes of tensors on a device, and bytes taken from the driver for them and for later ones.
STAX_API int64_t memory_allocated(int64_t device = -1);
STAX_API int64_t memory_reserved(int64_t device = -1);
/// Returns the memory that no tensor uses to the driver.
STAX_API void empty_cache();

}  // namespace stax::cuda
