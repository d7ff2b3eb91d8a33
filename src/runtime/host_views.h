// Views of device memory, as CPU functions need them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tensor/argument.h"
#include "tensor/tensor_view.h"

namespace stax::runtime {

/// Copies in host memory of the tensors of a call, which lie on a GPU.
class HostViews {
 public:
  /// Waits for the work of the device's current stream.
  HostViews(std::span<const Argument<TensorView>> arguments, std::span<const TensorView> results,
            int32_t device);

  std::span<const Argument<TensorView>> arguments() const { return arguments_; }
  std::span<const TensorView> results() const { return results_; }
  /// Copies the results to where they belong.
  void upload() const;

 private:
  struct Block {
    std::byte* there;
    std::unique_ptr<std::byte[]> here;
    int64_t bytes;
  };
  /// The view over a copy of the memory that it reaches.
  TensorView copied(const TensorView& view, bool result);

  int32_t device_;
  std::vector<Argument<TensorView>> arguments_;
  std::vector<TensorView> results_;
  std::vector<Block> written_, read_;
};

}  // namespace stax::runtime
