// Records of chosen configurations.
#include "tuning/tune.h"

#include <gtest/gtest.h>

#include <fstream>

#include "stax/error.h"
#include "support/file.h"
#include "unit/tuning/synthetic.h"

namespace stax::tuning {
namespace {

using codegen::LaunchConfig;

class Tune : public ::testing::Test {
 protected:
  Tune() : folder_(temporary_root(), "stax-tune-"), cache_(folder_.path() + "/cache"), records_(cache_) {}

  LaunchConfig tuned(const TuningKey& key) { return tune(kernel_, key, bench_, records_, {}); }

  TemporaryFolder folder_;
  runtime::CodeCache cache_;
  TuningRecords records_;
  codegen::TileKernel kernel_ = pointwise_kernel(1 << 20);
  TuningKey key_{.source = "a kernel", .gpu = "a GPU", .triton = "3.6.0", .strategy = "candidates"};
  // The more values a block has, the faster.
  FakeBench bench_{[](const LaunchConfig& c) {
    return Measured{.seconds = 1.0 / static_cast<double>(c.blocks[0].second)};
  }};
};

TEST_F(Tune, MeasuresAKernelOnce) {
  const LaunchConfig first = tuned(key_);
  EXPECT_EQ(first.blocks[0].second, 4096);
  const int64_t measured = bench_.measurements;
  EXPECT_GT(measured, 1);
  EXPECT_EQ(to_string(tuned(key_)), to_string(first));
  EXPECT_EQ(bench_.measurements, measured);
}

TEST_F(Tune, EverythingThatARecordDependsOnIsItsKey) {
  (void)tuned(key_);
  for (auto change : {+[](TuningKey& k) { k.source += " "; }, +[](TuningKey& k) { k.gpu = "another"; },
                      +[](TuningKey& k) { k.triton = "3.5.0"; }, +[](TuningKey& k) { k.sizes = "x * 8"; },
                      +[](TuningKey& k) { k.strategy = "coordinate_descent"; }}) {
    TuningKey other = key_;
    change(other);
    const int64_t measured = bench_.measurements;
    (void)tuned(other);
    EXPECT_GT(bench_.measurements, measured);
  }
  const std::vector<LaunchConfig> fewer = {x_config(64, 4)};
  EXPECT_FALSE(recorded_config(records_, key_, ConfigSpace(kernel_), fewer));
}

// Content that is whole but no configuration of this kernel: of another version, or made by hand.
TEST_F(Tune, ARecordThatDoesNotFitCountsAsMissing) {
  const std::vector<LaunchConfig> start = candidates(kernel_);
  for (const LaunchConfig& config :
       {x_config(3, 4), x_config(8192, 4), LaunchConfig{.blocks = {{"YBLOCK", 8}}}, LaunchConfig{}}) {
    record_config(records_, key_, start, config);
    EXPECT_FALSE(recorded_config(records_, key_, ConfigSpace(kernel_), start)) << to_string(config);
  }
  record_config(records_, key_, start, x_config(8, 2));
  const auto found = recorded_config(records_, key_, ConfigSpace(kernel_), start);
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(*found), to_string(x_config(8, 2)));
}

TEST_F(Tune, RecordsThatCannotBeReadCountAsMissing) {
  Json facts = Json::object(), others = Json::object();
  facts.set("what", "a number");
  others.set("what", "another");
  const auto number = [](const Json& record) { return std::optional(record.as_int()); };
  records_.put(facts, Json("words"));
  EXPECT_FALSE(records_.find(facts, number));
  records_.put(facts, Json(7));
  EXPECT_EQ(records_.find(facts, number), 7);
  EXPECT_FALSE(records_.find(others, number));
}

TEST_F(Tune, WithoutACacheItMeasuresEveryTime) {
  const std::string file = folder_.path() + "/file";
  std::ofstream(file) << "no folder";
  const runtime::CodeCache none(file + "/cache");
  const TuningRecords records(none);
  EXPECT_EQ(tune(kernel_, key_, bench_, records, {}).blocks[0].second, 4096);
  const int64_t measured = bench_.measurements;
  EXPECT_EQ(tune(kernel_, key_, bench_, records, {}).blocks[0].second, 4096);
  EXPECT_GT(bench_.measurements, measured);
}

TEST_F(Tune, AnUnknownStrategyIsRefused) {
  key_.strategy = "guessing";
  EXPECT_THROW((void)tuned(key_), UserError);
}

}  // namespace
}  // namespace stax::tuning
