// Compiled functions for changing sizes against those for one, on a GPU: ratios of the time that the device
// spends, in one run.
//
// One artifact is compiled at the hint, and called there and at sizes of 1/8 and 8 times as many rows or
// columns. It runs in turns with an artifact that is compiled for that size alone. Both choose their launch
// configurations by measuring.
#include <fmt/core.h>

#include <array>
#include <cstdio>

#include "bench/gpu_time.h"
#include "stax/stax.h"

namespace {

using stax::Tensor;

struct Inputs {
  Tensor x, y, weight, bias;
};

/// Normally distributed numbers, the same for all rows of the table.
Tensor numbers(int64_t rows, int64_t columns) {
  static const Tensor some = stax::randn({1 << 25}).cuda();
  return some.slice(0, 0, rows * columns).view({rows, columns});
}

Inputs inputs(int64_t rows, int64_t columns) {
  const Tensor x = numbers(rows, columns);
  return {x, x.flip({0}), x.index({0}).clone(), x.index({1}).clone()};
}

struct Shape {
  int64_t rows, columns;
};

constexpr Shape kHint{4096, 1024};
constexpr std::array<Shape, 5> kShapes{kHint,
                                       {kHint.rows / 8, kHint.columns},
                                       {kHint.rows * 8, kHint.columns},
                                       {kHint.rows, kHint.columns / 8},
                                       {kHint.rows, kHint.columns * 8}};

/// Whether all ratios of a row are within 5 % at the hint and 15 % elsewhere.
template <class F, class Call>
bool row(const char* what, F f, Call call) {
  bool met = true;
  auto dynamic = stax::compile(f, {.dynamic = true});
  call(dynamic, inputs(kHint.rows, kHint.columns));
  fmt::print("| {} |", what);
  for (size_t k = 0; k < kShapes.size(); ++k) {
    const Inputs in = inputs(kShapes[k].rows, kShapes[k].columns);
    auto fixed = stax::compile(f);
    const std::vector<double> ms =
        bench::device_milliseconds({[&] { call(dynamic, in); }, [&] { call(fixed, in); }});
    const double ratio = ms[0] / ms[1];
    const bool within = ratio <= (k == 0 ? 1.05 : 1.15);
    met = met && within;
    fmt::print(" {:.2f}{} ({:.1f} us) |", ratio, within ? "" : " !", ms[1] * 1e3);
    std::fflush(stdout);
  }
  fmt::print("{}\n", dynamic.artifacts().size() == 1 ? "" : " several artifacts");
  return met;
}

}  // namespace

int main() {
  if (!stax::cuda::is_available()) {
    fmt::print("not run: {}\n", stax::cuda::unavailable_reason());
    return 0;
  }
  fmt::print(
      "{}\nTime of a dynamic artifact over that of a static one (in brackets); the hint is {} x {}\n\n"
      "| | at the hint | rows / 8 | rows * 8 | columns / 8 | columns * 8 |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: |\n",
      stax::device::cuda_properties(0).name, kHint.rows, kHint.columns);
  const auto one = [](auto& f, const Inputs& i) { (void)f(i.x); };
  bool met = row(
      "relu(x + y) * 2", [](const Tensor& a, const Tensor& b) { return stax::relu(a + b) * 2; },
      [](auto& f, const Inputs& i) { (void)f(i.x, i.y); });
  met &= row(
      "sums of rows", [](const Tensor& a) { return a.sum(-1); }, one);
  met &= row(
      "sums of columns", [](const Tensor& a) { return a.sum(0); }, one);
  met &= row(
      "softmax of rows", [](const Tensor& a) { return stax::softmax(a, -1); }, one);
  met &= row(
      "layer_norm of rows",
      [](const Tensor& a, const Tensor& w, const Tensor& b) {
        return stax::layer_norm(a, {w.size(0)}, w, b);
      },
      [](auto& f, const Inputs& i) { (void)f(i.x, i.weight, i.bias); });
  fmt::print("\n{}\n", met ? "all within 5 % at the hint and 15 % elsewhere"
                           : "marked !: more than 5 % at the hint or 15 % elsewhere");
}
