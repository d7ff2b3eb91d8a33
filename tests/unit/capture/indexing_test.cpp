// Indexing; the expected values are those of NumPy for the same expressions on arange(24).reshape(2, 3, 4).
#include <gtest/gtest.h>

#include "stax/stax.h"

namespace stax {
namespace {

Tensor cube() {
  return arange(24).reshape({2, 3, 4});
}

std::vector<int64_t> values(const Tensor& x) {
  const Tensor flat = x.to(kInt64).contiguous();
  const int64_t* data = flat.data_ptr<int64_t>();
  return {data, data + static_cast<int64_t>(flat.numel())};
}

void expect(const Tensor& x, IntList sizes, const std::vector<int64_t>& expected) {
  EXPECT_TRUE(x.sizes() == sizes) << x;
  EXPECT_EQ(values(x), expected);
}

TEST(Index, PlainEntriesGiveViews) {
  const Tensor x = cube();
  expect(x.index({1, 2, 3}), {}, {23});
  expect(x.index({-1, 0}), {4}, {12, 13, 14, 15});
  expect(x.index({0, Slice(1, None)}), {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11});
  expect(x.index({"...", Slice(None, None, 3)}), {2, 3, 2}, {0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23});
  expect(x.index({Ellipsis, 0}), {2, 3}, {0, 4, 8, 12, 16, 20});
  expect(x.index({0, None, 1}), {1, 4}, {4, 5, 6, 7});
  expect(x.index({Slice(None, -1), Slice(-2, None), 0}), {1, 2}, {4, 8});
  expect(x.index({Slice(5, 9)}), {0, 3, 4}, {});
  EXPECT_TRUE(x.index({1, Slice(1, 2)}).is_alias_of(x));
  EXPECT_TRUE(x[1].is_alias_of(x));
  expect(x[1][2], {4}, {20, 21, 22, 23});
}

TEST(Index, WrongEntriesRaise) {
  const Tensor x = cube();
  EXPECT_THROW(x.index({2}), UserError);
  EXPECT_THROW(x.index({0, 0, 0, 0}), UserError);
  EXPECT_THROW(x.index({Ellipsis, Ellipsis}), UserError);
  EXPECT_THROW(x.index({tensor({0.5})}), UserError);
  EXPECT_THROW(x.index({Slice(0, 2, 0)}), UserError);
}

TEST(IndexPut, WritesViews) {
  Tensor x = arange(6).reshape({2, 3});
  x.index_put_({0, Slice(1, None)}, 9);
  expect(x, {2, 3}, {0, 9, 9, 3, 4, 5});
  x.index_put_({Slice(), 0}, tensor({7, 8}));
  expect(x, {2, 3}, {7, 9, 9, 8, 4, 5});
  x.index_put_({1}, tensor({{1, 2, 3}}));
  expect(x, {2, 3}, {7, 9, 9, 1, 2, 3});
  EXPECT_THROW(x.index_put_({0}, tensor({1, 2})), UserError);
}

TEST(IndexPut, WritesUnderAMask) {
  Tensor x = arange(6).reshape({2, 3});
  x.index_put_({x > 3}, -1);
  expect(x, {2, 3}, {0, 1, 2, 3, -1, -1});
}

}  // namespace
}  // namespace stax
