// Elementwise operators of ONNX, and those of matrices.
#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "frontends/onnx_ops.h"

namespace stax::onnx::ops {
namespace {

using Result = std::vector<Tensor>;

// A template argument names the operator of Stax: kName, because text cannot be one.
template <size_t N>
struct Name {
  constexpr Name(const char (&text)[N]) { std::copy_n(text, N, value); }
  char value[N];
};

template <Name name>
Result unary(const NodeCall& call) {
  return {op(name.value, {call.in(0)})};
}
template <Name name>
Result binary(const NodeCall& call) {
  return {op(name.value, {call.in(0), call.in(1)})};
}
/// Any number of operands, from the left.
template <Name name>
Result fold(const NodeCall& call) {
  Tensor result = call.in(0);
  for (size_t i = 1; i < call.input_count(); ++i) result = op(name.value, {result, call.in(i)});
  return {result};
}
Result mean(const NodeCall& call) {
  return {op("div", {fold<"add">(call)[0], static_cast<int64_t>(call.input_count())})};
}

/// Before version 7 the second operand was placed by `axis`, not from the right.
Tensor second_operand(const NodeCall& call) {
  Tensor b = call.in(1);
  if (call.opset() >= 7 || call.integer("broadcast", 0) == 0) return b;
  const int64_t axis = call.integer("axis", -1);
  if (axis < 0) return b;
  for (int64_t left = call.in(0).dim() - axis - b.dim(); left > 0; --left) b = op("unsqueeze", {b, -1});
  return b;
}
template <Name name>
Result arithmetic(const NodeCall& call) {
  return {op(name.value, {call.in(0), second_operand(call)})};
}

Result divide(const NodeCall& call) {
  const Tensor &a = call.in(0), b = second_operand(call);
  if (a.is_floating_point()) return {op("div", {a, b})};
  return {op("div", {a, b}, {{"rounding_mode", std::string("trunc")}})};
}

Result power(const NodeCall& call) {
  const Tensor& base = call.in(0);
  const Tensor exponent = second_operand(call);
  const Tensor result = op("pow", {base, exponent});
  return {result.dtype() == base.dtype() ? result : op("to", {result, base.dtype()})};
}

Result modulo(const NodeCall& call) {
  return {op(call.integer("fmod", 0) != 0 ? "fmod" : "remainder", {call.in(0), call.in(1)})};
}

Result bit_shift(const NodeCall& call) {
  const bool left = call.text("direction", "") == "LEFT";
  return {op(left ? "bitwise_left_shift" : "bitwise_right_shift", {call.in(0), call.in(1)})};
}

Result cast(const NodeCall& call) {
  return {op("to", {call.in(0), element_type(call, call.integer("to", 0))})};
}
Result cast_like(const NodeCall& call) {
  return {op("to", {call.in(0), call.in(1).dtype()})};
}

Result identity(const NodeCall& call) {
  return {call.in(0)};
}

Result where(const NodeCall& call) {
  return {op("where", {call.in(0), call.in(1), call.in(2)})};
}

Result clip(const NodeCall& call) {
  const Tensor& x = call.in(0);
  if (call.opset() < 11) {
    constexpr double largest = std::numeric_limits<float>::max();
    return {op("clamp", {x, call.real("min", -largest), call.real("max", largest)})};
  }
  Argument<Tensor> low, high;
  if (call.has(1)) low = call.in(1);
  if (call.has(2)) high = call.in(2);
  if (low.is_none() && high.is_none()) return {x};
  // The lower bound first: where the bounds cross, the upper one wins.
  Tensor result = x;
  if (!low.is_none()) result = op("maximum", {result, low.tensor()});
  if (!high.is_none()) result = op("minimum", {result, high.tensor()});
  return {result};
}

Result leaky_relu(const NodeCall& call) {
  return {op("leaky_relu", {call.in(0), call.real("alpha", 0.01)})};
}
Result elu(const NodeCall& call) {
  return {op("elu", {call.in(0), call.real("alpha", 1)})};
}
Result celu(const NodeCall& call) {
  return {op("celu", {call.in(0), call.real("alpha", 1)})};
}
Result selu(const NodeCall& call) {
  const double alpha = call.real("alpha", 1.67326319217681884765625);
  const double gamma = call.real("gamma", 1.05070102214813232421875);
  return {op("elu", {call.in(0), alpha, gamma})};
}
Result hard_sigmoid(const NodeCall& call) {
  const Tensor line = op("add", {op("mul", {call.in(0), call.real("alpha", 0.2)}), call.real("beta", 0.5)});
  return {op("clamp", {line, 0.0, 1.0})};
}
Result hard_swish(const NodeCall& call) {
  return {op("hardswish", {call.in(0)})};
}
Result thresholded_relu(const NodeCall& call) {
  const Tensor& x = call.in(0);
  return {op("where", {op("gt", {x, call.real("alpha", 1)}), x, op("zeros_like", {x})})};
}
Result shrink(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const double lambd = call.real("lambd", 0.5), bias = call.real("bias", 0);
  const Tensor low = op("lt", {x, -lambd}), high = op("gt", {x, lambd});
  const Tensor inside = op("where", {high, op("sub", {x, bias}), op("zeros_like", {x})});
  return {op("to", {op("where", {low, op("add", {x, bias}), inside}), x.dtype()})};
}
Result gelu(const NodeCall& call) {
  return {op("gelu", {call.in(0)}, {{"approximate", call.text("approximate", "none")}})};
}
Result swish(const NodeCall& call) {
  const Tensor& x = call.in(0);
  return {op("mul", {x, op("sigmoid", {op("mul", {x, call.real("alpha", 1)})})})};
}
Result prelu(const NodeCall& call) {
  const Tensor& x = call.in(0);
  return {op("where", {op("lt", {x, 0}), op("mul", {x, call.in(1)}), x})};
}
Result is_inf(const NodeCall& call) {
  const bool negative = call.integer("detect_negative", 1) != 0,
             positive = call.integer("detect_positive", 1) != 0;
  if (negative && positive) return {op("isinf", {call.in(0)})};
  if (negative) return {op("isneginf", {call.in(0)})};
  if (positive) return {op("isposinf", {call.in(0)})};
  return {op("zeros_like", {call.in(0)}, {{"dtype", DType::boolean}})};
}

/// Softmax and its kin; before version 13 over all axes from `axis` on, taken as one.
template <Name name>
Result softmax(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const bool flattens = call.opset() < 13;
  const int64_t axis = axis_of(call, call.integer("axis", flattens ? 1 : -1), std::max<int64_t>(1, x.dim()));
  if (!flattens) return {op(name.value, {x, axis})};
  const Exprs sizes = shape_of(x);
  const Tensor flat = op("flatten", {x, axis, -1});
  return {op("reshape", {op(name.value, {flat, axis}), list(sizes)})};
}
Tensor one_largest(const Tensor& x, int64_t axis) {
  const Tensor first = op("argmax", {x, axis, true});
  Exprs shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(axis)] = size(x, axis);
  const Tensor positions = op("reshape", {op("arange", {size(x, axis)}), list(shape)});
  return op("to", {op("eq", {positions, first}), x.dtype()});
}
Result hardmax(const NodeCall& call) {
  const Tensor& x = call.in(0);
  const int64_t axis = axis_of(call, call.integer("axis", call.opset() < 13 ? 1 : -1), x.dim());
  if (call.opset() >= 13) return {one_largest(x, axis)};
  const Tensor flat = op("flatten", {x, axis, -1});
  return {op("reshape", {one_largest(flat, axis), list(shape_of(x))})};
}

Result gemm(const NodeCall& call) {
  Tensor a = call.in(0), b = call.in(1);
  if (call.integer("transA", 0) != 0) a = op("t", {a});
  if (call.integer("transB", 0) != 0) b = op("t", {b});
  Tensor result = op("matmul", {a, b});
  if (const double alpha = call.real("alpha", 1); alpha != 1) result = op("mul", {result, alpha});
  if (!call.has(2)) return {result};
  Tensor c = call.in(2);
  if (const double beta = call.real("beta", 1); beta != 1) c = op("mul", {c, beta});
  return {op("add", {result, c})};
}
Result einsum(const NodeCall& call) {
  return {op("einsum", {call.text("equation", ""), list(call.all())})};
}

constexpr OpRow kMathRows[] = {
    {"Abs", 1, unary<"abs">},
    {"Neg", 1, unary<"neg">},
    {"Exp", 1, unary<"exp">},
    {"Log", 1, unary<"log">},
    {"Sqrt", 1, unary<"sqrt">},
    {"Reciprocal", 1, unary<"reciprocal">},
    {"Ceil", 1, unary<"ceil">},
    {"Floor", 1, unary<"floor">},
    {"Round", 1, unary<"round">},
    {"Sign", 1, unary<"sign">},
    {"Sin", 1, unary<"sin">},
    {"Cos", 1, unary<"cos">},
    {"Tan", 1, unary<"tan">},
    {"Asin", 1, unary<"asin">},
    {"Acos", 1, unary<"acos">},
    {"Atan", 1, unary<"atan">},
    {"Sinh", 1, unary<"sinh">},
    {"Cosh", 1, unary<"cosh">},
    {"Tanh", 1, unary<"tanh">},
    {"Asinh", 1, unary<"asinh">},
    {"Acosh", 1, unary<"acosh">},
    {"Atanh", 1, unary<"atanh">},
    {"Erf", 1, unary<"erf">},
    {"IsNaN", 1, unary<"isnan">},
    {"IsInf", 1, is_inf},
    {"Not", 1, unary<"logical_not">},
    {"BitwiseNot", 1, unary<"bitwise_not">},
    {"Identity", 1, identity},
    {"Relu", 1, unary<"relu">},
    {"Sigmoid", 1, unary<"sigmoid">},
    {"Softplus", 1, unary<"softplus">},
    {"Softsign", 1, unary<"softsign">},
    {"Mish", 1, unary<"mish">},
    {"HardSwish", 1, hard_swish},
    {"HardSigmoid", 1, hard_sigmoid},
    {"LeakyRelu", 1, leaky_relu},
    {"Elu", 1, elu},
    {"Celu", 1, celu},
    {"Selu", 1, selu},
    {"Gelu", 1, gelu},
    {"Swish", 1, swish},
    {"ThresholdedRelu", 1, thresholded_relu},
    {"Shrink", 1, shrink},
    {"PRelu", 1, prelu},
    {"Clip", 1, clip},
    {"Add", 1, arithmetic<"add">},
    {"Sub", 1, arithmetic<"sub">},
    {"Mul", 1, arithmetic<"mul">},
    {"Div", 1, divide},
    {"Pow", 1, power},
    {"Mod", 1, modulo},
    {"Max", 1, fold<"maximum">},
    {"Min", 1, fold<"minimum">},
    {"Sum", 1, fold<"add">},
    {"Mean", 1, mean},
    {"And", 1, arithmetic<"logical_and">},
    {"Or", 1, arithmetic<"logical_or">},
    {"Xor", 1, arithmetic<"logical_xor">},
    {"Equal", 1, arithmetic<"eq">},
    {"Greater", 1, arithmetic<"gt">},
    {"GreaterOrEqual", 1, binary<"ge">},
    {"Less", 1, arithmetic<"lt">},
    {"LessOrEqual", 1, binary<"le">},
    {"BitShift", 1, bit_shift},
    {"BitwiseAnd", 1, binary<"bitwise_and">},
    {"BitwiseOr", 1, binary<"bitwise_or">},
    {"BitwiseXor", 1, binary<"bitwise_xor">},
    {"Where", 1, where},
    {"Cast", 1, cast},
    {"CastLike", 1, cast_like},
    {"Softmax", 1, softmax<"softmax">},
    {"LogSoftmax", 1, softmax<"log_softmax">},
    {"Hardmax", 1, hardmax},
    {"MatMul", 1, binary<"matmul">},
    {"Gemm", 1, gemm},
    {"Einsum", 1, einsum},
};

}  // namespace

std::span<const OpRow> math_rows() {
  return kMathRows;
}

}  // namespace stax::onnx::ops
