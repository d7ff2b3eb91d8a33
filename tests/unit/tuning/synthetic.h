// Kernels and costs made up for tests of the search for launch configurations.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tuning/search.h"

namespace stax::tuning {

inline codegen::TileKernel pointwise_kernel(int64_t x) {
  codegen::TileKernel kernel;
  kernel.name = "triton_poi_fused_0";
  kernel.axes.push_back({.kind = codegen::TileAxisKind::x, .numel = x, .size_hint = x});
  return kernel;
}

inline codegen::TileKernel reduction_kernel(int64_t x, int64_t r0, codegen::ReductionHint hint) {
  codegen::TileKernel kernel = pointwise_kernel(x);
  kernel.form = codegen::TileForm::looped;
  kernel.hint = hint;
  kernel.axes.push_back({.kind = codegen::TileAxisKind::r0, .numel = r0, .size_hint = r0});
  return kernel;
}

inline codegen::LaunchConfig x_config(int64_t x, int32_t warps) {
  return {.blocks = {{"XBLOCK", x}}, .warps = warps, .stages = 1};
}

/// Answers from a function, and counts the launches that it was asked for.
class FakeBench : public Bench {
 public:
  using Cost = std::function<Measured(const codegen::LaunchConfig&)>;
  explicit FakeBench(Cost cost) : cost_(std::move(cost)) {}

  Measured measure(const codegen::LaunchConfig& config, int32_t repeats) override {
    launches[to_string(config)] += repeats;
    ++measurements;
    return cost_(config);
  }

  std::map<std::string, int64_t> launches;
  int64_t measurements = 0;

 private:
  Cost cost_;
};

}  // namespace stax::tuning
