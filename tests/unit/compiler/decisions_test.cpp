// STAX_CHECK=decisions: what an artifact was decided by, asked again at other sizes.
#include "compiler/decisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/batch.h"
#include "stax/stax.h"
#include "tensor/tensor_impl.h"

namespace stax::compiler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// What asking again says for an artifact that was made for `made` and would serve `served`.
std::string asked_again(const TensorFunction& function, const std::vector<Tensor>& made,
                        const std::vector<Tensor>& served, std::vector<int64_t> late = {}) {
  const capture::Captured captured =
      trace_function(function, made, {.dynamic = true, .record_decisions = true});
  std::vector<const StridedImpl*> tensors;
  for (const Tensor& t : served) tensors.push_back(&strided(t));
  try {
    const DecisionCheck check(captured, tensors, {});
    check.before();
    check.after(late);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "the same";
}

TEST(Decisions, OfGuards) {
  const auto f = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0].size(0) > 4 ? in[0] + 1 : in[0] * 2};
  };
  EXPECT_EQ(asked_again(f, {zeros({6})}, {zeros({9})}), "the same");
  EXPECT_THAT(asked_again(f, {zeros({6})}, {zeros({3})}), AllOf(HasSubstr("4 < s0"), HasSubstr("s0 = 3")));
  EXPECT_THAT(asked_again(f, {zeros({3})}, {zeros({6})}), HasSubstr("s0 = 6"));
}

// No guard says that sizes are 2 or more: ranges do, and the check must not rest on them.
TEST(Decisions, OfRanges) {
  const auto f = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0].size(0) > 1 ? in[0] + 1 : in[0] * 2};
  };
  EXPECT_EQ(asked_again(f, {zeros({6})}, {zeros({2})}), "the same");
  EXPECT_THAT(asked_again(f, {zeros({6})}, {zeros({1})}), HasSubstr("s0 = 1"));
}

TEST(Decisions, OfSizesThatNothingElseReads) {
  const auto f = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[1].size(0) > 1 ? in[0] + 1 : in[0] * 2};
  };
  EXPECT_THAT(asked_again(f, {zeros({6}), zeros({3})}, {zeros({6}), zeros({1})}), HasSubstr("= 1"));
}

TEST(Decisions, OfWhatDataDetermines) {
  // At most as many as there are elements.
  const auto f = [](const std::vector<Tensor>& in) {
    const SymInt found = nonzero(in[0]).size(0);
    return std::vector<Tensor>{found <= in[0].size(0) ? in[0] + 1 : in[0] * 2};
  };
  EXPECT_EQ(asked_again(f, {zeros({6})}, {zeros({4})}, {4}), "the same");
  EXPECT_THAT(asked_again(f, {zeros({6})}, {zeros({4})}, {5}), HasSubstr("u0 = 5"));
}

}  // namespace
}  // namespace stax::compiler
