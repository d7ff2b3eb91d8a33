// Keys, limits, reads, errors, threads and processes of compiled functions.
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <thread>

#include "capture/dispatch.h"
#include "cpu/compile_testing.h"
#include "support/file.h"
#include "support/process.h"

namespace stax {
namespace {

using T = Tensor;

TEST(CompileKey, HasShapesStridesDtypesAndConstants) {
  int traces = 0;
  const auto f = compile(
      [&](const T& x, int64_t n) {
        ++traces;
        return x * n;
      },
      strict());
  const auto expect_traces = [&](int expected, const T& x, int64_t n) {
    f(x, n);
    EXPECT_EQ(traces, expected);
  };
  expect_traces(1, zeros({2, 3}), 2);
  expect_traces(1, ones({2, 3}), 2);
  expect_traces(2, ones({2, 3}), 3);
  expect_traces(3, ones({3, 2}), 2);
  expect_traces(4, ones({3, 2}).t(), 2);
  expect_traces(5, ones({2, 3}, kDouble), 2);
  expect_traces(5, ones({3, 3}).slice(0, 1), 2);  // another offset is no other key
  expect_traces(5, ones({2, 3}, kDouble), 2);
  EXPECT_EQ(f.artifacts().size(), 5u);
  EXPECT_EQ(f.artifacts()[3].key, "(float32[2, 3] strides [1, 2])");
}

TEST(CompileKey, ExplainNamesWhatDiffers) {
  const auto f = compile([](const T& x, const T& y) { return x + y; }, strict());
  f(zeros({2}), zeros({2}));
  const Explanation same = f.explain(zeros({2}), zeros({2}));
  EXPECT_TRUE(same.cached);
  const Explanation other = f.explain(zeros({2}), zeros({3, 2}));
  EXPECT_FALSE(other.cached);
  ASSERT_EQ(other.misfits.size(), 1u);
  EXPECT_EQ(other.misfits[0], "artifact 0: tensor 1: expected float32[2], got float32[3, 2]");
  EXPECT_EQ(other.kernels.size(), 1u);
  EXPECT_NE(other.str().find("add.Tensor"), std::string::npos);
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(CompileKey, KeepsEightArtifacts) {
  std::atomic<int> traces = 0;
  const auto f = compile(
      [&](const T& x) {
        ++traces;
        return x + 1;
      },
      {.backend = "debug"});
  for (int64_t n = 1; n <= 10; ++n)
    expect_floats(f(zeros({n})), std::vector<float>(static_cast<size_t>(n), 1));
  EXPECT_EQ(f.artifacts().size(), 8u);
  f(zeros({8}));
  EXPECT_EQ(traces, 10);
  f(zeros({9}));  // runs, and is not kept
  f(zeros({9}));
  EXPECT_EQ(traces, 12);
}

TEST(CompileKey, EndsAfter256Compilations) {
  int traced = 0, eager = 0;
  const auto body = [&](const T& x) {
    ++(detail::is_tracing() ? traced : eager);
    return x + 1;
  };
  const auto f = compile(body, {.backend = "debug"});
  for (int64_t n = 1; n <= 260; ++n) f(zeros({n}));
  EXPECT_EQ(traced, 256);
  EXPECT_EQ(eager, 4);
  const auto g = compile(body, {.fullgraph = true, .backend = "debug"});
  for (int64_t n = 1; n <= 256; ++n) g(zeros({n}));
  EXPECT_THROW(g(zeros({257})), UserError);
}

TEST(CompileReads, RunsTheRestEagerlyAndOnlyOnce) {
  int calls = 0;
  const auto f = compile([&](const T& x) {
    ++calls;
    x.add_(1);
    const T y = x * 2;
    if (y.sum().item<float>() > 10) return y - 1;
    return y + x;
  });
  const T x = tensor({1.f, 2.f});
  testing::internal::CaptureStderr();
  expect_floats(f(x), {6, 9});  // x = [2, 3], y = [4, 6]
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("compile_cache_test.cpp"), std::string::npos) << warning;
  EXPECT_EQ(calls, 1);
  expect_floats(x, {2, 3});
  testing::internal::CaptureStderr();
  expect_floats(f(x), {5, 7});  // x = [3, 4], y = [6, 8]
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(calls, 2);
  ASSERT_EQ(f.artifacts().size(), 1u);
  EXPECT_EQ(f.artifacts()[0].target, "eager");
}

TEST(CompileReads, HappenForResultsOfUnknownSizes) {  // C084
  const auto f = compile([](T x) {
    const T m = x > 1;
    x.index_put_({m}, x.index({m}) * 0.5);
    return std::pair(x, x.index({m}));
  });
  const T x = tensor({0.5f, 2.f, 4.f});
  const auto [same, kept] = f(x);
  EXPECT_TRUE(same.is_same(x));
  expect_floats(x, {0.5, 1, 2});
  expect_floats(kept, {1, 2});
}

TEST(CompileReads, AreErrorsUnderFullgraph) {
  const auto f = [](const T& x) { return x.sum().item<float>() > 0 ? x : -x; };
  EXPECT_THROW(compile(f, {.fullgraph = true})(ones({2})), UserError);
  EXPECT_THROW(compile(f, strict())(ones({2})), UserError);
  try {
    compile(f, strict())(ones({2}));
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("compile_cache_test.cpp"), std::string::npos) << error.what();
  }
}

TEST(CompileReads, OfCapturedTensorsSeePendingWrites) {
  const T total = zeros({});
  const auto f = compile([&](const T& x) {
    total.add_(x.sum());
    return x * total.item<float>();
  });
  expect_floats(f(ones({3})), {3, 3, 3});
  expect_floats(f(ones({3})), {6, 6, 6});
}

TEST(CompileErrors, PassThroughAndLeaveNothing) {
  bool fail = true;
  const auto f = compile([&](const T& x) {
    const T y = x + 1;
    if (fail) throw std::logic_error("mine");
    return y;
  });
  EXPECT_THROW(f(zeros({2})), std::logic_error);
  EXPECT_TRUE(f.artifacts().empty());
  fail = false;
  expect_floats(f(zeros({2})), {1, 1});
  EXPECT_THROW(compile([](const T& x) { return x + zeros({5}); })(zeros({2})), UserError);
  expect_floats(zeros({1}) + 1, {1});  // no trace is left behind
}

TEST(CompileErrors, RefuseTracedTensorsOutsideTheirTrace) {
  T leaked;
  const auto f = compile([&](const T& x) {
    leaked = x + 1;
    std::string caught;
    std::thread([&] {
      try {
        leaked + 1;
      } catch (const UserError& error) {
        caught = error.what();
      }
    }).join();
    EXPECT_NE(caught.find("another thread"), std::string::npos) << caught;
    return leaked * 2;
  });
  expect_floats(f(zeros({2})), {2, 2});
  EXPECT_THROW(leaked + 1, UserError);
  EXPECT_THROW(leaked.item(), UserError);
}

TEST(CompileErrors, NameIndicesOutOfRange) {
  const auto f = compile([](const T& x, const T& i) { return x.index_select(0, i); }, strict());
  expect_floats(f(tensor({1.f, 2.f}), tensor({1, 0})), {2, 1});
  EXPECT_THROW(f(tensor({1.f, 2.f}), tensor({1, 2})), UserError);
  expect_floats(f(tensor({1.f, 2.f}), tensor({0, 0})), {1, 1});
}

TEST(CompileThreads, CompileOnceAndAgree) {
  std::atomic<int> traces = 0;
  const auto f = compile([&](const T& x) {
    ++traces;
    return softmax(x, -1);
  });
  std::latch start(4);
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int i = 0; i < 50; ++i) {
        if (values(f(zeros({3, 4}))) != std::vector<float>(12, 0.25f)) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(wrong, 0);
}

TEST(CompileThreads, AFunctionThatCallsItself) {
  std::function<T(const T&, int64_t)> self;
  auto f = compile([&](const T& x, int64_t depth) { return depth == 0 ? x : self(x + 1, depth - 1); });
  self = [&](const T& x, int64_t depth) { return f(x, depth); };
  expect_floats(f(zeros({2}), 5), {5, 5});
}

// Another process: this test program again, with one test that is off by default.
ProcessResult run_child(const std::string& test, const std::vector<std::string>& environment) {
  std::vector<std::string> command = {"/usr/bin/env"};
  command.insert(command.end(), environment.begin(), environment.end());
  command.push_back(std::string(STAX_TEST_PROGRAMS) + "/test_cpu");
  command.push_back("--gtest_also_run_disabled_tests");
  command.push_back("--gtest_filter=CompileChild.DISABLED_" + test);
  return run_process(command);
}

TEST(CompileChild, DISABLED_Sum) {
  const auto f = compile([](const T& x) { return (x * 3 + 1).sum(0); });
  expect_floats(f(ones({2, 3})), {8, 8, 8});
}

TEST(CompileChild, DISABLED_ChangingCapture) {
  double number = 1;
  const auto f = compile([&](const T& x) { return x + number; });
  expect_floats(f(zeros({2})), {1, 1});
  number = 2;
  expect_floats(f(zeros({2})), {1, 1});
  expect_floats(f(zeros({3})), {2, 2, 2});
}

// Arguments whose sizes nothing depends on, of other sizes than those that are read.
TEST(CompileChild, DISABLED_UnreadArgument) {
  const auto f = compile([](const T&, const T& x, const T&) { return x * 2; }, {.dynamic = true});
  for (const int64_t n : {2, 3, 4}) {
    expect_floats(f(zeros({n + 7}), ones({n}), zeros({3 * n})),
                  std::vector<float>(static_cast<size_t>(n), 2.f));
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}
// Sizes that are equal in a later call only.
TEST(CompileChild, DISABLED_EqualSizesLater) {
  const auto f = compile([](const T& x) { return x.sum(1); }, {.dynamic = true});
  expect_floats(f(ones({2, 3})), {3, 3});
  expect_floats(f(ones({2, 2})), {2, 2});
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(CompileProcess, FindsKernelsOfAnotherProcess) {
  const TemporaryFolder folder(temporary_root(), "stax-test-");
  const std::string log = folder.path() + "/calls", wrapper = folder.path() + "/cxx";
  std::ofstream(wrapper) << "#!/bin/sh\necho run >> " << log << "\nexec c++ \"$@\"\n";
  ASSERT_EQ(std::system(("chmod +x " + wrapper).c_str()), 0);
  const std::vector<std::string> environment = {"STAX_CACHE_DIR=" + folder.path() + "/cache",
                                                "STAX_CXX=" + wrapper};
  const ProcessResult first = run_child("Sum", environment);
  ASSERT_TRUE(first.ok()) << first.output << first.errors;
  const auto calls = read_file(log);
  ASSERT_TRUE(calls);
  const ProcessResult second = run_child("Sum", environment);
  ASSERT_TRUE(second.ok()) << second.output << second.errors;
  EXPECT_EQ(*read_file(log), *calls);
}

TEST(CompileProcess, RunsWithoutACompiler) {
  const TemporaryFolder folder(temporary_root(), "stax-test-");
  const ProcessResult result =
      run_child("Sum", {"STAX_CACHE_DIR=" + folder.path() + "/cache", "STAX_CXX=/nowhere/c++"});
  EXPECT_TRUE(result.ok()) << result.output << result.errors;
  EXPECT_NE(result.errors.find("/nowhere/c++"), std::string::npos) << result.errors;
}

TEST(CompileProcess, RunsWithoutACompilerWhereArgumentsAreNotRead) {
  const ProcessResult result = run_child("UnreadArgument", {"STAX_CXX=/nowhere/c++"});
  EXPECT_TRUE(result.ok()) << result.output << result.errors;
}

TEST(CompileProcess, RetracesWithoutAReportWhereNothingChanged) {
  const ProcessResult result = run_child("EqualSizesLater", {"STAX_CHECK=retrace"});
  EXPECT_TRUE(result.ok()) << result.output << result.errors;
  EXPECT_EQ(result.errors.find("does something else now"), std::string::npos) << result.errors;
}

TEST(CompileProcess, RetracesAndReportsWhatChanged) {
  const ProcessResult result = run_child("ChangingCapture", {"STAX_CHECK=retrace"});
  EXPECT_TRUE(result.ok()) << result.output << result.errors;
  EXPECT_NE(result.errors.find("does something else now"), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("add.Tensor(%arg, 2.0, 1)"), std::string::npos) << result.errors;
}

TEST(CompileProcess, LogsWhatIsCompiledAndWhy) {
  const ProcessResult result = run_child("ChangingCapture", {"STAX_LOG=recompiles,kernels,guards"});
  EXPECT_TRUE(result.ok()) << result.output << result.errors;
  EXPECT_NE(result.errors.find("[recompiles] compiling for (float32[3]"), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("artifact 0: tensor 0: expected float32[2], got float32[3]"),
            std::string::npos)
      << result.errors;
  EXPECT_NE(result.errors.find("[guards] tensor 0 is float32[3]"), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("[kernels] 1 kernel in 1 module,"), std::string::npos) << result.errors;
}

}  // namespace
}  // namespace stax
