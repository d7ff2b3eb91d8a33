// Tensors from numbers: constants, ranges, random numbers.
#include <cmath>
#include <limits>
#include <numbers>

#include "loops/range_error.h"
#include "ops/loop_vocabulary.h"
#include "ops/shape_rules.h"
#include "ops/table.h"
#include "support/check.h"
#include "support/dtype_limits.h"
#include "support/plural.h"
#include "symbolic/shape_env.h"

namespace stax::ops {
namespace {

DType number_dtype(const Number& n) {
  return n.kind == Number::Kind::boolean ? DType::boolean : n.is_float() ? DType::float32 : DType::int64;
}

void check_sizes(ShapeEnv& env, const Exprs& sizes, const std::string& op) {
  for (const Expr e : sizes) STAX_CHECK(env.expect(ge(e, 0)), "{}: size {} is negative", op, e.str());
}

// ---- constants ----

DType full_dtype(const auto& args) {
  return args["dtype"].is_none() ? number_dtype(args["fill_value"].number()) : args["dtype"].dtype();
}

Metas full_meta(ShapeEnv& env, const MetaArgs& args) {
  check_sizes(env, args["size"].integers(), "full");
  return {graph::dense(full_dtype(args), args["size"].integers())};
}

// A number as PyTorch stores it: floats that go to integers truncate.
V stored_number(Lowering& lowering, const Number& n, DType dtype) {
  if (n.is_float() && !is_floating_point(dtype))
    return cast(lowering.constant(DType::float64, n.floating), dtype);
  return round_to(lowering.number(n, dtype), dtype);
}

Lazies lower_full(Lowering& lowering, const LazyArgs& args) {
  const DType dtype = full_dtype(args);
  return {lowering.pointwise(dtype, args["size"].integers(), [&](const Index&) {
    return stored_number(lowering, args["fill_value"].number(), dtype);
  })};
}

VarArg dtype_or(const VarArg& dtype, DType absent) {
  return dtype.is_none() ? VarArg(absent) : dtype;
}

template <int Value>
Vars filled(Builder& b, const VarArgs& a) {
  return {b.call("full", {a["size"], Value, dtype_or(a["dtype"], DType::float32)})};
}

template <int Value>
Vars filled_like(Builder& b, const VarArgs& a) {
  return {b.call("full", {a.tensor(0).sizes(), Value, dtype_or(a["dtype"], a.tensor(0).dtype())})};
}

template <int Value>
Vars new_filled(Builder& b, const VarArgs& a) {
  return {b.call("full", {a["size"], Value, dtype_or(a["dtype"], a.tensor(0).dtype())})};
}

// ---- ranges ----

bool any_float(std::initializer_list<const Number*> numbers) {
  for (const Number* n : numbers) {
    if (n->is_float()) return true;
  }
  return false;
}

struct Arange {
  DType dtype;
  Expr count;
};

Arange arange_of(ShapeEnv& env, const auto& args) {
  const Number &start = args["start"].number(), &end = args["end"].number(), &step = args["step"].number();
  const bool floats = any_float({&start, &end, &step});
  Arange out{args["dtype"].is_none() ? (floats ? DType::float32 : DType::int64) : args["dtype"].dtype(), 0};
  if (floats) {
    // Numbers become integers first where the dtype is one; only int64 counts its elements after that.
    const auto value = [&](const Number& n) {
      return is_floating_point(out.dtype) ? n.as_double() : std::trunc(n.as_double());
    };
    const double s = value(start), e = value(end), d = value(step);
    STAX_CHECK(std::isfinite(s) && std::isfinite(e) && d != 0,
               "arange: expected finite bounds and a step other than 0, got {}, {}, {}", s, e, d);
    STAX_CHECK((d > 0) == (e >= s) || e == s, "arange: the step {} leads away from the end: {} to {}", d, s,
               e);
    const double count = out.dtype == DType::int64
                             ? std::ceil((e - s) / d)
                             : std::ceil((end.as_double() - start.as_double()) / step.as_double());
    STAX_CHECK(count < 0x1p62, "arange: {} from {} to {} by {} are too many", counted(count, "element"), s, e,
               d);
    out.count = Expr(static_cast<int64_t>(std::max(count, 0.0)));
    return out;
  }
  const Expr s = start.integer, e = end.integer, d = step.integer;
  STAX_CHECK(!env.decide(eq(d, 0)), "arange: the step must not be 0");
  const bool up = env.decide(gt(d, 0));
  STAX_CHECK(env.expect(up ? le(s, e) : ge(s, e)), "arange: the step {} leads away from the end: {} to {}",
             d.str(), s.str(), e.str());
  out.count = up ? ceil_div(e - s, d) : ceil_div(s - e, -d);
  return out;
}

Metas arange_meta(ShapeEnv& env, const MetaArgs& args) {
  const Arange range = arange_of(env, args);
  return {graph::dense(range.dtype, {range.count})};
}

Lazies lower_arange(Lowering& lowering, const LazyArgs& args) {
  const Arange range = arange_of(lowering.env(), args);
  const Number &start = args["start"].number(), &step = args["step"].number();
  return {lowering.pointwise(range.dtype, {range.count}, [&](const Index& i) {
    if (!any_float({&start, &step}) && !is_floating_point(range.dtype)) {
      return cast(lowering.index_value(start.integer + i[0] * step.integer), range.dtype);
    }
    // Computed in float64, and rounded once to the dtype.
    const DType wide = DType::float64;
    const auto value = [&](const Number& n) {
      return is_floating_point(range.dtype) || !n.is_float()
                 ? lowering.number(n, wide)
                 : lowering.constant(wide, std::trunc(n.floating));
    };
    const V k = cast(lowering.index_value(i[0]), wide);
    return round_to(value(start) + k * value(step), range.dtype);
  })};
}

Metas linspace_meta(ShapeEnv& env, const MetaArgs& args) {
  check_sizes(env, {args["steps"].integer()}, args.schema().name);
  return {graph::dense(args["dtype"].is_none() ? DType::float32 : args["dtype"].dtype(),
                       {args["steps"].integer()})};
}

// Points are counted from the nearer end, so that both ends are exact. Ends of an integer range are integers.
V linspace_point(Lowering& lowering, const Number& start, const Number& end, Expr steps, Expr at,
                 DType dtype) {
  const DType wide = is_integral(dtype) ? DType::float64 : dtype == DType::float64 ? dtype : DType::float32;
  const auto bound = [&](const Number& n) {
    const V v = lowering.number(n, wide);
    return is_integral(dtype) && n.is_float() ? trunc(v) : v;
  };
  const V s = bound(start), e = bound(end);
  if (steps.is(1)) return s;
  const V step = (e - s) / cast(lowering.index_value(steps - 1), wide);
  const V forward = s + step * cast(lowering.index_value(at), wide);
  const V backward = e - step * cast(lowering.index_value(steps - 1 - at), wide);
  const V first_half = lt(lowering.index_value(at), lowering.index_value(floor_div(steps, 2)));
  return where(first_half, forward, backward);
}

// Integers are truncated, and a GPU's pow may be a place or two below the power: 3^1 would become 2.
V power_for_integers(V power) {
  const V nearest = round(power);
  return where(le(abs(power - nearest), abs(power) * 0x1p-50), nearest, power);
}

template <bool Power>
Lazies lower_linspace(Lowering& lowering, const LazyArgs& args) {
  const Expr steps = args["steps"].integer();
  const DType dtype = args["dtype"].is_none() ? DType::float32 : args["dtype"].dtype();
  return {lowering.pointwise(dtype, {steps}, [&](const Index& i) {
    V v = linspace_point(lowering, args["start"].number(), args["end"].number(), steps, i[0], dtype);
    if (Power) {
      const DType wide = DType::float64;
      const Number base = Number::of(args["base"].floating());
      v = pow(lowering.number(base, wide), cast(v, wide));
      if (is_integral(dtype)) v = power_for_integers(v);
    }
    return round_to(v, dtype);
  })};
}

Metas eye_meta(ShapeEnv& env, const MetaArgs& args) {
  const Expr rows = args["n"].integer(), columns = args["m"].is_none() ? rows : args["m"].integer();
  check_sizes(env, {rows, columns}, "eye");
  return {graph::dense(args["dtype"].is_none() ? DType::float32 : args["dtype"].dtype(), {rows, columns})};
}

Lazies lower_eye(Lowering& lowering, const LazyArgs& args) {
  const Expr rows = args["n"].integer(), columns = args["m"].is_none() ? rows : args["m"].integer();
  const DType dtype = args["dtype"].is_none() ? DType::float32 : args["dtype"].dtype();
  return {lowering.pointwise(dtype, {rows, columns}, [&](const Index& i) {
    return cast(eq(lowering.index_value(i[0]), lowering.index_value(i[1])), dtype);
  })};
}

// ---- random numbers ----
//
// Element k of a random tensor takes the words of counter `offset + k`; `offset` is the operator's place in
// the program's stream, in counters (the generator advances by their number when the program has run). 24 (53
// for float64) random bits make a uniform number in [0, 1); two make a normal one by the Box-Muller
// transform.

V uniform(Lowering& lowering, Expr counter, DType dtype, int32_t word) {
  if (dtype == DType::float64) {
    const V high = cast(
        shift_right(lowering.random_bits(counter, word), lowering.constant(DType::int64, int64_t{5})), dtype);
    const V low = cast(
        shift_right(lowering.random_bits(counter, word + 1), lowering.constant(DType::int64, int64_t{6})),
        dtype);
    return (high * 0x1p26 + low) * 0x1p-53;
  }
  const V bits =
      shift_right(lowering.random_bits(counter, word), lowering.constant(DType::int64, int64_t{8}));
  return cast(bits, DType::float32) * 0x1p-24;
}

Expr flat_index(const Exprs& sizes, const Index& i) {
  Expr flat = 0;
  for (size_t d = 0; d < sizes.size(); ++d) flat = flat * sizes[d] + i[d];
  return flat;
}

Metas random_meta(ShapeEnv& env, const MetaArgs& args) {
  check_sizes(env, args["size"].integers(), args.schema().name);
  const DType dtype = args["dtype"].is_none() ? DType::float32 : args["dtype"].dtype();
  return {graph::dense(dtype, args["size"].integers())};
}

Metas random_float_meta(ShapeEnv& env, const MetaArgs& args) {
  Metas metas = random_meta(env, args);
  STAX_CHECK(is_floating_point(metas[0].dtype), "{}: expected a floating dtype, got {}", args.schema().name,
             name(metas[0].dtype));
  return metas;
}

Lazies random(Lowering& lowering, const LazyArgs& args,
              const std::function<V(Expr counter, DType dtype)>& value) {
  const DType dtype = args["dtype"].is_none() ? DType::float32 : args["dtype"].dtype();
  const Exprs& sizes = args["size"].integers();
  const Expr offset = args["offset"].integer();
  return {lowering.pointwise(dtype, sizes,
                             [&](const Index& i) { return value(offset + flat_index(sizes, i), dtype); })};
}

Lazies lower_rand(Lowering& lowering, const LazyArgs& args) {
  return random(lowering, args, [&](Expr counter, DType dtype) {
    const V u = uniform(lowering, counter, dtype, 0);
    if (!is_half(dtype)) return u;
    // Only as many bits as the half type has below 1, or the largest numbers would be rounded up to 1.
    const double steps = dtype == DType::float16 ? 2048 : 256;
    return floor(u * steps) * (1 / steps);
  });
}

Lazies lower_randn(Lowering& lowering, const LazyArgs& args) {
  return random(lowering, args, [&](Expr counter, DType dtype) {
    const V u = 1 - uniform(lowering, counter, dtype, 0);  // in (0, 1]: its logarithm is finite
    const V angle = uniform(lowering, counter, dtype, 2) * (2 * std::numbers::pi);
    return round_to(sqrt(log(u) * -2.0) * cos(angle), dtype);
  });
}

Metas randint_meta(ShapeEnv& env, const MetaArgs& args) {
  const Expr low = args["low"].integer(), high = args["high"].integer();
  STAX_CHECK(env.expect(lt(low, high)), "randint: expected low < high, got {} and {}", low.str(), high.str());
  Metas metas = random_meta(env, args);
  if (args["dtype"].is_none()) metas[0].dtype = DType::int64;
  const DType dtype = metas[0].dtype;
  const IntegerLimits limits = integer_limits(dtype);
  const bool all = limits.highest == std::numeric_limits<int64_t>::max();
  STAX_CHECK(all || (env.expect(ge(low, limits.lowest)) && env.expect(le(high - 1, limits.highest))),
             "randint: expected numbers that {} holds, from {} to {}, got low {} and high {}", name(dtype),
             limits.lowest, limits.highest, low.str(), high.str());
  return metas;
}

Lazies lower_randint(Lowering& lowering, const LazyArgs& args) {
  const DType dtype = args["dtype"].is_none() ? DType::int64 : args["dtype"].dtype();
  const Exprs& sizes = args["size"].integers();
  const Expr low = args["low"].integer(), span = args["high"].integer() - low;
  return {lowering.pointwise(dtype, sizes, [&](const Index& i) {
    const Expr counter = args["offset"].integer() + flat_index(sizes, i);
    // 63 random bits modulo the span: the bias is below span / 2^63.
    const V high = lowering.random_bits(counter, 0), bottom = lowering.random_bits(counter, 1);
    const V bits = bitwise_xor(shift_left(shift_right(high, lowering.constant(DType::int64, int64_t{1})),
                                          lowering.constant(DType::int64, int64_t{32})),
                               bottom);
    return cast(remainder(bits, lowering.index_value(span)) + lowering.index_value(low), dtype);
  })};
}

Metas mask_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(DType::boolean, args["size"].integers())};
}

