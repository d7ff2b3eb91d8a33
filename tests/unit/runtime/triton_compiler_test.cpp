// Triton itself: machine code for every architecture, kept on disk by all that determines it.
#include "runtime/triton_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "stax/error.h"
#include "support/file.h"
#include "support/process.h"
#include "support/python.h"

namespace stax::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSource = R"(import triton
import triton.language as tl
from stax_triton.runtime import triton_heuristics


@triton_heuristics.pointwise(size_hints={'x': 4096}, signature={'in_ptr0': '*fp32', 'out_ptr0': '*bf16', 'scalar0': 'fp64'}, grid='Grid1D')
@triton.jit
def triton_poi_fused_0(in_ptr0, out_ptr0, scalar0, xnumel, XBLOCK : tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tl.store(out_ptr0 + xindex, tmp0 * scalar0.to(tl.float32), xmask)
)";

TritonRequest request(int32_t capability = 90) {
  return {.source = kSource,
          .kernel = "triton_poi_fused_0",
          .capability = capability,
          .config = {.blocks = {{"XBLOCK", 1024}}},
          .divisible = {"in_ptr0", "out_ptr0"}};
}

class RealTriton : public ::testing::Test {
 protected:
  void SetUp() override {
    static const bool there =
        fs::exists(python()) && run_process({python(), "-c", "import triton"}).exit_code == 0;
    if (!there) GTEST_SKIP() << python() << " has no Triton; make setup installs it";
  }
  static std::string python() {
    const char* chosen = std::getenv("STAX_TEST_PYTHON");
    return chosen != nullptr ? chosen : STAX_TEST_PYTHON;
  }
  TritonCompilerOptions options() const {
    return {.workers = 2, .python = python(), .cache_folder = folder_.path() + "/cache"};
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator(folder_.path() + "/cache/kernels")) found.push_back(file);
    return found;
  }

  TemporaryFolder folder_{temporary_root(), "stax-test-"};
};

TEST_F(RealTriton, CompilesForEachArchitecture) {
  TritonCompiler compiler(options());
  const std::vector<TritonRequest> requests{request(80), request(90), request(100)};
  const auto outcomes = compiler.compile(requests);
  std::set<std::string> codes;
  for (const TritonOutcome& outcome : outcomes) {
    ASSERT_NE(outcome.kernel, nullptr) << outcome.error;
    EXPECT_EQ(outcome.kernel->entry, "triton_poi_fused_0");
    EXPECT_THAT(outcome.kernel->arguments, ElementsAre("*fp32", "*bf16", "fp64", "i32"));
    EXPECT_EQ(outcome.kernel->warps, 4);
    EXPECT_GT(outcome.kernel->registers, 8);
    EXPECT_EQ(outcome.kernel->spill_bytes, 0);
    EXPECT_EQ(outcome.kernel->global_scratch_bytes, 0);
    EXPECT_GT(outcome.kernel->seconds, 0);
    codes.insert(outcome.kernel->cubin);
  }
  EXPECT_EQ(codes.size(), 3u);
}

