// Errors name the user's line where the optimiser inlined it into Stax. This file is compiled with -O2 and
// debug lines.
#include <gtest/gtest.h>

#include "stax/stax.h"

namespace user {
namespace {

TEST(Places, OfLambdasThatAreInlined) {
  const int line = __LINE__ + 3;
  const auto compiled = stax::compile([](const stax::Tensor& x, const stax::Tensor& y) {
    const stax::Tensor twice = x * 2;
    return twice + y;
  });
  try {
    compiled(stax::ones({4}), stax::ones({3}));
    FAIL() << "no error";
  } catch (const stax::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("inlined_places_test.cpp:" + std::to_string(line)),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace user
