// Specialisation keys: what an artifact asks of the arguments of a call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/small_array.h"
#include "stax/compile.h"
#include "tensor/tensor_impl.h"

namespace stax::compiler {

/// The tensor arguments of one call, and which of them share memory.
struct CallTensors {
  explicit CallTensors(const detail::Leaves& leaves);
  detail::ShortList<const StridedImpl*, 16> tensors;
  detail::ShortList<int32_t, 16> alias;  // the first argument over the same storage, or -1
  /// What guards read: sizes and strides of each tensor, one after another, then the integer arguments.
  SmallArray<int64_t, 128> numbers;

 private:
  void find_aliases();
};

struct TensorKey {
  DType dtype = DType::float32;
  Device device;
  Extents extents;
  bool sizes_matter = true;  // false: only how many there are
  int64_t offset = 0;
  bool offset_matters = false;
  int64_t storage_bytes = -1;  // of the memory behind it, where that matters
  int32_t alias = -1;          // the first argument over the same storage, or -1
  int32_t captured = -1;       // the captured tensor over the same storage (Key::captured), or -1
};

/// What the keys of one kind have in common of a tensor.
struct TensorKind {
  DType dtype = DType::float32;
  Device device;
  int32_t rank = 0;
  int32_t alias = -1;
  friend bool operator==(const TensorKind&, const TensorKind&) = default;
};

struct Key {
  std::vector<TensorKind> kinds;  // parallel to tensors
  std::vector<uint64_t> words;
  std::vector<TensorKey> tensors;
  std::vector<std::optional<Scalar>> numbers;  // values that matter
  std::vector<const Storage*> captured;        // storages of captured tensors, where sharing them matters

  /// The key that only this call and calls like it have: everything matters.
  static Key of(const detail::Leaves& leaves, const CallTensors& tensors);
  /// matches_kind() and matches_rest().
  bool matches(const detail::Leaves& leaves, const CallTensors& tensors) const;
  /// What most keys of one function have in common: constants, and how many tensors there are, with their
  /// dtypes, devices, ranks and which share memory. Guards and matches_rest() may be asked only where it
  /// holds.
  bool matches_kind(const detail::Leaves& leaves, const CallTensors& tensors) const;
  bool matches_rest(const detail::Leaves& leaves, const CallTensors& tensors) const;
  bool same_kind(const Key& other) const;
  /// Nothing but the kind matters.
  bool is_only_kind() const;
  bool same(const Key& other) const;
  /// Leaves sizes and strides of tensor `k` to guards.
  void forget_sizes(size_t k) { tensors[k].sizes_matter = tensors[k].offset_matters = false; }
  /// Asks that the arguments share the storages of captured tensors as they do in this call; where none does,
  /// only if `always`.
  void guard_captured(std::vector<const Storage*> storages, const CallTensors& call, bool always);
  /// "float32[64, 128], float32[128]".
  std::string str() const;
  /// What has to hold, one condition each.
  std::vector<std::string> conditions() const;
  /// The first condition that does not hold; empty where all do.
  std::string misfit(const detail::Leaves& leaves, const CallTensors& tensors) const;
};

}  // namespace stax::compiler