TEST_F(RealTriton, SpillsAreCounted) {
  // 32 warps of 32 threads leave 64 registers to each; the block gives each 256 values to keep.
  TritonRequest large = request();
  large.source = R"(import triton
import triton.language as tl
from stax_triton.runtime import triton_heuristics


@triton_heuristics.pointwise(size_hints={'x': 262144}, signature={'in_ptr0': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid1D')
@triton.jit
def large(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xindex = tl.arange(0, XBLOCK)
    tmp0 = tl.load(in_ptr0 + xindex)
    tmp1 = tl.max(tmp0, 0)
    tl.store(out_ptr0 + xindex, tmp0 - tmp1)
)";
  large.kernel = "large";
  large.config = {.blocks = {{"XBLOCK", 262144}}, .warps = 32};
  TritonCompiler compiler(options());
  EXPECT_GT(compiler.compile(large)->spill_bytes, 0);
}

// The sine of float64 calls a function of its own for large arguments, which the assembler lists, too.
TEST_F(RealTriton, KernelsThatCallFunctionsCompile) {
  TritonCompiler compiler(options());
  TritonRequest sine = request();
  const std::string product = "tmp0 * scalar0.to(tl.float32)";
  sine.source.replace(sine.source.find(product), product.size(), "libdevice.sin(tmp0.to(tl.float64))");
  sine.source.replace(0, 0, "from triton.language.extra import libdevice\n");
  const auto outcomes = compiler.compile(std::vector{sine});
  ASSERT_NE(outcomes[0].kernel, nullptr) << outcomes[0].error;
  EXPECT_GT(outcomes[0].kernel->registers, 0);
}

// A block's count has to be spread over the threads as its values are: with a layout of its own each thread
// adds up the whole mask.
TEST_F(RealTriton, AMaskedBlockOfRowsIsFoldedLikeAWholeOne) {
  const auto folded = [&](const std::string& mask) {
    TritonRequest fold = request();
    fold.source = R"(import triton
import triton.language as tl
from stax_triton.runtime import triton_helpers, triton_heuristics


@triton_heuristics.reduction(size_hints={'x': 64, 'r0_': 4096}, signature={'in_ptr0': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid1D')
@triton.jit
def fold(in_ptr0, out_ptr0, xnumel, R0_BLOCK : tl.constexpr):
    x = tl.program_id(0) + tl.arange(0, 1)[:, None]
    r0 = tl.arange(0, R0_BLOCK)[None, :]
    none = tl.full([1, 1], 0, tl.float32)
    tmp0 = tl.load(in_ptr0 + R0_BLOCK * x + r0, MASK)
    mean, m2, n = triton_helpers.welford_rows(none, none, none, tmp0, MASK, 1)
    tl.store(out_ptr0 + x, mean + m2 + n)
)";
    for (size_t at = fold.source.find("MASK"); at != std::string::npos; at = fold.source.find("MASK"))
      fold.source.replace(at, 4, mask);
    fold.kernel = "fold";
    fold.config = {.blocks = {{"R0_BLOCK", 4096}}};
    return fold;
  };
  TritonCompiler compiler(options());
  const size_t whole = compiler.compile(folded("None"))->cubin.size();
  EXPECT_LT(compiler.compile(folded("r0 < xnumel"))->cubin.size(), 2 * whole);
}

// Blocks that are loaded ahead lie in shared memory: beside the one at hand 5 of 4 KiB.
TEST_F(RealTriton, StagesOfALoopAreBlocksInSharedMemory) {
  TritonRequest sum = request();
  sum.source = R"(import triton
import triton.language as tl
from stax_triton.runtime import triton_heuristics


@triton_heuristics.reduction(size_hints={'x': 64, 'r0_': 4096}, signature={'in_ptr0': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid1D')
@triton.jit
def total(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr, NUM_STAGES : tl.constexpr = 1):
    x = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    tmp0 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK, num_stages=NUM_STAGES):
        r0 = r0_offset + tl.arange(0, R0_BLOCK)[None, :]
        tmp0 = tmp0 + tl.load(in_ptr0 + 64 * r0 + x, r0 < r0_numel, other=0.0)
    tl.store(out_ptr0 + x, tl.sum(tmp0, 1)[:, None])
)";
  sum.kernel = "total";
  sum.config = {.blocks = {{"XBLOCK", 8}, {"R0_BLOCK", 128}}, .stages = 1};
  TritonCompiler compiler(options());
  const auto alone = compiler.compile(sum);
  sum.config.stages = 6;
  const auto staged = compiler.compile(sum);
  EXPECT_THAT(staged->arguments, ElementsAre("*fp32", "*fp32", "i32", "i32"));
  EXPECT_LT(alone->shared_bytes, 4096);
  EXPECT_GE(staged->shared_bytes, 5 * 4096);
}

TEST_F(RealTriton, KeepsResultsOnDisk) {
  std::string code;
  {
    TritonCompiler compiler(options());
    code = compiler.compile(request())->cubin;
    EXPECT_EQ(compiler.compiled(), 1);
    EXPECT_EQ(compiler.compile(request())->cubin, code);
    EXPECT_EQ(compiler.compiled(), 1);
  }
  TritonCompiler again(options());
  const std::vector<TritonRequest> requests{request()};
  const auto outcomes = again.compile(requests);
  ASSERT_NE(outcomes[0].kernel, nullptr) << outcomes[0].error;
  EXPECT_TRUE(outcomes[0].from_cache);
  EXPECT_EQ(outcomes[0].kernel->cubin, code);
  EXPECT_THAT(outcomes[0].kernel->arguments, ElementsAre("*fp32", "*bf16", "fp64", "i32"));
  EXPECT_EQ(again.started(), 0) << "Python was started for an entry of the cache";
}

TEST_F(RealTriton, NoticesDamagedEntries) {
  const std::string code = TritonCompiler(options()).compile(request())->cubin;
  ASSERT_EQ(entries().size(), 1u);
  const fs::path entry = entries()[0];
  const std::string whole = *read_file(entry.string());
  std::string flipped = whole, cut = whole.substr(0, whole.size() / 2), empty;
  flipped[whole.size() / 2] ^= 1;
  for (const std::string& damaged : {flipped, cut, empty}) {
    std::ofstream(entry, std::ios::binary) << damaged;
    TritonCompiler compiler(options());
    EXPECT_EQ(compiler.compile(request())->cubin, code);
    EXPECT_EQ(compiler.compiled(), 1);
  }
}

TEST_F(RealTriton, WhatDeterminesTheCodeIsPartOfTheKey) {
  TritonCompiler compiler(options());
  std::vector<TritonRequest> requests(7, request());
  requests[1].divisible.clear();
  requests[2].config.warps = 8;
  requests[3].config.blocks[0].second = 512;
  requests[4].wide_index = true;
  requests[5].config.stages = 2;
  requests[6].source += "# another\n";
  for (const TritonOutcome& outcome : compiler.compile(requests))
    EXPECT_NE(outcome.kernel, nullptr) << outcome.error;
  EXPECT_EQ(compiler.compiled(), 7);
  EXPECT_EQ(entries().size(), 7u);
  EXPECT_EQ(compiler.compile(requests[4])->arguments.back(), "i64");
}

TEST_F(RealTriton, AnotherPackageIsAnotherKey) {
  TritonCompiler(options()).compile(request());
  const fs::path copy = folder_.path() + "/package";
  fs::copy(python_package_folder(), copy, fs::copy_options::recursive);
  std::ofstream(copy / "stax_triton/helpers.py", std::ios::app) << "\n# changed\n";
  setenv("STAX_PYTHON_PATH", copy.c_str(), 1);
  {
    TritonCompiler compiler(options());
    compiler.compile(request());
    EXPECT_EQ(compiler.compiled(), 1);
  }
  unsetenv("STAX_PYTHON_PATH");
  EXPECT_EQ(entries().size(), 2u);
}

TEST_F(RealTriton, NamesTheLineThatDoesNotCompile) {
  TritonRequest wrong = request();
  const size_t at = wrong.source.find("xmask)");
  wrong.source.replace(at, 6, "ymask)");
  TritonCompiler compiler(options());
  try {
    compiler.compile(wrong);
    FAIL() << "it compiled";
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("triton_poi_fused_0"), HasSubstr("sm_90"), HasSubstr("ymask")));
  }
  wrong.source = "import nothing_of_this_name\n";
  EXPECT_THROW(compiler.compile(wrong), RuntimeError);
  EXPECT_EQ(compiler.compile(request())->warps, 4);  // the worker goes on
  EXPECT_EQ(compiler.started(), 1);
}

TEST_F(RealTriton, AWorkerThatIsStartedAheadIsTheOneThatCompiles) {
  TritonCompiler compiler(options());
  compiler.start();
  compiler.start();
  EXPECT_EQ(compiler.started(), 1);
  EXPECT_EQ(compiler.compile(request())->warps, 4);
  EXPECT_EQ(compiler.started(), 1);
}

TEST_F(RealTriton, AWorkerIsStartedEarlyWhereTheFirstKernelNeedsOne) {
  {
    TritonCompiler compiler(options());
    compiler.start_where_unknown();
    EXPECT_EQ(compiler.started(), 1);
    EXPECT_EQ(compiler.compile(request())->warps, 4);
    EXPECT_EQ(compiler.started(), 1);
    EXPECT_GT(compiler.seconds(), 0);
  }
  TritonCompiler next(options());
  next.start_where_unknown();
  EXPECT_EQ(next.compile(request())->warps, 4);
  EXPECT_EQ(next.started(), 0);
}

/// A process whose worker is idle, or still imports Triton, ends by `signal`, or by itself for 0.
void end_with_worker(const TritonCompilerOptions& options, const std::string& temporary, bool idle,
                     int signal) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("TMPDIR", temporary.c_str(), 1);
    {
      TritonCompiler compiler(options);
      compiler.start();
      if (idle) compiler.compile(request());
      if (signal != 0) kill(getpid(), signal);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, signal);
}

