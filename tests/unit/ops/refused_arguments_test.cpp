// Arguments that operators refuse, as PyTorch does, with errors that say what was expected and what came.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "stax/stax.h"
#include "support/user_error.h"

namespace stax {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RefusedArguments, BoolIsNotRounded) {
  const Tensor x = tensor({true, false});
  EXPECT_THAT(error_of([&] { return ceil(x); }), StartsWith("ceil: expected numbers, got bool"));
  EXPECT_THAT(error_of([&] { return floor(x); }), StartsWith("floor: expected numbers, got bool"));
  EXPECT_THAT(error_of([&] { return round(x); }), StartsWith("round: expected numbers, got bool"));
  EXPECT_THAT(error_of([&] { return trunc(x); }), StartsWith("trunc: expected numbers, got bool"));
  EXPECT_THAT(error_of([&] { return compile([](const Tensor& t) { return floor(t); })(x); }),
              HasSubstr("floor: expected numbers, got bool"));
  for (const auto& round_it : {ceil(tensor({2, -3})), trunc(tensor({2, -3})), round(tensor({2, -3}))})
    EXPECT_TRUE(round_it.equal(tensor({2, -3})));
}

TEST(RefusedArguments, ProbabilitiesOutsideOfZeroToOne) {
  const Tensor x = ones({2});
  for (const double p : {-0.5, 1.5, std::nan("")})
    EXPECT_THAT(error_of([&] { return bernoulli(x, p); }),
                StartsWith("bernoulli: expected a probability in [0, 1], got"));
}

TEST(RefusedArguments, RandomIntegersThatTheDTypeDoesNotHold) {
  const std::vector<int64_t> some = {4};
  EXPECT_THAT(
      error_of([&] { return randint(0, 257, some, kUInt8); }),
      AllOf(StartsWith("randint: expected numbers that uint8 holds, from 0 to 255"), HasSubstr("257")));
  EXPECT_THAT(error_of([&] { return randint(-1, 5, some, kUInt8); }), HasSubstr("uint8"));
  EXPECT_THAT(error_of([&] { return randint(-129, 0, some, kInt8); }), HasSubstr("-128 to 127"));
  EXPECT_THAT(error_of([&] { return randint(0, 3, some, kBool); }), HasSubstr("from 0 to 1"));
  EXPECT_THAT(error_of([&] { return randint(0, int64_t{1} << 40, some, kInt32); }), HasSubstr("2147483647"));
  EXPECT_THAT(error_of([&] { return randint(0, 65506, some, kFloat16); }), HasSubstr("-65504 to 65504"));
  EXPECT_THAT(error_of([&] { return randint_like(zeros({4}, kUInt8), 400); }), HasSubstr("uint8"));
  EXPECT_THAT(error_of([&] { return randint(3, 3, some); }), HasSubstr("expected low < high, got 3 and 3"));
  EXPECT_EQ(randint(0, 256, some, kUInt8).size(0), 4);
  EXPECT_EQ(randint(-128, 128, some, kInt8).size(0), 4);
  EXPECT_EQ(randint(0, 2, some, kBool).size(0), 4);
  EXPECT_EQ(randint(-(int64_t{1} << 61), int64_t{1} << 61, some).size(0), 4);
}

/// PyTorch counts the same: 2^11 + 1 numbers fit float16.
TEST(RefusedArguments, PermutationsThatTheDTypeDoesNotHold) {
  EXPECT_THAT(error_of([] { return randperm(257, kUInt8); }),
              HasSubstr("uint8 holds every position, up to 255"));
  EXPECT_THAT(error_of([] { return randperm(2050, kFloat16); }), HasSubstr("up to 2048, got 2050"));
  EXPECT_THAT(error_of([] { return randperm(-1); }), HasSubstr("got -1"));
  EXPECT_TRUE(std::get<0>(sort(randperm(256, kUInt8).to(kInt64))).equal(arange(256)));
  EXPECT_TRUE(std::get<0>(sort(randperm(2049, kFloat16).to(kInt64))).equal(arange(2049)));
}

TEST(RefusedArguments, RangesOfRandomNumbers) {
  const Tensor x = ones({4}), half = ones({4}, kFloat16);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(error_of([&] { return x.uniform_(1, 0); }), HasSubstr("from <= to"));
  EXPECT_THAT(error_of([&] { return x.uniform_(-3e38, 3e38); }), HasSubstr("float32's largest number"));
  EXPECT_THAT(error_of([&] { return x.uniform_(0, kInfinity); }), HasSubstr("got 0 and inf"));
  EXPECT_THAT(error_of([&] { return half.uniform_(0, 1e5); }), HasSubstr("65504"));
  EXPECT_THAT(error_of([&] { return x.normal_(0, -1); }), HasSubstr("std >= 0"));
  EXPECT_TRUE(x.uniform_(2, 2).equal(full({4}, 2.0)));
  EXPECT_TRUE(x.normal_(3, 0).equal(full({4}, 3.0)));
}

}  // namespace
}  // namespace stax
