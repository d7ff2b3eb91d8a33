#include "compiler/key.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "support/hash_mix.h"
#include "support/plural.h"

namespace stax::compiler {
namespace {

bool same_extents(const Extents& a, const TensorImpl& b) {
  if (a.rank() != b.dim()) return false;
  const SizeList sizes = b.sizes(), strides = b.strides();
  for (int64_t d = 0; d < a.rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    if (static_cast<int64_t>(a.sizes()[d]) != static_cast<int64_t>(sizes[at])) return false;
    if (static_cast<int64_t>(a.strides()[d]) != static_cast<int64_t>(strides[at])) return false;
  }
  return true;
}

std::vector<int64_t> list(const SymInt* values, int64_t count) {
  return {values, values + count};
}

bool is_dense(const Extents& extents) {
  int64_t expected = 1;
  for (int64_t d = extents.rank() - 1; d >= 0; --d) {
    const int64_t size = extents.sizes()[d];
    if (size != 1 && static_cast<int64_t>(extents.strides()[d]) != expected) return false;
    expected *= std::max<int64_t>(size, 1);
  }
  return true;
}

std::string text_of(const TensorKey& key) {
  std::string text;
  if (key.sizes_matter) {
    text = fmt::format("{}[{}]", name(key.dtype),
                       fmt::join(list(key.extents.sizes(), key.extents.rank()), ", "));
  } else {
    text = fmt::format("{} of {}", name(key.dtype), counted(key.extents.rank(), "dimension"));
  }
  if (key.sizes_matter && !is_dense(key.extents)) {
    text += fmt::format(" strides [{}]", fmt::join(list(key.extents.strides(), key.extents.rank()), ", "));
  }
  if (key.device.type != DeviceType::cpu) text += " on " + key.device.str();
  if (key.offset_matters) text += fmt::format(" at offset {}", key.offset);
  if (key.captured >= 0) text += ", in the memory of a captured tensor";
  if (key.alias >= 0) text += fmt::format(", in the memory of tensor {}", key.alias);
  return text;
}

TensorKey key_of(const CallTensors& call, size_t k) {
  const StridedImpl& impl = *call.tensors[k];
  TensorKey key;
  key.dtype = impl.dtype();
  key.device = impl.device();
  key.extents = extents_of(impl.sizes().values(), impl.strides().values());
  key.offset = impl.offset();
  key.offset_matters = true;
  key.storage_bytes = impl.storage()->bytes();
  key.alias = call.alias[k];
  return key;
}

bool fits_kind(const TensorKind& kind, const StridedImpl& impl, int32_t alias) {
  return kind.dtype == impl.dtype() && kind.alias == alias && kind.rank == impl.dim() &&
         kind.device == impl.device();
}

bool fits_rest(const TensorKey& key, const StridedImpl& impl) {
  return (!key.sizes_matter || same_extents(key.extents, impl)) &&
         (!key.offset_matters || (key.offset == static_cast<int64_t>(impl.offset()) &&
                                  key.storage_bytes == impl.storage()->bytes()));
}

/// Position of the argument's storage in `captured`, or -1.
int32_t captured_index(const std::vector<const Storage*>& captured, const StridedImpl& impl) {
  const auto at = std::find(captured.begin(), captured.end(), impl.storage().get());
  return at == captured.end() ? -1 : static_cast<int32_t>(at - captured.begin());
}

bool same_number(const Scalar& a, const Scalar& b) {
  if (a.kind() != b.kind()) return false;
  return a.is_floating_point()
             ? std::bit_cast<uint64_t>(a.floating()) == std::bit_cast<uint64_t>(b.floating())
             : static_cast<int64_t>(a.integer()) == static_cast<int64_t>(b.integer());
}

}  // namespace

namespace {

size_t numbers_in(const detail::Leaves& leaves) {
  size_t count = leaves.integers.size();
  for (const Tensor* tensor : leaves.tensors) count += 2 * static_cast<size_t>(strided(*tensor).dim());
  return count;
}

}  // namespace

CallTensors::CallTensors(const detail::Leaves& leaves) : numbers(numbers_in(leaves)) {
  int64_t* next = numbers.data();
  for (const Tensor* tensor : leaves.tensors) {
    const StridedImpl& impl = strided(*tensor);
    tensors.add(&impl);
    for (const SymInt& size : impl.sizes()) *next++ = size;
    for (const SymInt& stride : impl.strides()) *next++ = stride;
  }
  for (const int64_t value : leaves.integers) *next++ = value;
  find_aliases();
}

void CallTensors::find_aliases() {
  const size_t count = tensors.size();
  const StridedImpl* const* all = tensors.data();
  // Storages seen, by their addresses: comparing each with each takes long where there are many.
  constexpr size_t kFew = 6, kSlots = 128;
  if (count <= kFew || count > kSlots / 2) {
    for (size_t k = 0; k < count; ++k) {
      int32_t shared = -1;
      for (size_t j = 0; j < k && shared < 0; ++j) {
        if (alias[j] < 0 && all[j]->storage().get() == all[k]->storage().get())
          shared = static_cast<int32_t>(j);
      }
      alias.add(shared);
    }
    return;
  }
  int8_t slots[kSlots];
  std::fill(slots, slots + kSlots, int8_t{-1});
  for (size_t k = 0; k < count; ++k) {
    const Storage* storage = all[k]->storage().get();
    size_t at = mix(0, reinterpret_cast<uintptr_t>(storage)) >> 57;
    while (slots[at] >= 0 && all[slots[at]]->storage().get() != storage) at = (at + 1) % kSlots;
    alias.add(slots[at]);
    if (slots[at] < 0) slots[at] = static_cast<int8_t>(k);
  }
}

Key Key::of(const detail::Leaves& leaves, const CallTensors& call) {
  Key key;
  key.words.assign(leaves.words.begin(), leaves.words.end());
  for (size_t k = 0; k < call.tensors.size(); ++k) {
    const TensorKey& t = key.tensors.emplace_back(key_of(call, k));
    key.kinds.push_back({t.dtype, t.device, static_cast<int32_t>(t.extents.rank()), t.alias});
  }
  for (const Scalar* number : leaves.numbers) key.numbers.emplace_back(*number);
  return key;
}

bool Key::matches(const detail::Leaves& leaves, const CallTensors& call) const {
  return matches_kind(leaves, call) && matches_rest(leaves, call);
}

bool Key::matches_kind(const detail::Leaves& leaves, const CallTensors& call) const {
  if (tensors.size() != call.tensors.size() || numbers.size() != leaves.numbers.size() ||
      !std::equal(words.begin(), words.end(), leaves.words.begin(), leaves.words.end())) {
    return false;
  }
  const StridedImpl* const* impls = call.tensors.data();
  const int32_t* aliases = call.alias.data();
  for (size_t k = 0; k < kinds.size(); ++k) {
    if (!fits_kind(kinds[k], *impls[k], aliases[k])) return false;
  }
  return true;
}

bool Key::matches_rest(const detail::Leaves& leaves, const CallTensors& call) const {
  const StridedImpl* const* impls = call.tensors.data();
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (!fits_rest(tensors[k], *impls[k])) return false;
    if (!captured.empty() && captured_index(captured, *impls[k]) != tensors[k].captured) return false;
  }
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] && !same_number(*numbers[k], *leaves.numbers[k])) return false;
  }
  return true;
}

