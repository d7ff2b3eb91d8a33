// The algorithms of section 9.6 on costs whose optima are known.
#include "tuning/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stax/error.h"
#include "tuning/launch_config.h"
#include "unit/tuning/synthetic.h"

namespace stax::tuning {
namespace {

using codegen::LaunchConfig;
using codegen::ReductionHint;
using ::testing::HasSubstr;

/// 1 us at XBLOCK 64 and 4 warps, twice as much for every step away.
Measured valley(const LaunchConfig& c) {
  const double steps = std::abs(std::log2(static_cast<double>(c.blocks[0].second)) - 6) +
                       std::abs(std::log2(static_cast<double>(c.warps)) - 2);
  return {.seconds = 1e-6 * std::exp2(steps)};
}

TEST(ConfigSpace, IsTheProductOfItsParameters) {
  const ConfigSpace space(pointwise_kernel(2048));
  EXPECT_EQ(space.size(), 12 * 6);  // XBLOCK 1 ... 2048, 1 ... 32 warps, one stage
  EXPECT_TRUE(space.contains(x_config(2048, 32)));
  EXPECT_FALSE(space.contains(x_config(4096, 4)));  // larger than the axis
  EXPECT_FALSE(space.contains(x_config(48, 4)));
  EXPECT_FALSE(space.contains(x_config(64, 64)));
  EXPECT_FALSE(space.neighbour(x_config(2048, 4), 0, true));
  EXPECT_FALSE(space.neighbour(x_config(1, 4), 0, false));
  EXPECT_EQ(to_string(*space.neighbour(x_config(64, 4), 0, true)), to_string(x_config(128, 4)));
  EXPECT_EQ(to_string(*space.neighbour(x_config(64, 4), 1, false)), to_string(x_config(64, 2)));
}

// 13 * 17 pairs of powers of two up to 2^12 and 2^16; those whose exponents sum to more than 20 are left out:
// for 2^5, 2^6, ..., 2^12 the last 1, 2, ..., 8 of 17.
TEST(ConfigSpace, LeavesOutBlocksThatTritonRefuses) {
  codegen::TileKernel kernel = reduction_kernel(1 << 20, 1 << 20, ReductionHint::inner);
  EXPECT_EQ(ConfigSpace(kernel).size(), (13 * 17 - 36) * 6);
  kernel.staged = true;  // 1, 2, 3, 4, 6 or 8 stages
  const ConfigSpace space(kernel);
  EXPECT_EQ(space.size(), (13 * 17 - 36) * 6 * 6);
  const LaunchConfig corner{.blocks = {{"XBLOCK", 4096}, {"R0_BLOCK", 256}}, .warps = 4, .stages = 1};
  EXPECT_TRUE(space.contains(corner));
  EXPECT_FALSE(space.neighbour(corner, 1, true));
}

// Values of a block, and of those kept with it: 2^20 at most. 0 to 4 or 6 blocks of up to 2^17 fit together,
// up to 3 of 2^18, 1 of 2^19. Each by 6 numbers of warps and 3 limits of registers.
TEST(ConfigSpace, CountsBlocksThatAreKept) {
  codegen::TileKernel kernel = reduction_kernel(1, 1 << 16, ReductionHint::inner);
  kernel.keeps = true;
  EXPECT_EQ(ConfigSpace(kernel).size(), 17 * 6 * 6 * 3);
  kernel.axes.front().size_hint = 16;  // blocks of 16 by 2^16 leave no room, 8 by 2^16 none but for one
  const ConfigSpace space(kernel);
  // By the exponent of the block: 6 numbers of blocks kept up to 2^17, 4 for 2^18, 2 for 2^19, 1 for 2^20.
  const int64_t of_exponent[] = {6, 4, 2, 1};
  int64_t expected = 0;
  for (int x = 0; x <= 4; ++x)
    for (int r = 0; r <= 16; ++r) expected += of_exponent[std::max(0, x + r - 17)];
  EXPECT_EQ(space.size(), expected * 6 * 3);
  LaunchConfig kept{.blocks = {{"XBLOCK", 8}, {"R0_BLOCK", 1 << 16}}, .kept = 1};
  EXPECT_TRUE(space.contains(kept));
  EXPECT_EQ(to_string(kept), "XBLOCK=8 R0_BLOCK=65536 num_warps=4 num_stages=1 R0_KEPT=1");
  kept.kept = 2;
  EXPECT_FALSE(space.contains(kept));
  kept.kept = 5;
  kept.blocks[1].second = 1;
  EXPECT_FALSE(space.contains(kept));
}

TEST(ConfigSpace, DrawsUniformly) {
  const ConfigSpace space(pointwise_kernel(8));
  ASSERT_EQ(space.size(), 4 * 6);
  std::mt19937_64 random(1);
  std::map<std::string, int> counts;
  constexpr int kEach = 1000;
  for (int k = 0; k < kEach * 24; ++k) ++counts[to_string(space.draw(random))];
  ASSERT_EQ(counts.size(), 24u);
  for (const auto& [config, count] : counts) EXPECT_NEAR(count, kEach, 5 * std::sqrt(kEach)) << config;
}

TEST(Candidates, OneToSixOfTheSpaceForEveryForm) {
  std::vector<codegen::TileKernel> kernels;
  for (const int64_t x : {1, 2, 128, 1 << 20}) {
    kernels.push_back(pointwise_kernel(x));
    kernels.push_back(pointwise_kernel(x));
    kernels.back().axes.insert(kernels.back().axes.begin(),
                               {.kind = codegen::TileAxisKind::y, .numel = 256, .size_hint = 256});
    for (const auto hint :
         {ReductionHint::normal, ReductionHint::inner, ReductionHint::outer, ReductionHint::outer_tiny}) {
      for (const int64_t r0 : {2, 64, 1024, 1 << 16}) {
        kernels.push_back(reduction_kernel(x, r0, hint));
        if (r0 > 1024) continue;
        kernels.push_back(kernels.back());
        kernels.back().form = codegen::TileForm::persistent;
        kernels.back().axes.back().block = r0;
      }
    }
  }
  for (const auto& kernel : kernels) {
    const ConfigSpace space(kernel);
    const auto configs = candidates(kernel);
    EXPECT_GE(configs.size(), 1u);
    EXPECT_LE(configs.size(), 6u);
    for (const auto& c : configs) EXPECT_TRUE(space.contains(c)) << to_string(c);
  }
}

TEST(Candidates, KeepNoMoreThanARow) {
  for (const int64_t r0 : {2048, 8192, 1 << 16}) {
    codegen::TileKernel kernel = reduction_kernel(4096, r0, ReductionHint::inner);
    for (const auto& c : candidates(kernel)) EXPECT_EQ(c.kept, 0);
    kernel.keeps = true;
    int32_t most = 0;
    for (const auto& c : candidates(kernel)) {
      EXPECT_LT((c.kept - 1) * c.blocks.back().second, r0) << to_string(c);
      EXPECT_TRUE(ConfigSpace(kernel).contains(c)) << to_string(c);
      most = std::max(most, c.kept);
    }
    EXPECT_GT(most, 0);
    EXPECT_EQ(candidates(kernel).front().kept, 0);
  }
}

TEST(Candidates, OfLoopsThatScanHaveFewWarps) {
  for (const auto hint : {ReductionHint::inner, ReductionHint::outer}) {
    codegen::TileKernel kernel = reduction_kernel(8192, 8192, hint);
    const auto plain = candidates(kernel);
    kernel.body.push_back({.action = codegen::TileAction::loop});
    kernel.body.back().body.push_back({.action = codegen::TileAction::scan});
    const auto got = candidates(kernel);
    const std::string few = hint == ReductionHint::inner ? "XBLOCK=1 R0_BLOCK=1024 num_warps=4 num_stages=1"
                                                         : "XBLOCK=32 R0_BLOCK=64 num_warps=4 num_stages=1";
    const auto has = [&](const auto& configs) {
      return std::ranges::any_of(configs, [&](const auto& c) { return to_string(c) == few; });
    };
    EXPECT_TRUE(has(got));
    EXPECT_FALSE(has(plain));
    EXPECT_LE(got.size(), 6u);
    for (const auto& c : got) EXPECT_TRUE(ConfigSpace(kernel).contains(c)) << to_string(c);
  }
}

// A thread of such a kernel holds a few elements, since its code grows with them.
TEST(Candidates, OfKernelsThatSortAreFewAndShort) {
  for (const int64_t rows : {1, 100000}) {
    for (const int64_t r0 : {4, 128, 1024, 2048}) {
      codegen::TileKernel kernel = reduction_kernel(rows, r0, ReductionHint::outer);
      kernel.form = codegen::TileForm::persistent;
      kernel.axes.back().block = r0;
      kernel.body.push_back({.action = codegen::TileAction::scan, .op = loops::OpCode::scan_sort});
      std::vector<codegen::LaunchConfig> got = candidates(kernel);
      EXPECT_GE(got.size(), 2u);
      EXPECT_LE(got.size(), 4u);
      kernel.batch_invariant = true;
      got.push_back(default_config(kernel));
      kernel.batch_invariant = false;
      for (const auto& c : got) {
        EXPECT_LE(c.blocks.back().second * r0, 8 * 32 * c.warps) << to_string(c);
        EXPECT_TRUE(ConfigSpace(kernel).contains(c)) << to_string(c);
      }
    }
  }
}

// Rows of 100 where the example's have 1024: the form for them has blocks of 128, and takes several rows at a
// time.
TEST(Candidates, OfAFormForShorterRowsGoByItsBlock) {
  codegen::TileKernel shorter = reduction_kernel(4096, 1024, ReductionHint::inner);
  shorter.form = codegen::TileForm::persistent;
  shorter.axes.back().block = 128;
  codegen::TileKernel of_that_length = shorter;
  of_that_length.axes.back().size_hint = 128;
  const auto got = candidates(shorter), wanted = candidates(of_that_length);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t k = 0; k < got.size(); ++k) EXPECT_EQ(to_string(got[k]), to_string(wanted[k]));
  shorter.axes.back().block = 1024;
  EXPECT_NE(to_string(candidates(shorter)[0]), to_string(got[0]));
}

codegen::TileKernel staged_kernel(int64_t r0, std::vector<DType> loads) {
  codegen::TileKernel kernel = reduction_kernel(1024, r0, ReductionHint::outer);
  kernel.staged = true;
  codegen::TileStatement loop{.action = codegen::TileAction::loop};
  for (const DType dtype : loads) loop.body.push_back({.action = codegen::TileAction::load, .dtype = dtype});
  kernel.body.push_back(loop);
  return kernel;
}

// 96 KiB hold 12 blocks of 8 x 256 float32, 3 of two float64 and one of 32 x 256 of three float32; the block
// of the step at hand is in registers.
TEST(Stages, AreThoseThatSharedMemoryHolds) {
  const LaunchConfig small{.blocks = {{"XBLOCK", 8}, {"R0_BLOCK", 256}}};
  const LaunchConfig large{.blocks = {{"XBLOCK", 32}, {"R0_BLOCK", 256}}};
  EXPECT_EQ(stages_for(staged_kernel(1 << 16, {kFloat32}), small), 6);  // no more are of use
  EXPECT_EQ(stages_for(staged_kernel(1 << 16, {kFloat64, kFloat64}), small), 4);
  EXPECT_EQ(stages_for(staged_kernel(1 << 16, {kFloat32, kFloat32, kFloat32}), large), 2);
  EXPECT_EQ(stages_for(staged_kernel(1 << 16, {kFloat64, kFloat64, kFloat64}), large), 1);
  EXPECT_EQ(stages_for(staged_kernel(512, {kFloat32}), small), 3);  // of two steps
  EXPECT_EQ(stages_for(staged_kernel(1 << 16, {}), small), 1);
  EXPECT_EQ(stages_for(reduction_kernel(1024, 1 << 16, ReductionHint::inner), small), 1);
}

TEST(SelectEmpirically, TakesTheFastest) {
  FakeBench bench(valley);
  const std::vector<LaunchConfig> configs = {x_config(8, 4), x_config(128, 4), x_config(512, 4)};
  const SearchResult result = select_empirically(configs, bench, {.repeats = 7});
  EXPECT_EQ(to_string(result.best), to_string(configs[1]));
  EXPECT_EQ(bench.launches[to_string(configs[2])], 7);
  EXPECT_THAT(table_of(result), HasSubstr("* XBLOCK=128 num_warps=4 num_stages=1"));
}

TEST(SelectEmpirically, TakesOneCandidateUnmeasured) {
  FakeBench bench(valley);
  const std::vector<LaunchConfig> one = {x_config(8, 4)};
  EXPECT_EQ(to_string(select_empirically(one, bench, {}).best), to_string(one[0]));
  EXPECT_EQ(bench.measurements, 0);
}

TEST(SelectEmpirically, ASpillingConfigurationLosesHoweverFastItIs) {
  FakeBench bench([](const LaunchConfig& c) {
    return Measured{.seconds = 1.0 / static_cast<double>(c.blocks[0].second),
                    .spill_bytes = c.blocks[0].second > 64 ? static_cast<int32_t>(c.blocks[0].second) : 0};
  });
  const std::vector<LaunchConfig> some = {x_config(8, 4), x_config(64, 4), x_config(128, 4)};
  EXPECT_EQ(to_string(select_empirically(some, bench, {}).best), to_string(some[1]));
  const std::vector<LaunchConfig> all = {x_config(512, 4), x_config(128, 4), x_config(256, 4)};
  EXPECT_EQ(to_string(select_empirically(all, bench, {}).best), to_string(all[1]));
}

TEST(SelectEmpirically, SaysWhyNothingLaunches) {
  FakeBench bench([](const LaunchConfig& c) {
    return Measured{.failure = c.warps == 32 ? "out of registers" : "too much shared memory"};
  });
  const std::vector<LaunchConfig> configs = {x_config(8, 32), x_config(8, 4)};
  for (const Strategy& s : strategies()) {
    try {
      (void)s.search(ConfigSpace(pointwise_kernel(64)), configs, bench, {});
      FAIL() << s.name;
    } catch (const RuntimeError& error) {
      EXPECT_THAT(error.what(), HasSubstr("XBLOCK=8 num_warps=32 num_stages=1: out of registers")) << s.name;
      EXPECT_THAT(error.what(), HasSubstr("too much shared memory")) << s.name;
    }
  }
}

TEST(DescendCoordinates, ReachesTheBottomOfAValley) {
  const ConfigSpace space(pointwise_kernel(4096));
  FakeBench bench(valley);
  const std::vector<LaunchConfig> start = {x_config(4096, 32)};
  const SearchResult result = descend_coordinates(space, start, bench, {});
  EXPECT_EQ(to_string(result.best), to_string(x_config(64, 4)));
  for (const auto& [config, launches] : bench.launches) EXPECT_EQ(launches, 20) << config;  // each once
}

// Proposition 9.2: at the end no neighbour is faster by more than epsilon; a gain below it is none.
TEST(DescendCoordinates, StopsWhereNoNeighbourGainsEpsilon) {
  const ConfigSpace space(pointwise_kernel(4096));
  const auto slope = [](const LaunchConfig& c) {
    return Measured{.seconds = 1 - 0.01 * std::log2(static_cast<double>(c.blocks[0].second))};
  };
  FakeBench bench(slope);
  const std::vector<LaunchConfig> start = {x_config(16, 4)};
  EXPECT_EQ(descend_coordinates(space, start, bench, {.epsilon = 1e-3}).best.blocks[0].second, 4096);
  EXPECT_EQ(descend_coordinates(space, start, bench, {.epsilon = 0.02}).best.blocks[0].second, 16);
}

TEST(SearchRandomly, DrawsAsOftenAsTheProposition) {
  EXPECT_EQ(random_draws(0.05, 0.05), 60);  // the specification's example
  EXPECT_EQ(random_draws(1, 0.5), 1);
  EXPECT_THROW((void)random_draws(0, 0.5), UserError);
}

// Costs in an order that no coordinate shows: the share of seeds that miss the best tenth is at most delta.
TEST(SearchRandomly, FindsOneOfTheBestWithTheProbabilityOfTheProposition) {
  const ConfigSpace space(pointwise_kernel(4096));
  const auto scattered = [](const LaunchConfig& c) {
    return Measured{.seconds =
                        1e-6 * static_cast<double>(1 + std::hash<std::string>()(to_string(c)) % 100003)};
  };
  std::vector<double> costs;
  for (int64_t x = 1; x <= 4096; x *= 2)
    for (int32_t w = 1; w <= 32; w *= 2) costs.push_back(scattered(x_config(x, w)).seconds);
  ASSERT_EQ(static_cast<int64_t>(costs.size()), space.size());
  std::sort(costs.begin(), costs.end());
  const double good = costs[static_cast<size_t>(std::ceil(0.1 * static_cast<double>(costs.size()))) - 1];
  int missed = 0;
  constexpr int kSeeds = 1000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeBench bench(scattered);
    const SearchResult r = search_randomly(space, {}, bench, {.quantile = 0.1, .failure = 0.1, .seed = seed});
    missed += r.measured.seconds > good;
  }
  EXPECT_LE(missed, 0.1 * kSeeds + 3 * std::sqrt(0.09 * kSeeds));
}