TEST_F(RealTriton, WorkersLeaveNothingHoweverTheirProcessEnds) {
  for (const bool idle : {true, false}) {
    for (const int signal : {SIGKILL, SIGTERM, SIGABRT, 0}) {
      const fs::path temporary = folder_.path() + "/tmp";
      fs::create_directory(temporary);
      end_with_worker(options(), temporary, idle, signal);
      if (signal == 0) {
        EXPECT_TRUE(fs::is_empty(temporary)) << "removed before the process ended";
      }
      for (int tries = 0; tries < 300 && !fs::is_empty(temporary); ++tries) usleep(100'000);
      EXPECT_TRUE(fs::is_empty(temporary)) << "signal " << signal << (idle ? ", idle" : ", importing");
    }
  }
}

TEST_F(RealTriton, EqualRequestsOfManyThreadsCompileOnce) {
  TritonCompiler compiler(options());
  std::vector<std::shared_ptr<const CompiledTriton>> kernels(8);
  {
    std::vector<std::jthread> threads;
    for (auto& kernel : kernels) threads.emplace_back([&] { kernel = compiler.compile(request()); });
  }
  for (const auto& kernel : kernels) EXPECT_EQ(kernel, kernels[0]);
  EXPECT_EQ(compiler.compiled(), 1);
}

}  // namespace
}  // namespace stax::runtime
