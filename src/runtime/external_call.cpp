#include "runtime/external_call.h"

namespace stax::runtime {

template <class T>
void ExternalViews::set(std::vector<Changing<T>>& changing, T& place, Expr from) {
  if (from.is_constant())
    place = from.value();
  else
    changing.push_back({&place, from});
}

void ExternalViews::fill(TensorView& view, const loops::Operand& o) {
  for (size_t d = 0; d < o.sizes.size(); ++d) {
    set(changing_sizes_, view.sizes[d], o.sizes[d]);
    set(changing_sizes_, view.strides[d], o.strides[d]);
  }
  patches_.push_back({&view, o.buffer, o.offset});
  if (o.offset.is_constant()) patches_.back().offset_bytes = o.offset.value() * itemsize(o.dtype);
}

void ExternalViews::fill(Argument<TensorView>& to, const Argument<loops::Operand>& from) {
  if (auto* view = std::get_if<TensorView>(&to.value)) {
    fill(*view, from.tensor());
  } else if (auto* views = std::get_if<Argument<TensorView>::Tensors>(&to.value)) {
    for (size_t t = 0; t < views->size(); ++t)
      if ((*views)[t]) fill(*(*views)[t], *from.tensors()[t]);
  } else if (auto* number = std::get_if<Number>(&to.value)) {
    if (!number->is_float()) set(changing_numbers_, number->integer, number->integer);
  } else if (auto* list = std::get_if<std::vector<Expr>>(&to.value)) {
    for (Expr& e : *list) set(changing_numbers_, e, e);
  }
}

ExternalViews::ExternalViews(const codegen::PlanExternal& call) {
  const auto empty = [](const loops::Operand& o) {
    return TensorView{nullptr, o.dtype, std::vector<int64_t>(o.sizes.size()),
                      std::vector<int64_t>(o.strides.size())};
  };
  for (const auto& a : call.arguments) arguments_.push_back(map_tensors<TensorView>(a, empty));
  if (!call.dynamic) {
    for (const loops::Operand& o : call.results) results_.push_back(empty(o));
  }
  // Both vectors have their length now: pointers into them stay valid, also when they are moved.
  for (size_t k = 0; k < arguments_.size(); ++k) fill(arguments_[k], call.arguments[k]);
  for (size_t k = 0; k < results_.size(); ++k) fill(results_[k], call.results[k]);
}

std::vector<Expr> ExternalViews::changing() const {
  std::vector<Expr> out;
  for (const auto& c : changing_sizes_) out.push_back(c.from);
  for (const auto& c : changing_numbers_) out.push_back(c.from);
  for (const Patch& p : patches_)
    if (!p.offset.is_constant()) out.push_back(p.offset);
  return out;
}

void ExternalViews::renew(std::span<const int32_t> ids, std::span<const int64_t> numbers) {
  const int32_t* id = ids.data();
  const auto next = [&] { return numbers[static_cast<size_t>(*id++)]; };
  for (const auto& c : changing_sizes_) *c.place = next();
  for (const auto& c : changing_numbers_) *c.place = next();
  for (Patch& p : patches_)
    if (!p.offset.is_constant()) p.offset_bytes = next() * itemsize(p.view->dtype);
}

void ExternalViews::point_at(std::span<void* const> base) {
  for (const Patch& p : patches_) {
    auto* const start = static_cast<std::byte*>(base[p.buffer]);
    p.view->data = start == nullptr ? nullptr : start + p.offset_bytes;
  }
}

}  // namespace stax::runtime
