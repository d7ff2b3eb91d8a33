#include "runtime/external_call.h"

#include "support/check.h"

namespace stax::runtime {

namespace {

using Value = std::function<int64_t(Expr)>;

TensorView view_of(const loops::Operand& o, const Value& value) {
  TensorView out{nullptr, o.dtype, {}, {}};
  for (Expr e : o.sizes) out.sizes.push_back(value(e));
  for (Expr e : o.strides) out.strides.push_back(value(e));
  return out;
}

/// The argument with views for operands and constants for expressions.
Argument<TensorView> evaluated(const Argument<loops::Operand>& argument, const Value& value) {
  Argument<TensorView> out =
      map_tensors<TensorView>(argument, [&](const loops::Operand& o) { return view_of(o, value); });
  if (auto* number = std::get_if<Number>(&out.value)) {
    if (!number->is_float()) number->integer = value(number->integer);
  } else if (auto* list = std::get_if<std::vector<Expr>>(&out.value)) {
    for (Expr& e : *list) e = value(e);
  }
  return out;
}

}  // namespace

ExternalViews::ExternalViews(const codegen::PlanExternal& call, const Value& value) {
  for (const auto& a : call.arguments) arguments_.push_back(evaluated(a, value));
  if (!call.dynamic) {
    for (const loops::Operand& o : call.results) results_.push_back(view_of(o, value));
  }
  // Both vectors have their length now: pointers into them stay valid, also when they are moved.
  const auto patch = [&](TensorView& view, const loops::Operand& o) {
    patches_.push_back({&view, o.buffer, value(o.offset) * itemsize(o.dtype)});
  };
  for (size_t k = 0; k < arguments_.size(); ++k) {
    const auto& from = call.arguments[k].value;
    auto& to = arguments_[k].value;
    if (auto* view = std::get_if<TensorView>(&to)) patch(*view, std::get<loops::Operand>(from));
    if (auto* views = std::get_if<Argument<TensorView>::Tensors>(&to)) {
      const auto& operands = std::get<Argument<loops::Operand>::Tensors>(from);
      for (size_t t = 0; t < views->size(); ++t) {
        if ((*views)[t]) patch(*(*views)[t], *operands[t]);
      }
    }
  }
  for (size_t k = 0; k < results_.size(); ++k) patch(results_[k], call.results[k]);
}

void ExternalViews::point_at(std::span<void* const> base) {
  for (const Patch& p : patches_) {
    auto* const start = static_cast<std::byte*>(base[p.buffer]);
    p.view->data = start == nullptr ? nullptr : start + p.offset_bytes;
  }
}

}  // namespace stax::runtime