bool Key::same_kind(const Key& other) const {
  return words == other.words && numbers.size() == other.numbers.size() && kinds == other.kinds;
}

bool Key::is_only_kind() const {
  return captured.empty() &&
         std::ranges::none_of(tensors,
                              [](const TensorKey& t) { return t.sizes_matter || t.offset_matters; }) &&
         std::ranges::none_of(numbers, [](const auto& n) { return n.has_value(); });
}

bool Key::same(const Key& other) const {
  if (words != other.words || tensors.size() != other.tensors.size() ||
      numbers.size() != other.numbers.size()) {
    return false;
  }
  return conditions() == other.conditions();
}

void Key::guard_captured(std::vector<const Storage*> storages, const CallTensors& call, bool always) {
  bool shares = false;
  for (size_t k = 0; k < tensors.size(); ++k) {
    tensors[k].captured = captured_index(storages, *call.tensors[k]);
    shares = shares || tensors[k].captured >= 0;
    tensors[k].offset_matters = tensors[k].offset_matters || tensors[k].captured >= 0;
  }
  if (shares || always) captured = std::move(storages);
}

std::string Key::str() const {
  std::vector<std::string> parts;
  for (const TensorKey& t : tensors) parts.push_back(text_of(t));
  for (const auto& n : numbers) parts.push_back(n ? n->str() : "number");
  return fmt::format("({})", fmt::join(parts, "; "));
}

std::vector<std::string> Key::conditions() const {
  std::vector<std::string> out;
  for (size_t k = 0; k < tensors.size(); ++k) {
    out.push_back(fmt::format("tensor {} is {}", k, text_of(tensors[k])));
    if (tensors[k].offset_matters) {
      out.push_back(fmt::format("the memory of tensor {} has {} bytes", k, tensors[k].storage_bytes));
    }
  }
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k]) out.push_back(fmt::format("number {} is {}", k, numbers[k]->str()));
  }
  return out;
}

std::string Key::misfit(const detail::Leaves& leaves, const CallTensors& call) const {
  if (tensors.size() != call.tensors.size()) {
    return fmt::format("expected {} tensors, got {}", tensors.size(), call.tensors.size());
  }
  if (!std::equal(words.begin(), words.end(), leaves.words.begin(), leaves.words.end())) {
    return "a constant, a container's length or an argument's type differs";
  }
  for (size_t k = 0; k < tensors.size(); ++k) {
    TensorKey got = key_of(call, k);
    if (!captured.empty()) got.captured = captured_index(captured, *call.tensors[k]);
    if (got.captured == tensors[k].captured && fits_kind(kinds[k], *call.tensors[k], call.alias[k]) &&
        fits_rest(tensors[k], *call.tensors[k])) {
      continue;
    }
    got.offset_matters = tensors[k].offset_matters;
    got.sizes_matter = tensors[k].sizes_matter;
    return fmt::format("tensor {}: expected {}, got {}", k, text_of(tensors[k]), text_of(got));
  }
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] && !same_number(*numbers[k], *leaves.numbers[k])) {
      return fmt::format("number {}: expected {}, got {}", k, numbers[k]->str(), leaves.numbers[k]->str());
    }
  }
  return {};
}

}  // namespace stax::compiler
