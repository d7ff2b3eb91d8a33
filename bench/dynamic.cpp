// Compiled functions for changing sizes against those for one: ratios in one run, through the public
// interface.
//
//   bench_dynamic [--only WORD]   a Markdown table; only the functions with WORD in their names
//
// One artifact is compiled at the hint, and called there and at sizes of 1/8 and 8 times as many rows or
// columns. It runs alternately with an artifact that is compiled for that size alone.
#include <array>

#include "bench/harness.h"
#include "stax/stax.h"

namespace {

using stax::Tensor;

struct Inputs {
  Tensor x, y, weight, bias;
};

Inputs inputs(int64_t rows, int64_t columns) {
  return {stax::rand({rows, columns}), stax::rand({rows, columns}), stax::rand({columns}),
          stax::rand({columns})};
}

Tensor chain(const Tensor& x, const Tensor& y) {
  Tensor v = x;
  for (int k = 0; k < 20; ++k) {
    const Tensor& other = k % 2 == 0 ? y : x;
    v = k % 3 == 0 ? v + other : k % 3 == 1 ? v * other : stax::maximum(v, other);
  }
  return v;
}

struct Shape {
  int64_t rows, columns;
};

class Table {
 public:
  explicit Table(std::string_view only) : only_(only) {}

  void run() {
    row(
        "relu(x + y) * 2", [](const Tensor& a, const Tensor& b) { return stax::relu(a + b) * 2; },
        [](auto& f, const Inputs& i) { (void)f(i.x, i.y); });
    const auto one = [](auto& f, const Inputs& i) { (void)f(i.x); };
    row(
        "sums of rows", [](const Tensor& a) { return a.sum(-1); }, one);
    row(
        "sums of columns", [](const Tensor& a) { return a.sum(0); }, one);
    row(
        "softmax of rows", [](const Tensor& a) { return stax::softmax(a, -1); }, one);
    row(
        "layer_norm of rows",
        [](const Tensor& a, const Tensor& w, const Tensor& b) {
          return stax::layer_norm(a, {w.size(0)}, w, b);
        },
        [](auto& f, const Inputs& i) { (void)f(i.x, i.weight, i.bias); });
    row(
        "sum of everything", [](const Tensor& a) { return a.sum(); }, one);
    row("chain of 20", chain, [](auto& f, const Inputs& i) { (void)f(i.x, i.y); });
  }
  bool met() const { return met_; }

 private:
  template <class F, class Call>
  void row(const std::string& what, F f, Call call) {
    if (what.find(only_) == std::string::npos) return;
    for (const Shape hint : {Shape{64, 128}, Shape{4096, 1024}}) {
      auto dynamic = stax::compile(f, {.dynamic = true});
      call(dynamic, inputs(hint.rows, hint.columns));
      fmt::print("| {} | {} x {} |", what, hint.rows, hint.columns);
      const std::array<Shape, 5> shapes{hint,
                                        {hint.rows / 8, hint.columns},
                                        {hint.rows * 8, hint.columns},
                                        {hint.rows, hint.columns / 8},
                                        {hint.rows, hint.columns * 8}};
      for (size_t k = 0; k < shapes.size(); ++k) {
        const Inputs in = inputs(shapes[k].rows, shapes[k].columns);
        auto fixed = stax::compile(f);
        // Short samples, so that other work on the machine spoils few of them.
        const std::function<void()> changing = [&] { call(dynamic, in); }, one = [&] { call(fixed, in); };
        one();
        const bool is_short = bench::time_calls(one, 1) < 5e-4;
        const bench::Comparison c =
            bench::compare(changing, one, is_short ? bench::Options{201, 1e-3} : bench::Options{31, 5e-3});
        const bool met = c.ratio <= (k == 0 ? 1.05 : 1.15);
        met_ = met_ && met;
        fmt::print(" {:.2f}{} ({}) |", c.ratio, met ? "" : " !", bench::format_seconds(c.b));
        std::fflush(stdout);
      }
      fmt::print("{}\n", dynamic.artifacts().size() == 1 ? "" : " several artifacts");
    }
  }

  std::string_view only_;
  bool met_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  std::string_view only;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      fmt::print(stderr, "bench_dynamic: unknown option {}; there is --only WORD\n", argv[i]);
      return 2;
    }
  }
  bench::print_machine();
  fmt::print(
      "Time of a dynamic artifact over that of a static one (in brackets); medians of alternating runs\n\n"
      "| | hint | at the hint | rows / 8 | rows * 8 | columns / 8 | columns * 8 |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
  Table table(only);
  table.run();
  fmt::print("\n{}\n", table.met() ? "all within 5 % at the hint and 15 % elsewhere"
                                   : "marked !: more than 5 % at the hint or 15 % elsewhere");
}
