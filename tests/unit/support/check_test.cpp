// The three checks throw the three kinds of error, and evaluate their condition once and their message only
// on failure.
#include "support/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stax {
namespace {

template <typename E, typename F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Check, FailedUserCheckThrowsItsMessage) {
  EXPECT_EQ(
      message_of<UserError>([] { STAX_CHECK(1 == 2, "[slice] expected a step of at least 1, got {}", 0); }),
      "[slice] expected a step of at least 1, got 0");
}

TEST(Check, FailedRuntimeCheckThrowsItsMessage) {
  EXPECT_EQ(message_of<RuntimeError>([] { STAX_RUNTIME_CHECK(false, "the disk is full"); }),
            "the disk is full");
}

TEST(Check, FailedAssertionNamesConditionAndPlace) {
  const std::string message = message_of<InternalError>([] { STAX_ASSERT(1 + 1 == 3, "sum is {}", 2); });
  EXPECT_THAT(message, testing::HasSubstr("1 + 1 == 3"));
  EXPECT_THAT(message, testing::HasSubstr("check_test.cpp:"));
  EXPECT_THAT(message, testing::HasSubstr("sum is 2"));
}

TEST(Check, KindsOfErrorAreDistinct) {
  EXPECT_EQ(message_of<InternalError>([] {
              try {
                STAX_CHECK(false, "user");
              } catch (const UserError&) {
              }
            }),
            "nothing was thrown");
  EXPECT_THROW(STAX_CHECK(false, "user"), Error);
  EXPECT_THROW(STAX_RUNTIME_CHECK(false, "machine"), Error);
  EXPECT_THROW(STAX_ASSERT(false, "bug"), Error);
}

TEST(Check, EvaluatesConditionOnceAndMessageOnlyOnFailure) {
  int conditions = 0;
  int messages = 0;
  STAX_CHECK(++conditions == 1, "{}", ++messages);
  EXPECT_EQ(conditions, 1);
  EXPECT_EQ(messages, 0);
}

TEST(Check, IsOneStatement) {
  bool reached_else = false;
  if (false)
    STAX_CHECK(true, "then");
  else
    reached_else = true;
  EXPECT_TRUE(reached_else);
}

}  // namespace
}  // namespace stax
