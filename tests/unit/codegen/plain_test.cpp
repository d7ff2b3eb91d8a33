// Plain evaluations of groups: what they say, and that NumPy computes by them what the reference executor
// does.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "codegen/plain/printer.h"
#include "loops/parse.h"
#include "reference/executor.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/process.h"
#include "support/triton_python.h"
#include "unit/codegen/compiled.h"

namespace stax::codegen {
namespace {

using testing::HasSubstr;

/// A loop program, and the plain functions of its groups.
struct Plainly {
  explicit Plainly(std::string_view text) : program(loops::parse_program(text)) {
    loops::verify(program);
    const schedule::Schedule schedule = schedule::make_schedule(program, cuda_target_named("cuda:sm_90"));
    for (const schedule::Group& group : schedule.groups) {
      std::vector<PlainArgument> arguments;
      std::string names;
      for (const loops::BufferId b : schedule::touched_buffers(program, group)) {
        const std::string& name = program.buffers[static_cast<size_t>(b)].name;
        if (std::ranges::find(group.local, b) != group.local.end()) continue;
        arguments.push_back({b, name});
        names += (names.empty() ? "" : ", ") + name;
      }
      const std::string name = "plain_" + group.name;
      functions += print_plain(program, group, name, arguments, [](Symbol) { return 7; }) + "\n\n";
      calls += fmt::format("    {}({})\n", name, names);
    }
  }