Lazies lower_bernoulli_mask(Lowering& lowering, const LazyArgs& args) {
  const Exprs& sizes = args["size"].integers();
  return {lowering.pointwise(DType::boolean, sizes, [&](const Index& i) {
    const Expr counter = args["offset"].integer() + flat_index(sizes, i);
    return lt(uniform(lowering, counter, DType::float32, 0), args["p"].floating());
  })};
}

Vars random_like(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const std::string name = a.schema().name == "rand_like" ? "rand" : "randn";
  return {b.call(name, {x.sizes(), dtype_or(a["dtype"], x.dtype())})};
}

Vars randint_like(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const Expr low = a.schema().position("low") >= 0 ? a["low"].integer() : Expr(0);
  return {b.call("randint", {low, a["high"].integer(), x.sizes(), dtype_or(a["dtype"], x.dtype())})};
}

// 1 with the probabilities that the tensor holds, or with p.
Vars bernoulli(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0);
  const bool constant = a.schema().position("p") >= 0;
  if (constant) {
    STAX_CHECK(a["p"].floating() >= 0 && a["p"].floating() <= 1,
               "bernoulli: expected a probability in [0, 1], got {}", a["p"].floating());
    return {b.call("to.dtype", {b.call("bernoulli_mask", {x.sizes(), a["p"].floating()}), x.dtype()})};
  }
  STAX_CHECK(is_floating_point(x.dtype()), "bernoulli: expected probabilities of a floating dtype, got {}",
             name(x.dtype()));
  const DType wide = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
  return {b.call("bernoulli_formula", {x, b.call("rand", {x.sizes(), wide})})};
}

