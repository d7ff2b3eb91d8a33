// Families of pointwise operators.
#include "fuzz/generator_state.h"

namespace stax::fuzz {
namespace {

enum Note : uint8_t {
  kExact = 0,        // the same bits in compiled code and in the reference executor
  kApproximate = 1,  // may differ in the last places
  kJumps = 2,        // not continuous: only for values that have the same bits
};

struct Row {
  const char* op;
  uint8_t kinds;
  uint8_t notes = kExact;
};

constexpr Row kUnary[] = {
    {"abs", kNumbers},
    {"neg", kNumbers},
    {"relu", kNumbers},
    {"relu6", kNumbers},
    {"sqrt", kAny},
    {"rsqrt", kAny, kApproximate},
    {"reciprocal", kAny},
    {"square", kNumbers},
    {"sign", kNumbers, kJumps},
    {"floor", kNumbers, kJumps},
    {"ceil", kNumbers, kJumps},
    {"trunc", kNumbers, kJumps},
    {"round", kNumbers, kJumps},
    {"frac", kFloats, kJumps},
    {"isnan", kAny, kJumps},
    {"isinf", kAny, kJumps},
    {"isfinite", kAny, kJumps},
    {"isposinf", kAny, kJumps},
    {"isneginf", kAny, kJumps},
    {"signbit", kNumbers, kJumps},
    {"logical_not", kAny, kJumps},
    {"bitwise_not", kDiscrete},
    {"nan_to_num", kNumbers, kJumps},
    {"clone", kAny},
    {"leaky_relu", kFloats},
    {"hardsigmoid", kFloats},
    {"hardswish", kFloats},
    {"hardshrink", kFloats, kJumps},
    {"softshrink", kFloats},
    {"softsign", kFloats},
    {"deg2rad", kAny},
    {"rad2deg", kAny},
    {"exp", kAny, kApproximate},
    {"exp2", kAny, kApproximate},
    {"expm1", kAny, kApproximate},
    {"log", kAny, kApproximate},
    {"log2", kAny, kApproximate},
    {"log10", kAny, kApproximate},
    {"log1p", kAny, kApproximate},
    {"sin", kAny, kApproximate},
    {"cos", kAny, kApproximate},
    {"tan", kAny, kApproximate},
    {"asin", kAny, kApproximate},
    {"acos", kAny, kApproximate},
    {"atan", kAny, kApproximate},
    {"sinh", kAny, kApproximate},
    {"cosh", kAny, kApproximate},
    {"tanh", kAny, kApproximate},
    {"asinh", kAny, kApproximate},
    {"acosh", kAny, kApproximate},
    {"atanh", kAny, kApproximate},
    {"sigmoid", kAny, kApproximate},
    {"erf", kAny, kApproximate},
    {"erfc", kAny, kApproximate},
    {"sinc", kAny, kApproximate},
    {"logit", kFloats, kApproximate},
    {"lgamma", kFloats, kApproximate | kJumps},
    {"digamma", kFloats, kApproximate | kJumps},
    {"i0", kFloats, kApproximate},
    {"erfinv", kFloats, kApproximate},
    {"silu", kFloats, kApproximate},
    {"gelu", kFloats, kApproximate},
    {"mish", kFloats, kApproximate},
    {"elu", kFloats, kApproximate},
    {"selu", kFloats, kApproximate},
    {"celu", kFloats, kApproximate},
    {"softplus", kFloats, kApproximate},
    {"logsigmoid", kFloats, kApproximate},
    {"tanhshrink", kFloats, kApproximate},
};

constexpr Row kBinary[] = {
    {"add.Tensor", kNumbers},
    {"add.Tensor", kAny},
    {"sub.Tensor", kNumbers},
    {"rsub.Tensor", kNumbers},
    {"mul.Tensor", kNumbers},
    {"mul.Tensor", kAny},
    {"div.Tensor", kAny},
    {"maximum", kAny},
    {"minimum", kAny},
    {"fmax", kNumbers, kJumps},
    {"fmin", kNumbers, kJumps},
    {"floor_divide", kNumbers, kJumps},
    {"trunc_divide", kNumbers, kJumps},
    {"remainder.Tensor", kNumbers, kJumps},
    {"fmod.Tensor", kNumbers, kJumps},
    {"copysign.Tensor", kNumbers, kJumps},
    {"heaviside", kFloats, kJumps},
    {"eq.Tensor", kAny, kJumps},
    {"ne.Tensor", kAny, kJumps},
    {"lt.Tensor", kAny, kJumps},
    {"le.Tensor", kAny, kJumps},
    {"gt.Tensor", kAny, kJumps},
    {"ge.Tensor", kAny, kJumps},
    {"logical_and", kAny, kJumps},
    {"logical_or", kAny, kJumps},
    {"logical_xor", kAny, kJumps},
    {"bitwise_and.Tensor", kDiscrete},
    {"bitwise_or.Tensor", kDiscrete},
    {"bitwise_xor.Tensor", kDiscrete},
    {"bitwise_left_shift.Tensor", kIntegers},
    {"bitwise_right_shift.Tensor", kIntegers},
    {"gcd", kIntegers},
    {"lcm", kIntegers},
    {"pow.Tensor_Tensor", kFloats, kApproximate | kJumps},
    {"pow.Tensor_Tensor", kIntegers},
    {"atan2", kAny, kApproximate | kJumps},
    {"hypot", kFloats, kApproximate},
    {"logaddexp", kFloats, kApproximate},
    {"logaddexp2", kFloats, kApproximate},
    {"xlogy.Tensor", kFloats, kApproximate},
    {"ldexp.Tensor", kFloats, kApproximate},
};

template <size_t N>
const Row& any_row(Generator& g, const Row (&rows)[N]) {
  return rows[g.random().integer(0, static_cast<int64_t>(N) - 1)];
}

Traits traits(uint8_t notes) {
  return {.approximate = (notes & kApproximate) != 0};
}

}  // namespace

bool add_unary(Generator& g) {
  const Row& row = any_row(g, kUnary);
  const auto x = g.pick(row.kinds, row.notes & kJumps);
  return x && g.call(row.op, {*x}, traits(row.notes));
}

bool add_binary(Generator& g) {
  const Row& row = any_row(g, kBinary);
  const bool exact = row.notes & kJumps;
  const auto x = g.pick(row.kinds, exact);
  if (!x) return false;
  RefArg y = g.operand_for(*x, row.kinds, exact, true);
  if (y.is_tensor() && g.random().one_in(3)) return g.call(row.op, {y, *x}, traits(row.notes));
  return g.call(row.op, {*x, std::move(y)}, traits(row.notes));
}

bool add_ternary(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kNumbers);
  if (!x) return false;
  switch (random.integer(0, 5)) {
    case 0:
      return g.call("where.self",
                    {g.operand_for(*x, kBools, true, false), *x, g.operand_for(*x, kAny, false, true)});
    case 1:
      return g.call("masked_fill.Tensor", {*x, g.operand_for(*x, kBools, true, false), g.number(kNumbers)});
    case 2:
      return g.call("clamp", {*x, Number::of(random.integer(-3, 0)), Number::of(random.integer(1, 4))});
    case 3:
      return g.call("addcmul", {*x, g.operand_for(*x, kNumbers, false, false),
                                g.operand_for(*x, kNumbers, false, false), g.number(kIntegers)});
    case 4: {
      const auto f = g.pick(kFloats);
      return f && g.call("addcdiv", {*f, g.operand_for(*f, kFloats, false, false),
                                     g.operand_for(*f, kFloats, false, false)});
    }
    default: {
      const auto f = g.pick(kFloats);
      return f && g.call("lerp.Scalar", {*f, g.operand_for(*f, kFloats, false, false),
                                         Number::of(random.of({0.25, 0.5, 0.75, 1.0}))});
    }
  }
}

bool add_cast(Generator& g) {
  const DType to = g.random_dtype(kAny);
  const auto x = g.pick(kAny, !is_floating_point(to));
  return x && g.call("to.dtype", {*x, to});
}

}  // namespace stax::fuzz
