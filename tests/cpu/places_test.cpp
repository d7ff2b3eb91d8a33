// Errors name the operation and the user's line. This file is compiled with debug lines.
#include <gtest/gtest.h>

#include "stax/stax.h"

namespace user {

struct Place {
  int line = 0;
  std::string text() const { return "places_test.cpp:" + std::to_string(line); }
};

Place product_place, pick_place, update_place;

stax::Tensor product(const stax::Tensor& x, const stax::Tensor& w) {
  product_place.line = __LINE__ + 1;
  const stax::Tensor y = stax::mm(x, w);
  return y + 1;
}

stax::Tensor pick(const stax::Tensor& x, const stax::Tensor& at) {
  pick_place.line = __LINE__ + 1;
  const stax::Tensor rows = x.index_select(0, at);
  return rows * 2;
}

void update(const stax::Tensor& x) {
  update_place.line = __LINE__ + 1;
  x.mul_(0.5);
  x.add_(1);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const stax::UserError& error) {
    return error.what();
  }
  return "no error";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Places, OfErrorsWhileTracing) {
  const auto compiled = stax::compile(product);
  const std::string text = error_of([&] { compiled(stax::ones({2, 3}), stax::ones({4, 5})); });
  EXPECT_TRUE(holds(text, "mm")) << text;
  EXPECT_TRUE(holds(text, product_place.text())) << text;
  const auto halves = stax::compile(update);
  const std::string other = error_of([&] { halves(stax::ones({2}, stax::kInt32)); });
  EXPECT_TRUE(holds(other, "mul_")) << other;
  EXPECT_TRUE(holds(other, update_place.text())) << other;
}

TEST(Places, OfErrorsWhileRunning) {
  const auto compiled = stax::compile(pick);
  const stax::Tensor x = stax::ones({3, 2});
  EXPECT_EQ(compiled(x, stax::tensor({0, 2})).size(0), 2);
  const std::string text = error_of([&] { compiled(x, stax::tensor({0, 7})); });
  EXPECT_TRUE(holds(text, "index 7")) << text;
  EXPECT_TRUE(holds(text, pick_place.text())) << text;
}

TEST(Places, OfErrorsInEagerMode) {
  const std::string text = error_of([] { product(stax::ones({2, 3}), stax::ones({4, 5})); });
  EXPECT_TRUE(holds(text, product_place.text())) << text;
  const std::string index = error_of([] { pick(stax::ones({3, 2}), stax::tensor({9})); });
  EXPECT_TRUE(holds(index, pick_place.text())) << index;
}

TEST(Places, StandOnceInAMessage) {
  const auto inner = stax::compile(product);
  const auto outer =
      stax::compile([&](const stax::Tensor& x, const stax::Tensor& w) { return inner(x, w) * 2; });
  const std::string text = error_of([&] { outer(stax::ones({2, 3}), stax::ones({4, 5})); });
  const size_t first = text.find("\n  at ");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("\n  at ", first + 1), std::string::npos) << text;
}

TEST(Places, OfCompiledFunctionsThatLoseTheirOptions) {
  const auto inner = stax::compile(pick, {.batch_invariant = true});
  Place place;
  const auto outer = stax::compile([&](const stax::Tensor& x, const stax::Tensor& at) {
    place.line = __LINE__ + 1;
    return inner(x, at) * 2;
  });
  testing::internal::CaptureStderr();
  outer(stax::ones({3, 2}), stax::tensor({0, 2}));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(holds(text, ", at ")) << text;
  EXPECT_TRUE(holds(text, place.text() + ", is called")) << text;
}

TEST(Places, OfWhatOperatorsNeedOfData) {
  int line = 0;
  const auto compiled = stax::compile(
      [&](const stax::Tensor& x, const stax::Tensor& y) {
        const stax::Tensor a = masked_select(x, x > 0), b = masked_select(y, y > 0);
        line = __LINE__ + 1;
        return a + b;
      },
      {.strict_native = true});
  const stax::Tensor x = stax::ones({3});
  EXPECT_EQ(compiled(x, x).size(0), 3);
  const std::string text = error_of([&] { compiled(x, stax::tensor({1.0f, -1.0f, 1.0f})); });
  EXPECT_TRUE(holds(text, "check failed")) << text;
  EXPECT_TRUE(holds(text, "add")) << text;
  EXPECT_TRUE(holds(text, Place{line}.text())) << text;
}

}  // namespace user
