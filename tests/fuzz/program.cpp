#include "fuzz/program.h"

#include <fmt/core.h>

#include <cmath>
#include <numbers>
#include <optional>

#include "fuzz/random.h"

namespace stax::fuzz {

using graph::num;
using graph::Var;

namespace {

// The distance from 1 to the next number of the dtype.
double epsilon(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float64:
      return 0x1p-52;
    case DType::boolean:
    case DType::uint8:
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
    case DType::float32:
      return 0x1p-23;
  }
  return 0;
}

class NoisyBuild {
 public:
  NoisyBuild(graph::Builder& builder, Noise& noise) : builder_(builder), noise_(noise), random_(noise.seed) {}

  /// The float values, each off by at least half of `units` and at most `units` units of the last place.
  Var shake(const Var& v, double units) {
    if (!is_floating_point(v.dtype())) return v;
    const double step = epsilon(v.dtype()) * (is_half(v.dtype()) ? 1 : units);
    return v * numbers(v, [&] { return 1 + (random_.one_in(2) ? step : -step) * random_.real(0.5, 1); });
  }

  /// The result of a function that is right to a few units, and may be 0 where it would be subnormal.
  Var function(const Var& v) {
    if (!is_floating_point(v.dtype())) return v;
    const double lowest = v.dtype() == DType::float64 ? 0x1p-1022 : 0x1p-126;
    const Var tiny = builder_.call("lt.Tensor", {builder_.call("abs", {v}), num(lowest)});
    const Var flushed = v * numbers(v, [&] { return static_cast<double>(random_.integer(0, 1)); });
    return shake(builder_.call("where.self", {tiny, flushed, v}), 4);
  }

  /// A product, which is anything where a partial one may leave the range of the dtype that it is computed
  /// in.
  Var product(const Var& v, const graph::VarArg& factors, const graph::VarArg& dim, bool scan) {
    if (!is_floating_point(v.dtype())) return v;
    const Var size = builder_.call("abs", {factors});
    const Var large = builder_.call("clamp_min", {size, num(1)});
    const Var zero = builder_.call("eq.Tensor", {size, num(0)});
    const Var small = builder_.call("where.self", {zero, num(1), builder_.call("clamp_max", {size, num(1)})});
    Var most = builder_.call("cumprod", {large, dim}), least = builder_.call("cumprod", {small, dim});
    if (!scan) {
      const std::vector<Expr> dims = {dim.integer()};
      const bool keep = v.dim() == size.dim();
      most = builder_.call("amax", {most, dims, keep});
      least = builder_.call("amin", {least, dims, keep});
    }
    const Var inside = builder_.call("logical_and", {builder_.call("lt.Tensor", {most, num(1e37)}),
                                                     builder_.call("gt.Tensor", {least, num(1e-37)})});
    const Var any = numbers(v, [&] { return random_.one_in(2) ? std::nan("") : 1.0; });
    return builder_.call("where.self", {inside, function(v), any});
  }

  /// A moment of x, which is infinite or NaN where x is, as the order of its elements has it.
  Var moment(const Var& v, const std::vector<graph::VarArg>& args) {
    const Var sum = builder_.call("sum.dim_IntList", {args[0], args[1], args[3]});
    const Var any = numbers(v, [&] { return random_.one_in(2) ? std::nan("") : 1.0; });
    return builder_.call("where.self", {builder_.call("isfinite", {sum}), function(v), any});
  }

  Var call(std::string_view op, std::initializer_list<graph::VarArg> args) {
    return function(builder_.call(op, args));
  }

 private:
  /// A further input like v, with the given elements.
  template <class F>
  Var numbers(const Var& v, F&& element) {
    std::vector<int64_t> sizes;
    int64_t count = 1;
    for (const Expr e : v.sizes()) {
      sizes.push_back(e.value());
      count *= sizes.back();
    }
    std::vector<double> elements(static_cast<size_t>(count));
    for (double& e : elements) e = element();
    noise_.inputs.push_back(testing::array(v.dtype(), sizes, elements));
    return builder_.input(meta_of(noise_.inputs.back()));
  }

