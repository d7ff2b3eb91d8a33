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
  /// The same for `bytes` of host memory.
  void* place(const void* data, int64_t bytes);
  /// Copies the memory behind `storage` back, which the program has written.
  void write_back(const StoragePtr& storage) const;

 private:
  struct Copy {
    StoragePtr original, here;  // original: null for plain host memory
  };
  Device device_;
  std::vector<Copy> copies_;
};

}  // namespace stax::compiler
