// Functions behind external nodes: one an operator, found by the operator's name ("sort.stable", "mm", ...).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tensor/argument.h"
#include "tensor/tensor_view.h"

namespace stax::kernels {

/// Arguments come in the order of the operator's schema, defaults filled in, sizes as constants. Results are
/// allocated and have the dtypes, sizes and strides of the operator's meta rule; the function writes every
/// element.
using ExternalFunction = void (*)(std::span<const Argument<TensorView>> arguments,
                                  std::span<const TensorView> results);

/// The function of that name; an internal error when there is none.
ExternalFunction find_external(std::string_view name);

/// The same, whose results for one row of matrices, or for one image, do not depend on how many there are.
ExternalFunction find_batch_invariant_external(std::string_view name);

/// One call of a plan, made ready for constant arguments: weights are packed once, not each call.
class PreparedExternal {
 public:
  virtual ~PreparedExternal() = default;
  /// As the function itself, for arguments of the same metadata and the same constants. Thread-safe.
  virtual void run(std::span<const Argument<TensorView>> arguments,
                   std::span<const TensorView> results) const = 0;
};

/// Arguments that are constants have their data, which outlives the result; the data of the others and of
/// the results is null. Null where there is nothing to make ready.
using PrepareExternal = std::unique_ptr<const PreparedExternal> (*)(
    std::span<const Argument<TensorView>> arguments, std::span<const TensorView> results);

/// How calls of the function of that name are made ready, or null.
PrepareExternal find_prepare(std::string_view name);

}  // namespace stax::kernels
