// Kernels for sizes that change: which forms there are, by which hints, and their values at sizes far from
// these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "symbolic/shape_env.h"
#include "unit/codegen/compiled.h"

namespace stax::codegen {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// Every form of the only kernel of a program, compiled.
class Forms {
 public:
  /// s0, s1, ... have `hints`.
  Forms(std::string_view text, const std::vector<int64_t>& hints, Interval range = Interval::at_least(0),
        int64_t cache_bytes = 1 << 30)
      : program_(loops::parse_program(text)) {
    loops::verify(program_);
    for (const int64_t hint : hints) env_.new_symbol(SymbolKind::size, hint, range);
    const device::CpuTarget& cpu = device::cpu_target();
    const schedule::Target target{
        .processors = 2, .vector_bytes = cpu.vector_bytes, .cache_bytes = cache_bytes, .phases = 4};
    const Sizes sizes(env_);
    const schedule::Schedule schedule = schedule::make_schedule(program_, target, sizes);
    EXPECT_EQ(schedule.groups.size(), 1u);
    kernels = make_kernels(program_, schedule.groups.at(0), target, sizes, 8);
    runtime::CompileFlags flags;
    flags.target = cpu.flags;
    library_ = test_compiler().compile(print_module(kernels).source, flags);
  }

  /// Runs form `k`, cut in `pieces` calls. One pointer for each buffer of the program.
  void run(size_t k, const std::vector<void*>& pointers, const std::vector<int64_t>& sizes,
           int pieces = 1) const {
    const KernelInfo& info = kernels.at(k).info;
    const auto value = [&](Expr e) {
      return evaluate(e, [&](Symbol s) { return sizes.at(static_cast<size_t>(s.number)); });
    };
    std::vector<void*> buffers;
    for (loops::BufferId b : info.buffers) buffers.push_back(pointers.at(static_cast<size_t>(b)));
    std::vector<char> scratch(static_cast<size_t>(value(info.scratch_bytes)) + 64);
    buffers.push_back(reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64));
    std::vector<long> symbols;
    for (Symbol s : info.symbols) symbols.push_back(value(Expr(s)));
    const auto entry = reinterpret_cast<KernelEntry>(library_->symbol(info.name));
    KernelStatus status;
    long first = 0;
    const auto run_phase = [&](long points) {
      for (int piece = 0; piece < pieces; ++piece)
        entry(buffers.data(), symbols.data(), nullptr, &status.node, first + points * piece / pieces,
              first + points * (piece + 1) / pieces);
      first += points;
    };
    run_phase(value(info.parallel_extent));
    for (const KernelPhase& phase : info.later) run_phase(value(phase.extent));
  }

  /// Whether form `k` may be launched at these sizes.
  bool allowed(size_t k, const std::vector<int64_t>& sizes) const {
    const auto value = [&](Expr e) {
      return evaluate(e, [&](Symbol s) { return sizes.at(static_cast<size_t>(s.number)); });
    };
    const auto& when = kernels.at(k).info.when;
    return std::all_of(when.begin(), when.end(),
                       [&](const Condition& c) { return holds(c.relation, value(c.left), value(c.right)); });
  }

  std::string choices(size_t k) const {
    std::string text;
    for (const Choice& c : kernels.at(k).choices) text += c.what + ": " + c.reason + "\n";
    return text;
  }

  std::vector<Kernel> kernels;

 private:
  loops::Program program_;
  ShapeEnv env_;
  std::shared_ptr<runtime::Module> library_;
};

// ---- a sum in 8 parts, whose last is shorter or empty ----

