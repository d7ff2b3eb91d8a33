#include "fuzz/program.h"

#include <fmt/core.h>

#include <cmath>
#include <optional>

#include "fuzz/random.h"

namespace stax::fuzz {

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
    std::vector<int64_t> sizes;
    int64_t count = 1;
    for (const Expr e : v.sizes()) {
      sizes.push_back(e.value());
      count *= sizes.back();
    }
    const double step = epsilon(v.dtype()) * (is_half(v.dtype()) ? 1 : units);
    std::vector<double> factors(static_cast<size_t>(count));
    for (double& f : factors) f = 1 + (random_.one_in(2) ? step : -step) * random_.real(0.5, 1);
    noise_.inputs.push_back(testing::array(v.dtype(), sizes, factors));
    const Var factor = builder_.input(meta_of(noise_.inputs.back()));
    return builder_.call("mul.Tensor", {v, factor});
  }

 private:
  graph::Builder& builder_;
  Noise& noise_;
  Random random_;
};

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
    for (Var& v : builder.call_all(step.op, args)) {
      values.results.push_back(noisy && step.approximate ? noisy->shake(v, 4) : v);
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
