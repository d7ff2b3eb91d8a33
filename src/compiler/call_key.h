// What a cached eager program depends on, as a flat list of words.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "capture/dispatch.h"
#include "tensor/tensor_impl.h"

namespace stax::compiler {

/// A list of words with room for common calls on the stack.
class CallKey {
 public:
  void add(uint64_t word) {
    if (count_ < kInline) {
      words_[count_++] = word;
    } else {
      more_.push_back(word);
    }
  }
  void add_text(std::string_view text);
  uint64_t hash() const;
  bool equals(const std::vector<uint64_t>& words) const;
  std::vector<uint64_t> words() const;

 private:
  static constexpr size_t kInline = 48;
  uint64_t words_[kInline];
  size_t count_ = 0;
  std::vector<uint64_t> more_;
};

/// How the tensors of a call enter its key.
enum class Layout : uint8_t {
  exact,   // sizes and strides as they are
  ranked,  // any sizes: devices and ranks
  flat,    // all have one dense layout, or are zero-dim: one dimension of all elements
};

/// `flat` where a pointwise call may be seen as one over vectors. `shape` receives a tensor that has the
/// result's sizes and strides.
Layout layout_of(const graph::Op& op, const capture::Arguments& arguments, const StridedImpl** shape);

CallKey make_key(const graph::Op& op, const capture::Arguments& arguments, Layout layout);
/// The key of the programs that serve all sizes and all run-time numbers.
CallKey make_ranked_key(const graph::Op& op, const capture::Arguments& arguments);
/// The key of the programs for a call without tensors, with results on a device, that serve all integers
/// among its arguments but 0, 1 and negative ones.
CallKey make_sized_key(const graph::Op& op, const capture::Arguments& arguments, Device device);
/// Whether such a program has an integer as an input.
inline bool is_run_time_integer(Expr e) {
  return e.is_constant() && e.value() > 1;
}
/// The key of the program that serves all counts and all run-time numbers of a flat call.
CallKey make_general_key(const graph::Op& op, const capture::Arguments& arguments);

}  // namespace stax::compiler
