// Random programs: compiled code against the reference executor.
//
// STAX_FUZZ_SEED is the seed of the first program, STAX_FUZZ_COUNT how many there are (2000 by default); the
// next program's seed is one higher.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "fuzz/compare.h"
#include "fuzz/generator.h"
#include "fuzz/settings.h"

namespace stax::fuzz {
namespace {

constexpr int64_t kShards = 8;
constexpr int64_t kKernelsInModule = 100;

class Programs : public ::testing::TestWithParam<int64_t> {
 protected:
  static std::string report(const Program& program, const std::string& what) {
    return fmt::format(
        "{}\n{}repeat with: STAX_FUZZ_SEED={} STAX_FUZZ_COUNT=1 STAX_FUZZ_CPU={} {}/test_fuzz\n", what,
        text(program), program.seed, cpu().name, STAX_TEST_PROGRAMS);
  }

  /// Compiles and runs what has been collected.
  void flush() {
    Batch batch(compiler_, cpu());
    std::vector<size_t> added;
    for (size_t k = 0; k < collected_.size(); ++k) {
      try {
        batch.add(*collected_[k]);
        added.push_back(k);
      } catch (const std::exception& e) {
        ADD_FAILURE() << report(collected_[k]->program, fmt::format("code generation: {}", e.what()));
      }
    }
    bool compiled = true;
    try {
      batch.compile();
    } catch (const std::exception& e) {
      compiled = false;
      find_uncompilable();
    }
    for (size_t k = 0; compiled && k < added.size(); ++k) check(batch, k, *collected_[added[k]]);
    collected_.clear();
    groups_ = 0;
  }

  /// Prints how a single program is compiled, as far as that goes.
  void print_details(const Prepared& prepared) {
    if (program_count() != 1) return;
    try {
      fmt::print("{}{}\n", text(prepared.program), details(prepared, cpu()));
    } catch (const std::exception& e) {
      fmt::print("no details: {}\n", e.what());
    }
  }

  void check(const Batch& batch, size_t k, const Prepared& prepared) {
    try {
      const std::string found = difference(prepared.program, run_reference(prepared), batch.run(k));
      if (!found.empty()) ADD_FAILURE() << report(prepared.program, found);
    } catch (const std::exception& e) {
      ADD_FAILURE() << report(prepared.program, fmt::format("running: {}", e.what()));
    }
  }

  /// Names the programs whose kernels the host compiler refuses.
  void find_uncompilable() {
    for (const auto& prepared : collected_) {
      try {
        Batch one(compiler_, cpu());
        one.add(*prepared);
        one.compile();
        check(one, 0, *prepared);
      } catch (const std::exception& e) {
        ADD_FAILURE() << report(prepared->program, fmt::format("compiling: {}", e.what()));
      }
    }
  }

  void add(uint64_t seed) {
    Program program;
    try {
      program = generate(seed);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "seed " << seed << ": making the program: " << e.what();
      return;
    }
    try {
      collected_.push_back(std::make_unique<Prepared>(prepare(program)));
      print_details(*collected_.back());
      groups_ += static_cast<int64_t>(collected_.back()->lowered.program.nodes.size());
    } catch (const std::exception& e) {
      ADD_FAILURE() << report(program, fmt::format("lowering: {}", e.what()));
    }
    if (groups_ >= kKernelsInModule) flush();
  }

  /// Most shards compile for this processor, some for the narrower vectors that it supports too. A single
  /// program is compiled for the one that STAX_FUZZ_CPU names.
  static device::CpuTarget cpu() {
    const char* chosen = std::getenv("STAX_FUZZ_CPU");
    if (chosen && *chosen) return device::cpu_target_named(chosen);
    const device::CpuTarget& best = device::cpu_target();
    if (best.name.rfind("x86-64", 0) != 0 || program_count() == 1) return best;
    if (GetParam() == 2) return device::cpu_target_named("x86-64");
    return GetParam() == 5 && best.vector_bytes > 32 ? device::cpu_target_named("x86-64-v3") : best;
  }

  runtime::HostCompiler compiler_;
  std::vector<std::unique_ptr<Prepared>> collected_;
  int64_t groups_ = 0;
};

TEST_P(Programs, CompiledAgreesWithReference) {
  const int64_t seed = first_seed(), count = program_count();
  const int64_t begin = count * GetParam() / kShards, end = count * (GetParam() + 1) / kShards;
  fmt::print("seeds {} to {}\n", seed + begin, seed + end - 1);
  for (int64_t k = begin; k < end; ++k) add(static_cast<uint64_t>(seed + k));
  flush();
}

INSTANTIATE_TEST_SUITE_P(Shards, Programs, ::testing::Range(int64_t{0}, kShards));

}  // namespace
}  // namespace stax::fuzz
