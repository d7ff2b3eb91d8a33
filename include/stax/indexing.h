// Indices as NumPy writes them: x.index({Slice(1, None), 0, Ellipsis}).
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "stax/tensor.h"

namespace stax {

/// A new dimension of size 1, or an absent bound of a slice.
inline constexpr std::nullopt_t None = std::nullopt;

struct EllipsisType {};
/// All dimensions that the other indices leave.
inline constexpr EllipsisType Ellipsis{};

/// start:stop:step; absent bounds reach to the ends, negative ones count from the end. The step is positive.
class Slice {
 public:
  Slice(std::optional<SymInt> start = {}, std::optional<SymInt> stop = {}, std::optional<SymInt> step = {})
      : start_(start), stop_(stop), step_(step) {}
  const std::optional<SymInt>& start() const { return start_; }
  const std::optional<SymInt>& stop() const { return stop_; }
  const std::optional<SymInt>& step() const { return step_; }

 private:
  std::optional<SymInt> start_, stop_, step_;
};

/// One entry of an index: a number, a bool, a slice, None, Ellipsis, or a tensor (of integers: positions; of
/// bool: a mask).
class TensorIndex {
 public:
  enum class Kind : uint8_t { none, ellipsis, integer, boolean, slice, tensor };
  TensorIndex(std::nullopt_t) : kind_(Kind::none) {}    // NOLINT: indices are written plainly
  TensorIndex(EllipsisType) : kind_(Kind::ellipsis) {}  // NOLINT
  STAX_API TensorIndex(const char* dots);               // NOLINT: "..." and nothing else
  template <std::same_as<bool> T>
  TensorIndex(T value) : kind_(Kind::boolean), integer_(value ? 1 : 0) {}  // NOLINT
  template <std::integral T>
  requires(!std::same_as<T, bool>) TensorIndex(T value) : kind_(Kind::integer), integer_(value) {}  // NOLINT
  TensorIndex(const SymInt& value) : kind_(Kind::integer), integer_(value) {}                       // NOLINT
  TensorIndex(Slice slice) : kind_(Kind::slice), slice_(std::move(slice)) {}                        // NOLINT
  TensorIndex(Tensor tensor) : kind_(Kind::tensor), tensor_(std::move(tensor)) {}                   // NOLINT

  Kind kind() const { return kind_; }
  const SymInt& integer() const { return integer_; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  SymInt integer_;
  Slice slice_;
  Tensor tensor_;
};

namespace indexing {
using stax::Ellipsis;
using stax::None;
using stax::Slice;
using stax::TensorIndex;
}  // namespace indexing

}  // namespace stax
