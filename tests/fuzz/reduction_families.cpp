// Families of reductions, scans, normalisations and products.
#include "fuzz/generator_state.h"

namespace stax::fuzz {
namespace {

const auto has_dims = [](const graph::Var& v) { return v.dim() > 0; };
const auto has_elements = [](const graph::Var& v) { return !v.numel().is(0); };
const auto has_dims_and_elements = [](const graph::Var& v) { return v.dim() > 0 && !v.numel().is(0); };

constexpr Traits kSum = {.approximate = true, .combines = true};

// Sums of integers are exact, and give other dtypes than floats.
Traits sum_of(Generator& g, Ref x) {
  return is_floating_point(g.dtype(x)) ? kSum : Traits{};
}

RefArg flag(Generator& g) {
  return Number::of(g.random().one_in(3));
}

bool over_dims(Generator& g, const char* op, Ref x, Traits traits) {
  return g.call(op, {x, g.random_dims(g.var(x).dim()), flag(g)}, traits);
}

bool add_sum(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kAny);
  if (!x) return false;
  if (random.one_in(6)) return g.call("sum", {*x}, sum_of(g, *x));
  return over_dims(g, "sum.dim_IntList", *x, sum_of(g, *x));
}

bool add_mean(Generator& g) {
  const auto x = g.pick(kFloats);
  return x && over_dims(g, "mean.dim", *x, kSum);
}

bool add_product_of_elements(Generator& g) {
  const auto x = g.pick(kAny, false, has_dims_and_elements);
  return x && g.call("prod.dim_int", {*x, g.random_dim(g.var(*x).dim()), flag(g)}, sum_of(g, *x));
}

bool add_extremum(Generator& g) {
  const auto x = g.pick(kAny, false, has_elements);
  return x && over_dims(g, g.random().of({"amax", "amin"}), *x, {});
}

bool add_position(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kAny, true, has_dims_and_elements);
  if (!x) return false;
  const char* op = random.of({"max.dim", "min.dim", "argmax", "argmin"});
  return g.call(op, {*x, g.random_dim(g.var(*x).dim()), flag(g)});
}

bool add_truth(Generator& g) {
  const auto x = g.pick(kAny, true);
  return x && over_dims(g, g.random().of({"any.dims", "all.dims"}), *x, {});
}

bool add_variance(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kFloats, false, has_elements);
  if (!x) return false;
  const char* op =
      random.of({"var.correction", "std.correction", "var_mean.correction", "std_mean.correction"});
  return g.call(op, {*x, g.random_dims(g.var(*x).dim()), Number::of(random.integer(0, 1)), flag(g)}, kSum);
}

bool add_log_sum(Generator& g) {
  const auto x = g.pick(kFloats, false, has_elements);
  return x && over_dims(g, "logsumexp", *x, kSum);
}

bool add_norm(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kFloats, false, has_elements);
  if (!x) return false;
  const double p = random.of({1.0, 2.0, 2.0, 3.0});
  return g.call("linalg_vector_norm", {*x, Number::of(p), g.random_dims(g.var(*x).dim()), flag(g)}, kSum);
}

bool add_count(Generator& g) {
  const auto x = g.pick(kAny, true);
  return x && g.call("count_nonzero", {*x, g.random_dims(g.var(*x).dim())});
}

}  // namespace

bool add_reduction(Generator& g) {
  return g.random().of<Family>({add_sum, add_sum, add_sum, add_mean, add_product_of_elements, add_extremum,
                                add_extremum, add_position, add_position, add_truth, add_variance,
                                add_log_sum, add_norm, add_count})(g);
}

bool add_scan(Generator& g) {
  Random& random = g.random();
  const char* op = random.of({"cumsum", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"});
  const std::string_view name = op;
  const bool extremum = name == "cummax" || name == "cummin";
  const auto x = g.pick(name == "logcumsumexp" ? kFloats : kAny, extremum, has_dims_and_elements);
  if (!x) return false;
  return g.call(op, {*x, g.random_dim(g.var(*x).dim())}, extremum ? Traits{} : sum_of(g, *x));
}

bool add_normalization(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kFloats, false, has_dims);
  if (!x) return false;
  const int64_t rank = g.var(*x).dim();
  if (random.one_in(2)) {
    const char* op = random.of({"softmax.int", "log_softmax.int"});
    return g.call(op, {*x, g.random_dim(rank)}, kSum);
  }
  const std::vector<int64_t> sizes = g.sizes(*x);
  const int64_t inner = random.integer(1, rank);
  const std::vector<int64_t> shape(sizes.end() - inner, sizes.end());
  const std::vector<Expr> symbolic(shape.begin(), shape.end());
  const auto parameter = [&]() -> RefArg {
    if (random.one_in(2)) return {};
    return g.input(g.dtype(*x), shape);
  };
  if (random.one_in(3)) return g.call("rms_norm", {*x, symbolic, parameter()}, kSum);
  RefArg weight = parameter(), bias = parameter();
  return g.call("layer_norm", {*x, symbolic, std::move(weight), std::move(bias)}, kSum);
}

bool add_product(Generator& g) {
  const auto x = g.pick(kFloats, false, [](const graph::Var& v) { return v.dim() == 2; });
  if (!x) return false;
  const int64_t columns = g.random().integer(1, 20);
  return g.call("mm", {*x, g.input(g.dtype(*x), {g.sizes(*x)[1], columns})}, kSum);
}

}  // namespace stax::fuzz