  graph::Builder& builder_;
  Noise& noise_;
  Random random_;
};

// Operators in whose formulas the last places of a function can become the first ones of the result.

Var tanhshrink(NoisyBuild& noisy, const Var& x) {
  return x - noisy.call("tanh", {x});
}

Var gelu(NoisyBuild& noisy, const Var& x) {
  return x * num(0.5) * (noisy.call("erf", {x * num(std::sqrt(0.5))}) + num(1));
}

// Next to a zero of the function the terms that cancel are about 1.
Var near_terms_of_one(NoisyBuild& noisy, const std::string& op, const Var& x) {
  const Var y = noisy.call(op, {x});
  return y + (noisy.shake(x.builder().call("ones_like", {y}), 8) - num(1));
}

Var log_of_sum(NoisyBuild& noisy, const Var& a, const Var& b, const char* exponential, double scale) {
  const Var sum = noisy.call(scale == 1 ? "logaddexp" : "logaddexp2", {a, b});
  const Var high = a.builder().call("maximum", {a, b}), low = a.builder().call("minimum", {a, b});
  const Var tail = noisy.call("log1p", {noisy.call(exponential, {low - high})}) * num(scale);
  const Var formula = high + tail;
  const Var finite = a.builder().call("isfinite", {formula});
  return a.builder().call("where.self", {finite, formula, sum});
}

std::optional<Var> noisy_formula(NoisyBuild& noisy, const std::string& op,
                                 const std::vector<graph::VarArg>& args) {
  if (op == "tanhshrink") return tanhshrink(noisy, args[0].tensor());
  if (op == "lgamma" || op == "digamma") return near_terms_of_one(noisy, op, args[0].tensor());
  if (op == "gelu") return gelu(noisy, args[0].tensor());
  if (op.rfind("logaddexp", 0) != 0 || !args[1].is_tensor()) return std::nullopt;
  const bool two = op == "logaddexp2";
  return log_of_sum(noisy, args[0].tensor(), args[1].tensor(), two ? "exp2" : "exp",
                    two ? 1 / std::numbers::ln2 : 1);
}

// How many units each summand may be off: rounding errors of n additions in any order.
double units_of_sum(const Var& v) {
  return 4 + std::sqrt(static_cast<double>(v.numel().value()));
}

}  // namespace

graph::TensorMeta meta_of(const Array& array) {
  graph::TensorMeta meta;
  meta.dtype = array.dtype;
  for (const int64_t s : array.sizes) meta.sizes.emplace_back(s);
  for (const int64_t s : array.strides) meta.strides.emplace_back(s);
  return meta;
}

Var Values::at(Ref ref) const {
  return ref.is_input() ? inputs.at(ref.id) : results.at(ref.id - Ref::kFirstResult);
}

std::vector<graph::VarArg> bind_args(const Step& step, const Values& values) {
  std::vector<graph::VarArg> out;
  for (const RefArg& a : step.args) {
    out.push_back(map_tensors<Var>(a, [&](Ref r) { return values.at(r); }));
  }
  return out;
}

graph::Graph build(const Program& program, ShapeEnv& env, Noise* noise) {
  graph::Graph graph;
  graph::Builder builder(ops::table(), env, graph);
  Values values;
  for (const Array& a : program.inputs) values.inputs.push_back(builder.input(meta_of(a)));
  std::optional<NoisyBuild> noisy;
  if (noise) noisy.emplace(builder, *noise);
  for (const Step& step : program.steps) {
    std::vector<graph::VarArg> args = bind_args(step, values);
    if (noisy && step.combines && args[0].is_tensor()) {
      args[0] = noisy->shake(args[0].tensor(), units_of_sum(args[0].tensor()));
    }
    const std::optional<Var> formula = noisy ? noisy_formula(*noisy, step.op, args) : std::nullopt;
    const std::vector<Var> results = formula ? std::vector<Var>{*formula} : builder.call_all(step.op, args);
    if (noisy && (step.op == "cumprod" || step.op == "prod.dim_int")) {
      values.results.push_back(noisy->product(results[0], args[0], args[1], step.op == "cumprod"));
      continue;
    }
    if (noisy && step.op.find(".correction") != std::string::npos) {
      for (const Var& v : results) values.results.push_back(noisy->moment(v, args));
      continue;
    }
    for (const Var& v : results) {
      values.results.push_back(noisy && step.approximate && !formula ? noisy->function(v) : v);
    }
  }
  for (const Ref r : program.outputs) graph.outputs.push_back({values.at(r).value(), -1});
  for (const auto& w : program.write_backs)
    graph.write_backs.push_back({w.input, values.at(w.value).value()});
  return graph;
}

std::string text(const Program& program) {
  ShapeEnv env;
  return fmt::format("seed {}\n{}", program.seed, build(program, env).str());
}

}  // namespace stax::fuzz