  loops::Program program;
  std::string functions, calls;
};

std::string plain_text(std::string_view text) {
  return Plainly(text).functions;
}

TEST(PlainText, LoopsAreAxesAndLocalBuffersValues) {
  EXPECT_EQ(plain_text(R"(
buffer in0 float32 [64, 128] input
buffer buf0 bfloat16 [64, 128] intermediate
buffer out0 float32 [64] output
node op0 "a" [i0 < 64, i1 < 128]
  v0 = load float32 in0[128*i0 + i1]
  v1 = constant float32 2
  v2 = mul float32 v0 v1
  store buf0[128*i0 + i1] v2
node op1 "b" [i0 < 64] [r0 < 128]
  v0 = load float32 buf0[128*i0 + r0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)"),
            R"(def plain_fused_a_b_0(in0: "in0", out0: "out0"):
    i0, r0 = np.ogrid[:64, :128]
    tmp0 = in0[128*i0 + r0]
    tmp1 = tmp0 * 2.0
    tmp2 = plain.bfloat16(tmp1)
    tmp3 = plain.total(tmp2)
    out0[i0] = tmp3


)");
}

TEST(PlainText, SizesAreParametersAndMinimaFunctions) {
  EXPECT_EQ(plain_text(R"(
buffer in0 float32 [s0] input
buffer out0 float32 [s0] output
bind s0 size 0 0
node op0 "a" [i0 < s0]
  v0 = load float32 in0[min(i0 + 1, s0 - 1)]
  store out0[i0] v0
)"),
            R"(def plain_fused_a_0(in0: "in0", out0: "out0", s0=7):
    i0 = np.ogrid[:s0]
    tmp0 = in0[np.minimum(i0 + 1, s0 - 1)]
    out0[i0] = tmp0


)");
}

/// What is the same at all points of a reduction still counts at each.
TEST(PlainText, FoldsGoOverTheWholeSpace) {
  EXPECT_THAT(plain_text(R"(
buffer in0 float32 [4] input
buffer out0 float32 [4] output
node op0 "a" [i0 < 4] [r0 < 3, r1 < 5]
  v0 = load float32 in0[i0]
  v1 = reduce_sum float32 v0
  store out0[i0] v1
)"),
              HasSubstr("plain.total(np.broadcast_to(tmp0, space)"));
}

/// The same number is added to the same place once for each point.
TEST(PlainText, AdditionsCountAtEachPoint) {
  EXPECT_THAT(plain_text(R"(
buffer in0 float32 [1] input
buffer in1 int64 [4] input
buffer out0 float32 [1] input mutated
node op0 "a" [i0 < 4]
  v0 = load int64 in1[i0]
  v1 = constant int64 2
  v2 = lt bool v0 v1
  v3 = load float32 in0[0]
  atomic_add out0[0] v3 mask v2
)"),
              HasSubstr(R"(    tmp2 = in0[0]
    plain.add_at(out0, 0, tmp2, tmp1)
)"));
  EXPECT_THAT(plain_text(R"(
buffer in0 float32 [1] input
buffer out0 float32 [1] input mutated
node op0 "a" [i0 < 4]
  v0 = load float32 in0[0]
  atomic_add out0[0] v0
)"),
              HasSubstr("plain.add_at(out0, 0, np.broadcast_to(tmp0, (4,)))"));
}

/// A value that was loaded before a store to its array is not the one that lies there afterwards.
TEST(PlainText, StoresEndWhatLoadsStandFor) {
  EXPECT_THAT(plain_text(R"(
buffer in0 float16 [64] input mutated
buffer out0 float32 [64] output
node op0 "a" [i0 < 64]
  v0 = load float32 in0[i0]
  v1 = exp float32 v0
  store in0[i0] v1
node op1 "b" [i0 < 64]
  v0 = load float32 in0[i0]
  store out0[i0] v0
)"),
              HasSubstr(R"(    tmp0 = in0[i0]
    tmp1 = np.exp(tmp0)
    in0[i0] = plain.float16(tmp1)
    tmp2 = in0[i0]
    out0[i0] = tmp2
)"));
}

/// Two inputs of n numbers, and a result for each of `results`: (dtype, value of the body).
class Evaluation {
 public:
  static constexpr size_t kCount = 240;

  Evaluation(DType dtype, std::string ranges, std::string index, std::string stored)
      : ranges_(std::move(ranges)), index_(std::move(index)), stored_(std::move(stored)) {
    for (const char* in : {"in0", "in1"})
      head_ += fmt::format("buffer {} {} [{}] input\n", in, name(dtype), kCount);
    body_ = fmt::format("  v0 = load {0} in0[{1}]\n  v1 = load {0} in1[{1}]\n", name(dtype), index_);
  }

  /// An instruction and what follows its name.
  int value(DType dtype, const std::string& op, const std::string& operands) {
    body_ += fmt::format("  v{} = {} {} {}\n", next_, op, name(dtype), operands);
    return next_++;
  }
  void result(DType dtype, int value) {
    const std::string out = fmt::format("out{}", results_.size());
    head_ += fmt::format("buffer {} {} [{}] output\n", out, name(dtype), kCount);
    body_ += fmt::format("  store {}[{}] v{}\n", out, stored_, value);
    results_.push_back(dtype);
  }
  void result(DType dtype, const std::string& op, const std::string& operands) {
    result(dtype, value(dtype, op, operands));
  }

  /// Evaluates both ways; floats may be off by `tolerance`, relative to the larger of 1 and the number.
  template <class T>
  void compare(const std::vector<T>& a, const std::vector<T>& b, double tolerance) {
    const std::string text = head_ + "node op0 \"all\" " + ranges_ + "\n" + body_;
    const Plainly plainly(text);
    std::vector<std::vector<double>> wanted(results_.size(), std::vector<double>(kCount));
    std::vector<void*> in{const_cast<T*>(a.data()), const_cast<T*>(b.data())}, out;
    for (auto& w : wanted) out.push_back(w.data());
    reference::Executable::prepare(plainly.program)->run({.inputs = in, .outputs = out});
    const TemporaryFolder folder(temporary_root(), "stax-plain-");
    const auto file = [&](const std::string& name) { return folder.path() + "/" + name; };
    const auto write = [&](const std::string& name, const std::vector<T>& values) {
      std::ofstream(file(name))
          .write(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof(T)));
    };
    write("in0", a);
    write("in1", b);
    ASSERT_NO_FATAL_FAILURE(run_numpy(plainly, folder.path()));
    for (size_t k = 0; k < results_.size(); ++k) {
      const std::string got = read_file(file(fmt::format("out{}", k))).value_or("");
      ASSERT_EQ(got.size(), kCount * itemsize(results_[k]));
      check(k, got.data(), wanted[k].data(), tolerance, plainly.functions);
    }
  }

 private:
  void run_numpy(const Plainly& plainly, const std::string& folder) {
    std::string script = "import numpy as np\nfrom stax_triton import plain\n\n\n" + plainly.functions;
    for (const loops::Buffer& b : plainly.program.buffers) {
      const std::string type = b.dtype == DType::boolean ? "bool" : std::string(name(b.dtype));
      script += b.role == loops::BufferRole::input
                    ? fmt::format("{0} = np.fromfile('{1}/{0}', '{2}')\n", b.name, folder, type)
                    : fmt::format("{} = np.zeros({}, '{}')\n", b.name, kCount, type);
    }
    script += "with np.errstate(all='ignore'):\n" + plainly.calls;
    for (size_t k = 0; k < results_.size(); ++k)
      script += fmt::format("out{0}.tofile('{1}/out{0}')\n", k, folder);
    std::ofstream(folder + "/script.py") << script;
    const ProcessResult done = run_process({"/usr/bin/env", "PYTHONPATH=" STAX_TEST_DATA "/../../python",
                                            std::getenv("STAX_PYTHON"), folder + "/script.py"});
    ASSERT_EQ(done.exit_code, 0) << done.errors << script;
  }

  void check(size_t k, const void* got, const void* wanted, double tolerance, const std::string& text) const {
    const auto number = [&](const void* data, size_t i) -> double {
      switch (results_[k]) {
        case DType::float32:
          return static_cast<const float*>(data)[i];
        case DType::int64:
          return static_cast<double>(static_cast<const int64_t*>(data)[i]);
        case DType::int32:
          return static_cast<const int32_t*>(data)[i];
        case DType::boolean:
          return static_cast<const uint8_t*>(data)[i];
        default:
          ADD_FAILURE() << "results of " << name(results_[k]);
          return 0;
      }
    };
    const double allowed = is_floating_point(results_[k]) ? tolerance : 0;
    for (size_t i = 0; i < kCount; ++i) {
      const double x = number(got, i), y = number(wanted, i);
      const bool same = x == y || (std::isnan(x) && std::isnan(y));
      ASSERT_TRUE(same || std::abs(x - y) <= allowed * std::max(1.0, std::abs(y)))
          << "out" << k << "[" << i << "]: " << x << " instead of " << y << "\n"
          << text;
    }
  }

  /// What result k is stored from, and its store.
  static std::string made_by(const std::string& text, size_t k) {
    const size_t store = text.find(fmt::format("\n    out{}[", k)), before = text.rfind('\n', store - 1);
    return text.substr(before + 1, text.find('\n', store + 1) - before - 1);
  }

  std::string ranges_, index_, stored_, head_, body_;
  std::vector<DType> results_;
  int next_ = 2;
};

class PlainEvaluation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!use_triton_python()) GTEST_SKIP() << kNoTriton;
  }
};

bool is_bitwise(loops::OpCode op) {
  using enum loops::OpCode;
  constexpr loops::OpCode kOps[] = {bitwise_not, bitwise_and, bitwise_or, bitwise_xor,
                                    shift_left,  shift_right, gcd};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

/// Every function of one or two numbers that there is for the dtype.
void add_functions(Evaluation& e, DType dtype) {
  using loops::OpCode;
  for (int k = 0; k < loops::kOpCount; ++k) {
    const auto op = static_cast<OpCode>(k);
    const loops::OpKind kind = loops::info(op).kind;
    if (kind != loops::OpKind::unary && kind != loops::OpKind::binary) continue;
    const bool whole = !is_floating_point(dtype);
    const bool of_integers = op == OpCode::abs || op == OpCode::neg || op == OpCode::sign ||
                             op == OpCode::relu || op == OpCode::pow ||
                             (op >= OpCode::add && op <= OpCode::fmin) || loops::is_predicate(op) ||
                             is_bitwise(op);
    if (whole ? !of_integers : is_bitwise(op)) continue;
    const DType result = loops::is_predicate(op) ? DType::boolean : dtype;
    e.result(result, std::string(loops::info(op).name), kind == loops::OpKind::unary ? "v0" : "v0 v1");
  }
}

TEST_F(PlainEvaluation, FunctionsOfFloats) {
  Evaluation e(DType::float32, "[i0 < 240]", "i0", "i0");
  add_functions(e, DType::float32);
  e.result(DType::int32, "cast", "v0");
  e.result(DType::float32, "where", fmt::format("v{} v0 v1", e.value(DType::boolean, "lt", "v0 v1")));
  e.result(DType::float32, "fma", "v0 v1 v0");
  std::vector<float> a = numbers<float>(240, -3, 3), b = numbers<float>(240, -3, 3, 7);
  const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 0.5f, 1e-30f};
  for (size_t k = 0; k < std::size(special); ++k) a[k] = special[k];
  e.compare(a, b, 2e-6);
}

TEST_F(PlainEvaluation, FunctionsOfIntegers) {
  Evaluation e(DType::int32, "[i0 < 240]", "i0", "i0");
  add_functions(e, DType::int32);
  e.result(DType::float32, "cast", "v0");
  std::vector<int32_t> a = numbers<int32_t>(240, -100, 100), b = numbers<int32_t>(240, -5, 40, 7);
  a[0] = INT32_MIN, b[0] = 2;
  a[1] = INT32_MAX, b[1] = INT32_MAX;
  e.compare(a, b, 0);
}

/// Two axes at a time, from numbers of which many are equal.
TEST_F(PlainEvaluation, Folds) {
  Evaluation e(DType::float32, "[i0 < 5] [r0 < 6, r1 < 8]", "48*i0 + 8*r0 + r1", "i0");
  for (const char* op : {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"})
    e.result(DType::float32, op, "v0");
  for (const char* op : {"reduce_argmax", "reduce_argmin"}) {
    const int at = e.value(DType::int64, op, "v0");
    e.result(DType::int64, at);
    e.result(DType::float32, "result", fmt::format("v{} number 1", at));
  }
  const int welford = e.value(DType::float32, "reduce_welford", "v0");
  const int merged = e.value(DType::float32, "reduce_welford_combine", "v0 v1 v1");
  const int softmax = e.value(DType::float32, "reduce_softmax", "v0");
  for (const auto& [value, count] : {std::pair(welford, 3), {merged, 3}, {softmax, 2}}) {
    e.result(DType::float32, value);
    for (int k = 1; k < count; ++k)
      e.result(DType::float32, "result", fmt::format("v{} number {}", value, k));
  }
  const int larger = e.value(DType::boolean, "lt", "v0 v1");
  for (const char* op : {"reduce_any", "reduce_all"})
    e.result(DType::boolean, op, fmt::format("v{}", larger));
  std::vector<float> a(240), b(240);
  for (size_t k = 0; k < 240; ++k) {
    a[k] = static_cast<float>(k * 7 % 11) / 8 - 0.5f;
    b[k] = static_cast<float>(k % 3);
  }
  a[100] = NAN;  // of row 2
  e.compare(a, b, 1e-5);
}

TEST_F(PlainEvaluation, Scans) {
  Evaluation e(DType::float32, "[i0 < 5] [r0 < 6, r1 < 8]", "48*i0 + 8*r0 + r1", "48*i0 + 8*r0 + r1");
  for (const char* op : {"scan_sum", "scan_prod", "scan_logaddexp"}) e.result(DType::float32, op, "v0");
  for (const char* op : {"scan_max", "scan_min"}) {
    const int value = e.value(DType::float32, op, "v0");
    e.result(DType::float32, value);
    e.result(DType::int64, "result", fmt::format("v{} number 1", value));
  }
  std::vector<float> a(240), b(240);
  for (size_t k = 0; k < 240; ++k) a[k] = static_cast<float>(k * 7 % 11) / 8 - 0.5f;
  a[100] = NAN;
  e.compare(a, b, 1e-5);
}

TEST_F(PlainEvaluation, Orders) {
  Evaluation e(DType::int64, "[i0 < 5] [r0 < 6, r1 < 8]", "48*i0 + 8*r0 + r1", "48*i0 + 8*r0 + r1");
  e.result(DType::int64, "scan_sort", "v0");
  e.compare(numbers<int64_t>(240, -1e15, 1e15), numbers<int64_t>(240, -5, 5, 7), 0);
}

TEST_F(PlainEvaluation, MemoryAndRandomNumbers) {
  Evaluation e(DType::int64, "[i0 < 240]", "i0", "i0");
  const int even = e.value(DType::boolean, "lt", "v0 v1");
  e.result(DType::int64, "load", fmt::format("in1[i0] mask v{}", even));
  const int index = e.value(DType::int64, "check_index", "v0 size 240 number 1");
  e.result(DType::int64, "load", fmt::format("in1[t0] indirect v{}", index));
  e.result(DType::int64, "index_value", "3*i0 + i0//7");
  for (int word = 0; word < 4; ++word)
    e.result(DType::int64, "random_bits", fmt::format("v0 v1 number {}", word));
  e.compare(numbers<int64_t>(240, -240, 240), numbers<int64_t>(240, -1e15, 1e15, 7), 0);
}

}  // namespace
}  // namespace stax::codegen