Metas bernoulli_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(args.tensor(0).dtype, args.tensor(0).sizes, args.tensor(0).device)};
}

Lazies lower_bernoulli(Lowering& lowering, const LazyArgs& args) {
  const Lazy& x = args.tensor(0);
  return {lowering.pointwise(x.dtype, x.sizes, [&](const Index& i) {
    const V positive = cast(lowering.load(x, i), DType::float64) + 0.0;  // -0.0 is 0, too
    const Expr bits = lowering.checked(bitcast(positive, DType::int64), loops::kProbabilityEnd, false);
    const V p = bitcast(V{positive.body, bits.symbol().number}, DType::float64);
    return cast(lt(cast(lowering.load(args.tensor(1), i), DType::float64), p), x.dtype);
  })};
}

// The order of random keys. Two keys of 63 bits hardly ever agree.
Vars randperm(Builder& b, const VarArgs& a) {
  const Expr n = a[0].integer();
  STAX_CHECK(b.env().expect(ge(n, 0)), "randperm: expected a length of at least 0, got {}", n.str());
  const DType dtype = dtype_or(a[1], DType::int64).dtype();
  const int64_t last = integer_limits(dtype).each;
  STAX_CHECK(last == std::numeric_limits<int64_t>::max() || b.env().expect(le(n - 1, last)),
             "randperm: expected a length for which {} holds every position, up to {}, got {}", name(dtype),
             last, n.str());
  const Var keys = b.call("randint", {0, std::numeric_limits<int64_t>::max(), Exprs{n}});
  const Var order = b.call("argsort", {keys});
  return {dtype == DType::int64 ? order : b.call("to.dtype", {order, dtype})};
}

