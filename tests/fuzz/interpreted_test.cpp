// Random programs: their Triton kernels in Triton's interpreter against the reference executor.
//
// STAX_FUZZ_SEED is the seed of the first program, STAX_FUZZ_COUNT how many there are (512 by default). Needs
// a Python with Triton: STAX_PYTHON, or the tests' own.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fuzz/compare.h"
#include "fuzz/generator.h"
#include "fuzz/settings.h"
#include "support/triton_python.h"

namespace stax::fuzz {
namespace {

constexpr int64_t kInterpreterShards = 8;

class InterpretedPrograms : public ::testing::TestWithParam<int64_t> {};

std::string failure(const Program& program, const std::string& what) {
  return fmt::format(
      "{}\n{}repeat with: STAX_FUZZ_SEED={} STAX_FUZZ_COUNT=1 {}/test_fuzz "
      "--gtest_filter='*InterpretedPrograms*'\n",
      what, text(program), program.seed, STAX_TEST_PROGRAMS);
}

TEST_P(InterpretedPrograms, AgreeWithReference) {
  if (!use_triton_python()) GTEST_SKIP() << kNoTriton;
  runtime::TritonInterpreter interpreter;
  const Target target = cuda_target_named("cuda:sm_90");
  const int64_t count = setting("STAX_FUZZ_COUNT", 512), seed = first_seed();
  const int64_t begin = count * GetParam() / kInterpreterShards;
  const int64_t end = count * (GetParam() + 1) / kInterpreterShards;
  for (int64_t k = begin; k < end; ++k) {
    const Program program = generate(static_cast<uint64_t>(seed + k));
    try {
      const Prepared prepared = prepare(program, target);
      if (count == 1) fmt::print("{}{}\n", text(program), triton_details(prepared, target));
      const std::string found =
          difference(program, run_reference(prepared), run_interpreted(prepared, target, interpreter));
      if (!found.empty()) ADD_FAILURE() << failure(program, found);
    } catch (const std::exception& e) {
      ADD_FAILURE() << failure(program, e.what());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, InterpretedPrograms, ::testing::Range(int64_t{0}, kInterpreterShards));

}  // namespace
}  // namespace stax::fuzz