TEST(HalveSuccessively, MeasuresTheBestMostAndTheOthersOnce) {
  const ConfigSpace space(pointwise_kernel(4096));
  FakeBench halving(valley), all(valley);
  const SearchOptions options{.repeats = 32, .seed = 3};
  const SearchResult a = halve_successively(space, {}, halving, options);
  const SearchResult b = search_randomly(space, {}, all, options);
  EXPECT_EQ(to_string(a.best), to_string(b.best));
  EXPECT_GE(halving.launches[to_string(a.best)], 32);
  int64_t spent = 0, whole = 0;
  for (const auto& [config, launches] : halving.launches) spent += launches;
  for (const auto& [config, launches] : all.launches) whole += launches;
  EXPECT_LT(spent, whole / 2);
}

TEST(Threshold, AcceptsNoStepThatNoiseExplains) {
  const std::vector<double> times = {0.98, 1.0, 1.02};
  EXPECT_NEAR(noise_of(times), 0.02, 1e-12);
  EXPECT_DOUBLE_EQ(threshold(0), 1e-3);
  // A slower configuration measured at its fastest, a faster one at its slowest: section 9.6.
  for (const double noise : {0.001, 0.01, 0.1}) {
    const double t = 1.0, slower = t * 1.0000001;
    EXPECT_FALSE(slower * (1 - noise) < (1 - threshold(noise)) * t * (1 + noise)) << noise;
  }
}

TEST(Strategies, AnUnknownNameListsThoseThereAre) {
  EXPECT_EQ(strategy_named("random").name, "random");
  try {
    (void)strategy_named("best");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("none, candidates, coordinate_descent, random, successive_halving"));
  }
}

}  // namespace
}  // namespace stax::tuning