graph::Op random_op(graph::Op op) {
  op.effects = graph::kRandom;
  return op;
}

}  // namespace

Ops factory_rows() {
  return {
      lowered("full(int[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor", full_meta,
              lower_full),
      composite("zeros(int[] size, *, ScalarType? dtype=None) -> Tensor", filled<0>),
      composite("ones(int[] size, *, ScalarType? dtype=None) -> Tensor", filled<1>),
      composite("empty(int[] size, *, ScalarType? dtype=None) -> Tensor", filled<0>),
      composite("zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", filled_like<0>),
      composite("ones_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", filled_like<1>),
      composite("empty_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", filled_like<0>),
      composite("full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("full", {a.tensor(0).sizes(), a[1], dtype_or(a[2], a.tensor(0).dtype())})};
                }),
      composite("new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor", new_filled<0>),
      composite("new_ones(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor", new_filled<1>),
      composite("new_empty(Tensor self, int[] size, *, ScalarType? dtype=None) -> Tensor", new_filled<0>),
      composite("new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("full", {a[1], a[2], dtype_or(a[3], a.tensor(0).dtype())})};
                }),
      composite("scalar_tensor(Scalar s, *, ScalarType? dtype=None) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("full", {Exprs{}, a[0], dtype_or(a[1], DType::float32)})};
                }),
      in_place(composite("fill.Scalar(Tensor self, Scalar value) -> Tensor",
                         [](Builder& b, const VarArgs& a) -> Vars {
                           return {b.call("full_like", {a[0], a[1]})};
                         })),
      in_place(composite("fill.Tensor(Tensor self, Tensor value) -> Tensor",
                         [](Builder& b, const VarArgs& a) -> Vars {
                           STAX_CHECK(a.tensor(1).dim() == 0, "fill: expected a zero-dim value, got {}",
                                      counted(a.tensor(1).dim(), "dimension"));
                           const Var typed = b.call("to.dtype", {a[1], a.tensor(0).dtype()});
                           return {b.call("clone", {b.call("expand", {typed, a.tensor(0).sizes()})})};
                         })),
      in_place(
          composite("zero(Tensor self) -> Tensor",
                    [](Builder& b, const VarArgs& a) -> Vars { return {b.call("zeros_like", {a[0]})}; })),
      composite("arange(Scalar end, *, ScalarType? dtype=None) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("arange.start_step", {0, a[0], 1, a[1]})};
                }),
      composite("arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {b.call("arange.start_step", {a[0], a[1], 1, a[2]})};
                }),
      lowered(
          "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None) -> Tensor",
          arange_meta, lower_arange),
      lowered("linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None) -> Tensor",
              linspace_meta, lower_linspace<false>),
      lowered("logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None) -> "
              "Tensor",
              linspace_meta, lower_linspace<true>),
      lowered("eye(int n, int? m=None, *, ScalarType? dtype=None) -> Tensor", eye_meta, lower_eye),
      random_op(lowered("rand(int[] size, *, ScalarType? dtype=None, int offset=0) -> Tensor",
                        random_float_meta, lower_rand)),
      random_op(lowered("randn(int[] size, *, ScalarType? dtype=None, int offset=0) -> Tensor",
                        random_float_meta, lower_randn)),
      random_op(
          lowered("randint(int low, int high, int[] size, *, ScalarType? dtype=None, int offset=0) -> Tensor",
                  randint_meta, lower_randint)),
      composite("rand_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", random_like),
      composite("randn_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", random_like),
      composite("randint_like(Tensor self, int high, *, ScalarType? dtype=None) -> Tensor", randint_like),
      composite("randint_like.low_dtype(Tensor self, int low, int high, *, ScalarType? dtype=None) -> Tensor",
                randint_like),
      composite("bernoulli(Tensor self) -> Tensor", bernoulli),
      in_place(composite("bernoulli.p(Tensor self, float p) -> Tensor", bernoulli)),
      internal(
          lowered("bernoulli_formula(Tensor self, Tensor draws) -> Tensor", bernoulli_meta, lower_bernoulli)),
      composite("randperm(int n, *, ScalarType? dtype=None) -> Tensor", randperm),
      internal(random_op(lowered("bernoulli_mask(int[] size, float p, *, int offset=0) -> Tensor", mask_meta,
                                 lower_bernoulli_mask))),
  };
}

}  // namespace stax::ops