constexpr std::string_view kSplitSum = R"(
buffer in0 float32 [s0] input
buffer out0 float32 [] output
buffer buf0 float32 [8] intermediate
bind s0 size 0 0
node op0 "sum" [i0 < 8] [r0 < (s0 + 7)//8]
  v0 = index_value int64 ((s0 + 7)//8)*i0 + r0
  v1 = index_value int64 s0
  v2 = lt bool v0 v1
  v3 = load float32 in0[((s0 + 7)//8)*i0 + r0] mask v2
  v4 = constant float32 0
  v5 = where float32 v2 v3 v4
  v6 = reduce_sum float32 v5
  store buf0[i0] v6
node op1 "sum" [] [r0 < 8]
  v0 = load float32 buf0[r0]
  v1 = reduce_sum float32 v0
  store out0[0] v1
)";

TEST(DynamicKernels, SplitSumsOfAnyLength) {
  const Forms forms(kSplitSum, {1 << 16});
  for (const int64_t n : {0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000, 4099, 131072, 300007}) {
    std::vector<float> in(static_cast<size_t>(n) + 1);
    double expected = 0;
    for (int64_t i = 0; i < n; ++i) expected += in[static_cast<size_t>(i)] = static_cast<float>(i % 7 - 2);
    for (size_t k = 0; k < forms.kernels.size(); ++k) {
      if (!forms.allowed(k, {n})) continue;
      for (const int pieces : {1, 3}) {
        float parts[8], out = -1;
        forms.run(k, {in.data(), &out, parts}, {n}, pieces);
        EXPECT_EQ(out, static_cast<float>(expected)) << n << " values, form " << k;  // exact: small integers
      }
    }
  }
}

TEST(DynamicKernels, UnevenPartsMaskNoValue) {
  const Forms forms(kSplitSum, {1 << 16});
  const std::string text = forms.kernels.back().str();
  EXPECT_THAT(text, Not(HasSubstr("mask"))) << text;
  EXPECT_THAT(text, Not(HasSubstr("compute lt"))) << text;
}

// ---- softmax: rows that are held between passes ----

constexpr std::string_view kExpSum = R"(
buffer in0 float32 [s0, s1] input
buffer out0 float32 [s0, s1] output
buffer buf0 float32 [s0] intermediate
bind s0 size 0 0
bind s1 size 0 1
node op0 "sum" [i0 < s0] [r0 < s1]
  v0 = load float32 in0[s1*i0 + r0]
  v1 = exp float32 v0
  v2 = reduce_sum float32 v1
  store buf0[i0] v2
node op1 "div" [i0 < s0, i1 < s1]
  v0 = load float32 in0[s1*i0 + i1]
  v1 = exp float32 v0
  v2 = load float32 buf0[i0]
  v3 = div float32 v1 v2
  store out0[s1*i0 + i1] v3
)";

void expect_shares(const Forms& forms, size_t k, int64_t rows, int64_t columns) {
  const std::vector<float> in = numbers<float>(static_cast<size_t>(rows * columns));
  std::vector<float> out(in.size()), sums(static_cast<size_t>(rows));
  forms.run(k, {const_cast<float*>(in.data()), out.data(), sums.data()}, {rows, columns}, 2);
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j) sum += std::exp(double{in[static_cast<size_t>(i * columns + j)]});
    for (int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<size_t>(i * columns + j);
      ASSERT_NEAR(out[at], std::exp(double{in[at]}) / sum, 2e-6)
          << rows << " x " << columns << ", form " << k;
    }
  }
}

TEST(DynamicKernels, RowsAreHeldByTheHint) {
  const Forms held(kExpSum, {64, 128}), recomputed(kExpSum, {8, 1 << 20});
  EXPECT_THAT(held.choices(held.kernels.size() - 1), HasSubstr("rows are held between passes"));
  EXPECT_FALSE(held.kernels.back().info.scratch_bytes.is(0));
  EXPECT_THAT(recomputed.choices(recomputed.kernels.size() - 1), HasSubstr("rows are recomputed"));
  EXPECT_TRUE(recomputed.kernels.back().info.scratch_bytes.is(0));
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{3, 1}, {5, 16}, {2, 17}, {4, 1000}, {1, 70001}}) {
    for (size_t k = 0; k < held.kernels.size(); ++k) {
      if (held.allowed(k, {rows, columns})) expect_shares(held, k, rows, columns);
    }
    expect_shares(recomputed, recomputed.kernels.size() - 1, rows, columns);
  }
}

TEST(DynamicKernels, RowsWithALowUpperBoundLieOnTheStack) {
  const Forms forms(kExpSum, {64, 128}, Interval::of(2, 1024));
  EXPECT_TRUE(forms.kernels.back().info.scratch_bytes.is(0));
  EXPECT_THAT(forms.kernels.back().str(), HasSubstr("array float32"));
  EXPECT_THAT(forms.choices(forms.kernels.size() - 1), HasSubstr("for all sizes"));
  expect_shares(forms, forms.kernels.size() - 1, 3, 1024);
}

// Rows that may be one vector have a form without loops, which is launched for no others.
TEST(DynamicKernels, ShortRowsHaveAFormOfTheirOwn) {
  const Forms forms(kExpSum, {64, 64});
  size_t of_one_vector = 0;
  for (size_t k = 0; k + 1 < forms.kernels.size(); ++k) {
    if (forms.choices(k).find("a vector for each row") == std::string::npos) continue;
    ++of_one_vector;
    EXPECT_FALSE(forms.allowed(k, {64, 64}));
    EXPECT_TRUE(forms.allowed(k, {64, 3}));
    expect_shares(forms, k, 7, 3);
    expect_shares(forms, k, 7, 1);
  }
  EXPECT_GE(of_one_vector, 1u);
  EXPECT_THAT(forms.kernels.back().info.when, IsEmpty());
}

