// Tensors taken to another device with the memory that they look at, so that views stay views of each other.
#pragma once

#include <map>
#include <vector>

#include "stax/tensor.h"
#include "tensor/storage.h"

namespace stax {

/// Tensors over copies of their memory on a device, with their strides and offsets; those that share memory
/// share the copy. Tensors that lie there already are taken as they are.
class MovedTensors {
 public:
  /// After all work on the devices that they lie on.
  MovedTensors(const std::vector<Tensor>& tensors, Device device);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Copies what was written since to the memory that the tensors came from.
  void copy_back() const;
  /// Tensors over a copy as tensors over the memory that it was made from; others over copies there.
  std::vector<Tensor> returned(const std::vector<Tensor>& results) const;

 private:
  struct Copy {
    StoragePtr from, to;
  };
  std::vector<Tensor> tensors_;
  std::map<const Storage*, Copy> copies_;  // by where they were made from
};

}  // namespace stax
