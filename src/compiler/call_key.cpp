#include "compiler/call_key.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "compiler/eager_program.h"
#include "support/hash_mix.h"

namespace stax::compiler {
namespace {

enum Tag : uint64_t {
  kNone,
  kTensor,
  kZeroDim,
  kVector,
  kTensors,
  kNumber,
  kIntegers,
  kFloats,
  kDType,
  kString,
  kRunTimeNumber,
  kGeneral,
  kRanked,
  kSized
};

void add_tensor(CallKey& key, const Tensor& tensor, Layout layout) {
  const TensorImpl& impl = *tensor.impl();
  const auto dtype = static_cast<uint64_t>(impl.dtype());
  const uint64_t where =
      (static_cast<uint64_t>(impl.device().type) << 8 | static_cast<uint8_t>(impl.device().index)) << 32;
  if (layout == Layout::flat) {
    key.add((impl.dim() == 0 ? kZeroDim : kVector) | dtype << 8);
    return;
  }
  key.add(kTensor | dtype << 8 | static_cast<uint64_t>(impl.dim()) << 16 | where);
  if (layout == Layout::ranked) return;
  for (const SymInt& size : impl.sizes()) key.add(static_cast<uint64_t>(size.value()));
  for (const SymInt& stride : impl.strides()) key.add(static_cast<uint64_t>(stride.value()));
}

struct AddArgument {
  CallKey& key;
  Layout layout;

  void operator()(NoneType) const { key.add(kNone); }
  void operator()(const Tensor& tensor) const { add_tensor(key, tensor, layout); }
  void operator()(const Argument<Tensor>::Tensors& list) const {
    key.add(kTensors | list.size() << 8);
    for (const auto& tensor : list) {
      if (tensor) {
        add_tensor(key, *tensor, layout);
      } else {
        key.add(kNone);
      }
    }
  }
  void operator()(const Number& number) const {
    key.add(kNumber | static_cast<uint64_t>(number.kind) << 8);
    key.add(number.is_float() ? std::bit_cast<uint64_t>(number.floating)
                              : std::bit_cast<uint64_t>(number.integer.node()));
  }
  void operator()(const std::vector<Expr>& list) const {
    key.add(kIntegers | list.size() << 8);
    for (const Expr e : list) key.add(std::bit_cast<uint64_t>(e.node()));
  }
  void operator()(const std::vector<double>& list) const {
    key.add(kFloats | list.size() << 8);
    for (const double v : list) key.add(std::bit_cast<uint64_t>(v));
  }
  void operator()(DType dtype) const { key.add(kDType | static_cast<uint64_t>(dtype) << 8); }
  void operator()(const std::string& text) const { key.add_text(text); }
};

}  // namespace

void CallKey::add_text(std::string_view text) {
  add(kString | text.size() << 8);
  for (size_t i = 0; i < text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
    add(word);
  }
}

uint64_t CallKey::hash() const {
  uint64_t hash = 0x243f6a8885a308d3u;
  for (size_t i = 0; i < count_; ++i) hash = mix(hash, words_[i]);
  for (const uint64_t word : more_) hash = mix(hash, word);
  return hash;
}

bool CallKey::equals(const std::vector<uint64_t>& words) const {
  return words.size() == count_ + more_.size() && std::equal(words_, words_ + count_, words.begin()) &&
         std::equal(more_.begin(), more_.end(), words.begin() + static_cast<int64_t>(count_));
}

std::vector<uint64_t> CallKey::words() const {
  std::vector<uint64_t> result(words_, words_ + count_);
  result.insert(result.end(), more_.begin(), more_.end());
  return result;
}

Layout layout_of(const graph::Op& op, const capture::Arguments& arguments, const StridedImpl** shape) {
  *shape = nullptr;
  if (op.op_class != graph::OpClass::pointwise) return Layout::exact;
  const TensorImpl* first = nullptr;
  bool flat = true;
  for (const auto& argument : arguments) {
    if (!argument.is_tensor()) continue;
    const TensorImpl* impl = argument.tensor().impl();
    if (impl->dim() == 0) continue;
    if (first == nullptr) {
      first = impl;
    } else {
      const auto same = [](SizeList a, SizeList b) {
        return a.size() == b.size() &&
               std::equal(a.begin(), a.end(), b.begin(),
                          [](const SymInt& x, const SymInt& y) { return x.value() == y.value(); });
      };
      flat = flat && same(first->sizes(), impl->sizes()) && same(first->strides(), impl->strides());
    }
  }
  if (first == nullptr || !flat) return Layout::exact;
  const auto* tensor = static_cast<const StridedImpl*>(first);
  if (!tensor->is_contiguous()) return Layout::exact;
  *shape = tensor;
  return Layout::flat;
}

CallKey make_key(const graph::Op& op, const capture::Arguments& arguments, Layout layout) {
  CallKey key;
  key.add(std::bit_cast<uint64_t>(&op));
  key.add(static_cast<uint64_t>(layout));
  for (const auto& argument : arguments) std::visit(AddArgument{key, layout}, argument.value);
  return key;
}

namespace {

CallKey key_without_numbers(const graph::Op& op, const capture::Arguments& arguments, Layout layout,
                            uint64_t tag) {
  CallKey key;
  key.add(std::bit_cast<uint64_t>(&op));
  key.add(tag);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (const auto dtype = run_time_number(op, arguments, i)) {
      key.add(kRunTimeNumber | static_cast<uint64_t>(*dtype) << 8);
    } else {
      std::visit(AddArgument{key, layout}, arguments[i].value);
    }
  }
  return key;
}

}  // namespace

CallKey make_ranked_key(const graph::Op& op, const capture::Arguments& arguments) {
  return key_without_numbers(op, arguments, Layout::ranked, kRanked);
}

CallKey make_sized_key(const graph::Op& op, const capture::Arguments& arguments, Device device) {
  const auto some = [](Expr e) { return is_run_time_integer(e) ? Expr(2) : e; };
  CallKey key;
  key.add(std::bit_cast<uint64_t>(&op));
  key.add(kSized | static_cast<uint64_t>(static_cast<uint8_t>(device.index)) << 8);
  for (Argument<Tensor> argument : arguments) {
    if (auto* list = std::get_if<std::vector<Expr>>(&argument.value))
      for (Expr& e : *list) e = some(e);
    if (argument.is_number() && argument.number().kind == Number::Kind::integer) {
      Number number = argument.number();
      number.integer = some(number.integer);
      argument = number;
    }
    std::visit(AddArgument{key, Layout::ranked}, argument.value);
  }
  return key;
}

CallKey make_general_key(const graph::Op& op, const capture::Arguments& arguments) {
  return key_without_numbers(op, arguments, Layout::flat, kGeneral);
}

}  // namespace stax::compiler
