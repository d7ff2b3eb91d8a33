// Specialisation keys: what an artifact asks of the arguments of a call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stax/compile.h"
#include "tensor/tensor_impl.h"

namespace stax::compiler {

/// The tensor arguments of one call, and which of them share memory.
struct CallTensors {
  explicit CallTensors(const detail::Leaves& leaves);
  detail::ShortList<const StridedImpl*, 12> tensors;
  detail::ShortList<int32_t, 12> alias;  // the first argument over the same storage, or -1
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

struct Key {
  std::vector<uint64_t> words;
  std::vector<TensorKey> tensors;
  std::vector<std::optional<Scalar>> numbers;  // values that matter
  std::vector<const Storage*> captured;        // storages of captured tensors, where sharing them matters

  /// The key that only this call and calls like it have: everything matters.
  static Key of(const detail::Leaves& leaves, const CallTensors& tensors);
  bool matches(const detail::Leaves& leaves, const CallTensors& tensors) const;
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