// ---- stores past the caches, sums of columns ----

constexpr std::string_view kDouble = R"(
buffer in0 float32 [s0] input
buffer out0 float32 [s0] output
bind s0 size 0 0
node op0 "add" [i0 < s0]
  v0 = load float32 in0[i0]
  v1 = add float32 v0 v0
  store out0[i0] v1
)";

TEST(DynamicKernels, LaunchesAskWhetherResultsFitInTheCaches) {
  // 8 bytes an element, and half of the cache of 64 KiB: 4096 elements.
  const Forms near(kDouble, {3000}, Interval::at_least(0), 64 << 10);
  ASSERT_THAT(near.kernels, SizeIs(2));
  EXPECT_THAT(near.kernels[0].str(), HasSubstr("stream"));
  EXPECT_THAT(near.kernels[1].str(), Not(HasSubstr("stream")));
  EXPECT_FALSE(near.allowed(0, {4096}));
  EXPECT_TRUE(near.allowed(0, {4097}));
  for (const int64_t n : {0, 1, 15, 16, 17, 4097, 5000}) {
    std::vector<float> in(static_cast<size_t>(n) + 1, 1.5f), out(in.size());
    for (const size_t k : {0, 1}) {
      near.run(k, {in.data(), out.data()}, {n});
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], 3) << n << " " << i;
    }
  }
  EXPECT_THAT(Forms(kDouble, {10}, Interval::at_least(0), 64 << 10).kernels, SizeIs(1));
  EXPECT_THAT(Forms(kDouble, {1 << 20}, Interval::at_least(0), 64 << 10).kernels.at(0).str(),
              HasSubstr("stream"));
}

constexpr std::string_view kColumns = R"(
buffer in0 float32 [s0, s1] input
buffer out0 float32 [s1] output
bind s0 size 0 0
bind s1 size 0 1
node op0 "sum" [i0 < s1] [r0 < s0]
  v0 = load float32 in0[i0 + s1*r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)";

TEST(DynamicKernels, SumsOfColumnsInEveryForm) {
  const Forms forms(kColumns, {64, 128});
  EXPECT_GE(forms.kernels.size(), 2u);
  EXPECT_THAT(forms.kernels.back().str(), HasSubstr("array float32"));  // a block: 64 rows by the hint
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{0, 5},
                                      {1, 1},
                                      {8, 128},
                                      {31, 17},
                                      {32, 16},
                                      {33, 4097},
                                      {511, 3},
                                      {512, 40},
                                      {513, 40},
                                      {1600, 130}}) {
    std::vector<float> in(static_cast<size_t>(rows * columns) + 1), expected(static_cast<size_t>(columns));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const float x = static_cast<float>((3 * i + 5 * j) % 11);
        in[static_cast<size_t>(i * columns + j)] = x;
        expected[static_cast<size_t>(j)] += x;  // exact: small integers
      }
    }
    for (size_t k = 0; k < forms.kernels.size(); ++k) {
      if (!forms.allowed(k, {rows, columns})) continue;
      std::vector<float> out(static_cast<size_t>(columns), -1);
      forms.run(k, {in.data(), out.data()}, {rows, columns}, 3);
      EXPECT_EQ(out, expected) << rows << " x " << columns << ", form " << k;
    }
  }
}

// Long rows are summed in parts whatever the hint is: 2^25 ones in one chain of float32 additions would stop
// at 2^24 for each of its lanes and copies; the third values show where parts are lost.
TEST(DynamicKernels, LongSumsKeepTheirDigits) {
  constexpr std::string_view text = R"(
buffer in0 float32 [s0] input
buffer out0 float32 [] output
bind s0 size 0 0
node op0 "sum" [] [r0 < s0]
  v0 = load float32 in0[r0]
  v1 = reduce_sum float32 v0
  store out0[0] v1
)";
  const Forms forms(text, {100});
  for (const int64_t n : {16383, 16384, 16385, 32768, 40000, 1 << 22}) {
    std::vector<float> in(static_cast<size_t>(n), 0.1f);
    float out = -1;
    forms.run(forms.kernels.size() - 1, {in.data(), &out}, {n});
    const double expected = static_cast<double>(0.1f) * static_cast<double>(n);
    EXPECT_NEAR(out, expected, expected * 1e-5) << n;
  }
}

}  // namespace
}  // namespace stax::codegen
