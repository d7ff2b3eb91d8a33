// Inputs of a call that lie on another device than its program runs on.
#pragma once

#include <span>
#include <vector>

#include "tensor/storage.h"

namespace stax::compiler {

/// Copies of memory on the device of a program, for the length of one call. Inputs that share memory share
/// its copy.
class StagedInputs {
 public:
  explicit StagedInputs(Device device) : device_(device) {}

  /// What `data`, a place in `storage`, is on the program's device.
  void* place(const StoragePtr& storage, void* data);
  /// The same for a number in host memory, of 16 bytes at most. It is there after send(), which copies all of
  /// them together; `most` are placed. A program that runs on the CPU takes `data` itself.
  void* place_number(const void* data, int64_t bytes, size_t most);
  void send() const;
  /// Copies the memory behind `storage` back, which the program has written.
  void write_back(const StoragePtr& storage) const;

 private:
  struct Copy {
    StoragePtr original, here;  // original: null for plain host memory
  };
  static constexpr size_t kNumber = 16;  // bytes: places are multiples of it, as kernels like them
  Device device_;
  std::vector<Copy> copies_;
  std::vector<std::byte> numbers_;
  StoragePtr numbers_here_;
};

}  // namespace stax::compiler
