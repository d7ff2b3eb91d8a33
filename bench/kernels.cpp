// CPU kernels over 64M-element float32 inputs against a parallel copy of the same bytes (read plus written).
// A ratio of 1 is the copy's bandwidth; the target is at most 1 / 0.85 = 1.176.
#include "bench/harness.h"
#include "bench/program.h"

namespace {

constexpr int64_t kRows = 8192, kColumns = 8192;

std::string pointwise(int operators) {
  constexpr int64_t n = kRows * kColumns;
  std::string text = fmt::format(
      "buffer in0 float32 [{0}] input\nbuffer in1 float32 [{0}] input\nbuffer out0 float32 [{0}] output\n"
      "node op0 \"chain\" [i0 < {0}]\n  v0 = load float32 in0[i0]\n  v1 = load float32 in1[i0]\n",
      n);
  const char* ops[] = {"add", "mul", "maximum"};
  for (int k = 0; k < operators; ++k)
    text += fmt::format("  v{} = {} float32 v{} v{}\n", k + 2, ops[k % 3], k == 0 ? 0 : k + 1,
                        k % 2 == 0 ? 1 : 0);
  return text + fmt::format("  store out0[i0] v{}\n", operators + 1);
}

std::string sum(bool rows) {
  return fmt::format(
      "buffer in0 float32 [{0}, {0}] input\nbuffer out0 float32 [{0}] output\n"
      "node op0 \"sum\" [i0 < {0}] [r0 < {0}]\n  v0 = load float32 in0[{1}]\n  v1 = reduce_sum float32 v0\n"
      "  store out0[i0] v1\n",
      kRows, rows ? fmt::format("{}*i0 + r0", kColumns) : fmt::format("{}*r0 + i0", kColumns));
}

std::string softmax() {
  return fmt::format(R"(
buffer in0 float32 [{0}, {1}] input
buffer out0 float32 [{0}, {1}] output
buffer buf0 float32 [{0}] intermediate
buffer buf1 float32 [{0}] intermediate
node op0 "amax" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{1}*i0 + r0]
  v1 = reduce_max float32 v0
  store buf0[i0] v1
node op1 "sum" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{1}*i0 + r0]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = reduce_sum float32 v3
  store buf1[i0] v4
node op2 "div" [i0 < {0}, i1 < {1}]
  v0 = load float32 in0[{1}*i0 + i1]
  v1 = load float32 buf0[i0]
  v2 = sub float32 v0 v1
  v3 = exp float32 v2
  v4 = load float32 buf1[i0]
  v5 = div_relaxed float32 v3 v4
  store out0[{1}*i0 + i1] v5
)",
                     kRows * 8, kColumns / 8);
}

std::string layer_norm() {
  return fmt::format(R"(
buffer in0 float32 [{0}, {1}] input
buffer in1 float32 [{1}] input
buffer in2 float32 [{1}] input
buffer out0 float32 [{0}, {1}] output
buffer buf0 float32 [{0}] intermediate
buffer buf1 float32 [{0}] intermediate
node op0 "var_mean" [i0 < {0}] [r0 < {1}]
  v0 = load float32 in0[{1}*i0 + r0]
  v1 = reduce_welford float32 v0
  v2 = result float32 v1 number 1
  store buf0[i0] v1
  store buf1[i0] v2
node op1 "layer_norm" [i0 < {0}, i1 < {1}]
  v0 = load float32 in0[{1}*i0 + i1]
  v1 = load float32 buf0[i0]
  v2 = load float32 buf1[i0]
  v3 = constant float32 {1}.0
  v4 = div float32 v2 v3
  v5 = constant float32 1e-05
  v6 = add float32 v4 v5
  v7 = rsqrt float32 v6
  v8 = sub float32 v0 v1
  v9 = mul float32 v8 v7
  v10 = load float32 in1[i1]
  v11 = load float32 in2[i1]
  v12 = mul float32 v9 v10
  v13 = add float32 v12 v11
  store out0[{1}*i0 + i1] v13
)",
                     kRows * 8, kColumns / 8);
}

}  // namespace

int main(int argc, char**) {
  const bench::Machine machine = bench::this_machine();
  bench::print_machine(machine);
  bench::print_head("kernel", "copy");
  const std::vector<std::pair<const char*, std::string>> cases = {{"pointwise, 1 operator", pointwise(1)},
                                                                  {"pointwise, 20 operators", pointwise(20)},
                                                                  {"sum of rows", sum(true)},
                                                                  {"sum of columns", sum(false)},
                                                                  {"softmax", softmax()},
                                                                  {"layer_norm", layer_norm()}};
  for (const auto& [name, text] : cases) {
    bench::Program c(text, machine.threads);
    if (argc > 1) fmt::print("{}\n", c.source());
    bench::ParallelCopy copy(c.bytes());
    bench::print_row(fmt::format("{} ({} kernels)", name, c.kernels()),
                     bench::compare([&] { c.run(); }, [&] { copy.run(); }, {.rounds = 7}));
    std::fflush(stdout);
  }
}
