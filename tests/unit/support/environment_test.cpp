#include "support/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace stax {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kVariable = "A_SETTING_OF_THIS_TEST";

class Environment : public testing::Test {
 protected:
  ~Environment() override { unsetenv(kVariable); }
  std::optional<int32_t> count(const char* value) {
    setenv(kVariable, value, 1);
    return environment_count(kVariable, 64);
  }
};

TEST_F(Environment, CountsArePositiveNumbers) {
  EXPECT_EQ(environment_count(kVariable, 64), std::nullopt);
  EXPECT_EQ(count(""), std::nullopt);
  EXPECT_EQ(count("3"), 3);
  EXPECT_EQ(count("64"), 64);
  EXPECT_EQ(count("65"), 64);
  EXPECT_EQ(count("99999999999999999999"), 64);
}

TEST_F(Environment, WhatIsNoCountIsWarnedOf) {
  for (const char* value : {"abc", "-3", "0", "2x", " 2", "2.5", "-99999999999999999999"}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(count(value), std::nullopt) << value;
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr(std::string(kVariable) + " is '" + value + "', which is no positive number"));
  }
}

TEST_F(Environment, UnknownWordsAreWarnedOf) {
  constexpr std::string_view kKnown[] = {"one", "two"};
  EXPECT_THAT(environment_words(kVariable, kKnown), IsEmpty());
  setenv(kVariable, "two,,one", 1);
  EXPECT_THAT(environment_words(kVariable, kKnown), ElementsAre("two", "one"));
  setenv(kVariable, "onetwo,two", 1);
  testing::internal::CaptureStderr();
  EXPECT_THAT(environment_words(kVariable, kKnown), ElementsAre("two"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("names 'onetwo'; there are one, two"));
}

TEST_F(Environment, AWordIsOneOfThoseThatThereAre) {
  constexpr std::string_view kOne[] = {"one"}, kTwo[] = {"one", "two"};
  const auto word = [](const char* value, std::span<const std::string_view> known) {
    setenv(kVariable, value, 1);
    return environment_word(kVariable, known);
  };
  EXPECT_EQ(environment_word(kVariable, kTwo), std::nullopt);
  EXPECT_EQ(word("", kTwo), std::nullopt);
  EXPECT_EQ(word("two", kTwo), "two");
  testing::internal::CaptureStderr();
  EXPECT_EQ(word("two", kOne), std::nullopt);
  EXPECT_EQ(word("two", kOne), std::nullopt);
  EXPECT_EQ(word("one,two", kTwo), std::nullopt);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            std::string("stax: warning: ") + kVariable + " is 'two', which is left aside; expected one\n" +
                "stax: warning: " + kVariable + " is 'one,two', which is left aside; expected one, two\n");
}

}  // namespace
}  // namespace stax
