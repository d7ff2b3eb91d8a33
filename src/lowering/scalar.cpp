#include "lowering/scalar.h"

#include "support/check.h"

namespace stax::lowering {

using loops::OpCode;

V unary(OpCode op, V a) {
  return {a.body, a.body->unary(op, a.id)};
}

V binary(OpCode op, V a, V b) {
  STAX_ASSERT(a.dtype() == b.dtype(), "lowering: {} of {} and {}", loops::info(op).name, name(a.dtype()),
              name(b.dtype()));
  return {a.body, a.body->binary(op, a.id, b.id)};
}

V where(V condition, V a, V b) {
  return {a.body, a.body->where(condition.id, a.id, b.id)};
}

V cast(V a, DType dtype) {
  return {a.body, a.body->cast(a.id, loops::compute_dtype(dtype))};
}

V bitcast(V a, DType dtype) {
  if (a.dtype() == dtype) return a;
  loops::Inst inst;
  inst.op = OpCode::bitcast;
  inst.dtype = dtype;
  inst.args = {a.id};
  return {a.body, a.body->add(std::move(inst))};
}

V round_to(V a, DType dtype) {
  const V wide = cast(a, dtype);
  if (dtype == DType::float16) return unary(OpCode::to_float16, wide);
  if (dtype == DType::bfloat16) return unary(OpCode::to_bfloat16, wide);
  return wide;
}

V scaled(V v, const PointwiseArgs& args, std::string_view name) {
  const Number& factor = (*args.args)[name].number();
  const bool one = factor.is_float() ? factor.floating == 1.0 : factor.integer.is(1);
  return one ? v : v * args[name];
}

V like(V a, double value) {
  return {a.body, a.body->constant(a.dtype(), value)};
}

}  // namespace stax::lowering
