// In-place updates, views and aliases inside compiled functions: what eager evaluation gives.
#include "cpu/compile_testing.h"

namespace stax {
namespace {

using T = Tensor;
using indexing::None;
using indexing::Slice;

TEST(Mutation, WritesBackToInputs) {
  const auto f = compile([](const T& x) { return x.add_(1) * 2; }, strict());
  const T x = tensor({1.f, 2.f});
  expect_floats(f(x), {4, 6});
  expect_floats(x, {2, 3});
}

TEST(Mutation, ShiftsRowsInPlace) {  // C075
  const auto f = compile(
      [](const T& x) {
        x.slice(0, 1).copy_(x.slice(0, 0, -1).clone());
        return x;
      },
      strict());
  const T small = tensor({{1.f}, {2.f}, {3.f}, {4.f}});
  const T out = f(small);
  EXPECT_TRUE(out.is_same(small));
  expect_floats(small, {1, 1, 2, 3});
  for (int run = 0; run < 10; ++run) {
    const T large = arange(1024).to(kFloat).unsqueeze(1).expand({1024, 2048}).contiguous();
    f(large);
    const std::vector<float> got = values(large);
    for (int64_t i = 0; i < 1024; ++i) {
      ASSERT_EQ(got[static_cast<size_t>(i * 2048)], static_cast<float>(std::max<int64_t>(i - 1, 0)));
      ASSERT_EQ(got[static_cast<size_t>(i * 2048 + 2047)], static_cast<float>(std::max<int64_t>(i - 1, 0)));
    }
  }
}

TEST(Mutation, ErrorsNameTheCallAsInEagerMode) {
  const auto error_of_update = [](const auto& update) -> std::string {
    try {
      update(zeros({1}).expand({3}));
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto expect_both = [&](const auto& update, const std::string& name) {
    const std::string words = name + ": several elements of the tensor that is written lie at one place";
    EXPECT_EQ(error_of_update(update).find(words), 0u) << error_of_update(update);
    EXPECT_EQ(error_of_update(compile(update)).find(words), 0u) << error_of_update(compile(update));
  };
  expect_both([](const T& x) { x.add_(1); }, "add_");
  expect_both([](const T& x) { x.copy_(ones({3})); }, "copy_");
  expect_both([](const T& x) { x.fill_(2); }, "fill_");
  expect_both([](const T& x) { x.zero_(); }, "fill_");
}

TEST(Mutation, SeesInputsThatBeginToOverlap) {  // C077
  const auto f = compile(
      [](const T& x, const T& y) {
        x.mul_(3);
        return x + y;
      },
      strict());
  expect_floats(f(ones({4}), ones({4})), {4, 4, 4, 4});
  const T base = ones({8});
  expect_floats(f(base.slice(0, 0, 4), base.slice(0, 2, 6)), {6, 6, 4, 4});
  expect_floats(base, {3, 3, 3, 3, 1, 1, 1, 1});
  EXPECT_EQ(f.artifacts().size(), 2u);
}

TEST(Mutation, SeesOneTensorPassedTwice) {  // C078
  const auto f = compile(
      [](const T& p, const T& q) {
        p.add_(1);
        return p * q;
      },
      strict());
  expect_floats(f(tensor({2.f}), tensor({5.f})), {15});
  const T c = tensor({2.f});
  expect_floats(f(c, c), {9});
  expect_floats(c, {3});
}

TEST(Mutation, SeesDifferentViewsOfOneStorage) {
  const auto f = compile(
      [](const T& x, const T& row) {
        row.fill_(7);
        return x.sum(0);
      },
      strict());
  const T x = zeros({2, 3});
  expect_floats(f(x, x.select(0, 1)), {7, 7, 7});
  expect_floats(x, {0, 0, 0, 7, 7, 7});
}

TEST(Mutation, SnapshotsBeforeAWriteThroughAsStrided) {  // C083
  const auto f = compile(
      [] {
        const T w = full({3, 2}, 4.0);
        const T d = w.clone();
        const T e = as_strided(d, {3}, {2}, 0);
        const T snapshot = e.clone();
        e.copy_(zeros({3}));
        return std::pair(snapshot, d);
      },
      strict());
  const auto [snapshot, d] = f();
  expect_floats(snapshot, {4, 4, 4});
  expect_floats(d, {0, 4, 0, 4, 0, 4});
}

TEST(Mutation, EndsWithACopyIntoItsOwnInput) {  // C085
  const auto f = compile(
      [](const T& x) {
        const T t = cat({x.slice(0, 3), x.slice(0, 0, 3)});
        x.copy_(t);
        return x + 1;
      },
      strict());
  const T x = tensor({1.f, 2.f, 3.f, 4.f});
  expect_floats(f(x), {5, 2, 3, 4});
  expect_floats(x, {4, 1, 2, 3});
}

TEST(Mutation, SelectsOfAnOffsetInput) {  // C067
  const auto f = compile([](const T& z) { return select(z, 1, 4); }, strict());
  const T base = arange(42).to(kFloat).reshape({2, 3, 7});
  const T y = f(base[1]);
  expect_floats(y, {25, 32, 39});
  EXPECT_EQ(y.storage_offset(), 25);
  y.zero_();
  expect_floats(base[1].select(1, 4), {0, 0, 0});
  const T other = f(base[0]);  // another offset needs no other program
  EXPECT_EQ(other.storage_offset(), 4);
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(Mutation, ViewsAsBytes) {  // C069
  const auto f = compile([](const T& x) { return x.t().contiguous().view(kByte); }, strict());
  const T y = f(tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}));
  EXPECT_EQ(numbers(y.sizes()), (std::vector<int64_t>{3, 8}));
  const std::vector<uint8_t> got = values<uint8_t>(y);
  EXPECT_EQ(std::vector<uint8_t>(got.begin(), got.begin() + 8),
            (std::vector<uint8_t>{0, 0, 128, 63, 0, 0, 128, 64}));
}

TEST(Mutation, RefusesAsStridedPastTheEnd) {  // C072
  const auto f = [](int64_t rows) {
    return compile([rows](const T& x) {
      return as_strided(x.repeat({3, 2}).slice(1, 0, None, 2), {rows, 2}, {2, 1});
    });
  };
  expect_floats(f(3)(ones({1, 1})), {1, 1, 1, 1, 1, 1});
  EXPECT_THROW(f(4)(ones({1, 1})), UserError);
}

TEST(Mutation, ReadsCustomStrides) {  // C074
  const auto f = compile(
      [](const T& t, const T& bias) {
        return (t.unsqueeze(2) + bias).reshape({2, 6, 20});
      },
      strict());
  const T packed = arange(120).to(kFloat).reshape({2, 3, 4, 5});
  const T t = packed.permute({3, 2, 1, 0}).contiguous().permute({3, 2, 1, 0});
  EXPECT_EQ(numbers(t.strides()), (std::vector<int64_t>{1, 2, 6, 24}));
  const T bias = tensor({0.f, 1000.f}).reshape({2, 1, 1});
  std::vector<float> expected;
  for (int b = 0; b < 2; ++b)
    for (int c = 0; c < 3; ++c)
      for (int k = 0; k < 2; ++k)
        for (int hw = 0; hw < 20; ++hw)
          expected.push_back(static_cast<float>((b * 3 + c) * 20 + hw + 1000 * k));
  expect_floats(f(t, bias), expected);
}

TEST(Mutation, ReadsThroughEveryAlias) {
  const auto f = compile(
      [](const T& x) {
        const T flat = x.view({6}), column = x.select(1, 2), transposed = x.t();
        column.mul_(10);
        const T first = flat.clone();
        flat.slice(0, 0, 2).zero_();
        transposed.select(0, 1).add_(1);
        return std::tuple(first, column * 1, transposed);
      },
      strict());
  const T x = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  const auto [first, column, transposed] = f(x);
  expect_floats(first, {1, 2, 30, 4, 5, 60});
  expect_floats(column, {30, 60});
  expect_floats(x, {0, 1, 30, 4, 6, 60});
  EXPECT_TRUE(transposed.is_alias_of(x));
  expect_floats(transposed, {0, 4, 1, 6, 30, 60});
}

TEST(Mutation, WritesATransposedSourceAndViewsTheResult) {
  const auto f = compile(
      [](const T& x, const T& y) {
        x.copy_(y.t());
        return x.view({-1}) + 0;
      },
      strict());
  const T x = zeros({2, 2});
  expect_floats(f(x, tensor({{1.f, 2.f}, {3.f, 4.f}})), {1, 3, 2, 4});
  expect_floats(x, {1, 3, 2, 4});
}

TEST(Mutation, UpdatesAStridedInput) {
  const auto f = compile([](const T& x) { return x.add_(1).sum(); }, strict());
  const T base = zeros({3, 4});
  EXPECT_EQ(f(base.slice(1, 0, 4, 2)).item<float>(), 6);
  expect_floats(base, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
}

TEST(Mutation, ReturnsViewsThatShareFreshStorage) {
  const auto f = compile(
      [](const T& x) {
        const T y = x + 1;
        return std::tuple(y, y.select(0, 1), y.t(), y);
      },
      strict());
  const auto [y, row, transposed, again] = f(zeros({2, 3}));
  EXPECT_TRUE(row.is_alias_of(y));
  EXPECT_TRUE(transposed.is_alias_of(y));
  EXPECT_TRUE(again.is_same(y));
  row.fill_(5);
  expect_floats(y, {1, 1, 1, 5, 5, 5});
  expect_floats(transposed, {1, 5, 1, 5, 1, 5});
  EXPECT_EQ(row.storage_offset(), 3);
}

TEST(Mutation, FollowsCapturedTensors) {  // C119
  T w = zeros({2, 1});
  const auto f = compile([&](const T& x) { return matmul(x, w); });
  const T x = ones({1, 2});
  for (int i = 0; i < 3; ++i) expect_floats(f(x), {0});
  w.add_(1);
  expect_floats(f(x), {2});
  // What is bound anew has to be an argument.
  const auto g = compile([](const T& x, const T& weight) { return matmul(x, weight); });
  expect_floats(g(x, w), {2});
  w = full({2, 1}, 5.0);
  expect_floats(g(x, w), {10});
}

TEST(Mutation, UpdatesCapturedTensors) {
  const T count = zeros({});
  const auto f = compile(
      [&](const T& x) {
        count.add_(1);
        return x * count;
      },
      strict());
  expect_floats(f(ones({2})), {1, 1});
  expect_floats(f(ones({2})), {2, 2});
  EXPECT_EQ(count.item<float>(), 2);
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(Mutation, SeesArgumentsThatAreCapturedToo) {
  const T w = ones({2});
  const auto f = compile(
      [&](const T& x) {
        w.mul_(3);
        return x + w;
      },
      strict());
  expect_floats(f(ones({2})), {4, 4});
  expect_floats(f(w), {18, 18});
  expect_floats(f(ones({2})), {28, 28});
  EXPECT_EQ(f.artifacts().size(), 2u);
}

TEST(Mutation, UpdatesInPlaceInOneKernel) {
  const auto f = compile([](const T& x) { x.mul_(2).add_(1); }, strict());
  const T x = ones({3});
  f(x);
  expect_floats(x, {3, 3, 3});
  EXPECT_EQ(kernel_count(f), 1u);
}

TEST(Mutation, WritesOnlyTheSliceThatIsWritten) {
  const auto f = compile([](const T& x) { x.slice(0, 1, 2).add_(1); }, strict());
  const T x = zeros({1000, 4});
  f(x);
  EXPECT_EQ(x.sum().item<float>(), 4);
  expect_floats(x[1], {1, 1, 1, 1});
  const Artifact artifact = f.artifacts().at(0);
  EXPECT_EQ(artifact.kernels.size(), 1u);
  // No value of the whole tensor's size is computed.
  EXPECT_EQ(artifact.graph.find("slice_scatter"), std::string::npos) << artifact.graph;
}

TEST(Mutation, WritesPartsInOrder) {
  const auto f = compile(
      [](const T& x) {
        x.slice(0, 0, 3).add_(1);
        x.slice(0, 2, 4).mul_(10);
        x.slice(0, 1, 3).add_(x.slice(0, 2, 4));
        return x.sum();
      },
      strict());
  const T x = tensor({1.f, 2.f, 3.f, 4.f});
  // [2, 3, 4, 4] -> [2, 3, 40, 40] -> [2, 43, 80, 40]
  EXPECT_EQ(f(x).item<float>(), 165);
  expect_floats(x, {2, 43, 80, 40});
}

TEST(Mutation, GathersBeforeItScatters) {  // C079
  const auto f = compile([](T& x, const T& i) {
    x.index_put_({i}, x.index({i}) + x.index({i}));
    return x;
  });
  const T x = tensor({{1.5f, -2.f}});
  f(x, tensor({0, 0}));
  expect_floats(x, {3, -4});
}

TEST(Mutation, WritesADiagonal) {  // C152
  const auto f = compile([](const T& x) { x[1].diagonal().zero_(); }, strict());
  const T x = ones({2, 3, 3});
  f(x);
  EXPECT_EQ(x.sum().item<float>(), 15);
  expect_floats(x[1], {0, 1, 1, 1, 0, 1, 1, 1, 0});
}

TEST(Mutation, RefusesToWriteExpandedTensors) {
  const auto f = compile([](const T& x) { x.add_(1); });
  EXPECT_THROW(f(zeros({1}).expand({3})), UserError);
}

TEST(Mutation, ASliceWriteOfAResultCostsTheSlice) {
  const auto compiled = compile(
      [](const Tensor& x) {
        Tensor y = std::get<0>(sort(x));
        y.slice(0, 100, 103).fill_(-1);
        return y;
      },
      strict());
  const Tensor y = compiled(arange(1000).to(kFloat32));
  EXPECT_EQ(y.slice(0, 100, 103).sum().item<float>(), -3.f);
  EXPECT_EQ(y.sum().item<float>(), 499500.f - 303.f - 3.f);
  // The only kernel has three points.
  EXPECT_EQ(kernel_count(compiled), 1u);
  EXPECT_NE(compiled.artifacts()[0].plan.find(", 3)\n"), std::string::npos) << compiled.artifacts()[0].plan;
}

}  // namespace
}  // namespace stax
