// Views: offsets, strides, sizes of one and of zero, and what lies outside the storage.
#include <gtest/gtest.h>

#include "cpu/cases.h"

namespace stax::cases {
namespace {

using Shape = std::vector<int64_t>;

Tensor counted(int64_t n, const Shape& sizes) {
  return arange(n).to(kFloat32).view(sizes);
}

TEST(ViewCases, SelectOfAnInputThatHasAnOffset) {
  const Tensor base = counted(42, {2, 3, 7});
  const Tensor z = base[1];
  EXPECT_EQ(z.storage_offset(), 21);
  EXPECT_EQ(select(z, 1, 4).storage_offset(), 25);
  for_each_mode([&](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{select(t[0], 1, 4), t[0].select(-1, -3) * 2};
        },
        {z});
    expect_values(got[0], {25, 32, 39});
    expect_values(got[1], {50, 64, 78});
  });
  for_each_mode([&](const Mode& run) {
    const Tensor own = counted(42, {2, 3, 7});
    run(
        [](const Tensors& t) {
          select(t[0], 1, 4).fill_(-1);
          return Tensors{};
        },
        {own[1]});
    EXPECT_EQ(own.storage_offset(), 0);
    EXPECT_EQ(sum(own).item<float>(), 861 - 25 - 32 - 39 - 3);
    expect_values(own[1].select(1, 4), {-1, -1, -1});
  });
}

TEST(ViewCases, BytesOfATensorThatWasTransposedAndPacked) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{t[0].t().contiguous().view(kUInt8), t[0].view(kInt32), t[1].view(kFloat32)};
        },
        {make({1, 2, 3, 4, 5, 6}, kFloat32, {2, 3}), integers({63, 128, 0, 64}, kInt32)});
    expect_form(got[0], kUInt8, {3, 8});
    const std::vector<int64_t> bytes = whole(got[0]);
    EXPECT_EQ((std::vector<int64_t>(bytes.begin(), bytes.begin() + 8)),
              (std::vector<int64_t>{0, 0, 128, 63, 0, 0, 128, 64}));
    expect_whole(got[1], {0x3f800000, 0x40000000, 0x40400000, 0x40800000, 0x40a00000, 0x40c00000});
    expect_values(got[2], {8.828180325246348e-44, 1.793662034335766e-43, 0, 8.96831017167883e-44});
  });
}

TEST(ViewCases, SqueezeRemovesAxesOfOneElementOnly) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      return Tensors{squeeze(t[0], {1, 3}), squeeze(t[0]), squeeze(t[0], 0), squeeze(t[0], -1) + 1};
    });
    const Tensors four = f({counted(24, {2, 1, 3, 4})});
    expect_form(four[0], kFloat32, {2, 3, 4});
    expect_form(four[1], kFloat32, {2, 3, 4});
    expect_form(four[2], kFloat32, {2, 1, 3, 4});
    EXPECT_EQ(numbers(four[0]), numbers(arange(24)));
    const Tensors one = f({counted(6, {2, 1, 3, 1})});
    expect_form(one[0], kFloat32, {2, 3});
    expect_form(one[3], kFloat32, {2, 1, 3});
    expect_values(one[0], {0, 1, 2, 3, 4, 5});
    expect_form(f({zeros({1, 1, 0, 1})})[1], kFloat32, {0});
  });
  expect_user_error([] { return squeeze(zeros({2, 1}), 2); }, {"squeeze", "2"});
  expect_user_error([] { return squeeze(zeros({2, 1}), {1, 1}); }, {"squeeze", "1"});
}

TEST(ViewCases, StridedViewsStayInsideTheStorage) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor wide = repeat(t[0], {3, 2}).index({Slice(), Slice(None, None, 2)});
          return Tensors{as_strided(wide, {3, 2}, {2, 1})};
        },
        {ones({1, 1})});
    expect_form(got[0], kFloat32, {3, 2});
    expect_values(got[0], Numbers(6, 1));
    expect_user_error(
        [&] {
          run(
              [](const Tensors& t) {
                const Tensor wide = repeat(t[0], {3, 2}).index({Slice(), Slice(None, None, 2)});
                return Tensors{as_strided(wide, {4, 2}, {2, 1})};
              },
              {ones({1, 1})});
        },
        {"view", "storage"});
  });
  const Tensor x = arange(12);
  expect_values(as_strided(x, {3, 3}, {1, 2}, 4), {4, 6, 8, 5, 7, 9, 6, 8, 10});
  expect_values(as_strided(x, {2, 0}, {100, 1}), {});
  expect_user_error([&] { return as_strided(x, {2}, {1}, 11); }, {"view", "12"});
  expect_user_error([&] { return as_strided(x, {2}, {-1}, 3); }, {"as_strided", "-1"});
  expect_user_error([&] { return as_strided(x, {2}, {1}, -1); }, {"as_strided", "-1"});
  expect_user_error([&] { return as_strided(x, {2, 2}, {1}); }, {"as_strided"});
  expect_user_error([&] { return as_strided(x, {-2}, {1}); }, {"as_strided", "-2"});
  expect_user_error(
      [&] {
        return as_strided(x, {int64_t{1} << 62, 4}, {int64_t{1} << 40, int64_t{1} << 40});
      },
      {"64-bit"});
}

TEST(ViewCases, ChainsOverAPermutedBuffer) {
  // t[b, c, h, w] is its own row-major position, stored in the order (w, h, c, b).
  const Tensor packed = counted(120, {2, 3, 4, 5});
  const Tensor t = packed.permute({3, 2, 1, 0}).contiguous().permute({3, 2, 1, 0});
  ASSERT_EQ(t.strides().values(), (Shape{1, 2, 6, 24}));
  const Tensor bias = make({0, 1000}, kFloat32, {2, 1, 1});
  Numbers expected;
  for (int b = 0; b < 2; ++b) {
    for (int c = 0; c < 3; ++c) {
      for (int k = 0; k < 2; ++k) {
        for (int hw = 0; hw < 20; ++hw) expected.push_back(60 * b + 20 * c + hw + 1000 * k);
      }
    }
  }
  for_each_mode([&](const Mode& run) {
    for (const Tensor& input : {t, packed}) {
      const Tensors got = run(
          [](const Tensors& x) {
            return Tensors{(unsqueeze(x[0], 2) + x[1]).reshape({2, 6, 20})};
          },
          {input, bias});
      expect_form(got[0], kFloat32, {2, 6, 20});
      expect_values(got[0], expected);
    }
  });
}

TEST(ViewCases, ShapesWithZeroAndMinusOne) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{t[0].view({-1, 3}),   t[0].reshape({0}),       t[0].view({5, 0, 7}),
                         t[1].view({-1}),      t[1].reshape({1, 1, 1}), t[2].view(Shape{}),
                         t[0].transpose(0, 1), flatten(t[0]),           t[0].expand({4, 0, 3})};
        },
        {zeros({0, 3}), tensor(5.0), make({6})});
    const Shape shapes[] = {{0, 3}, {0}, {5, 0, 7}, {1}, {1, 1, 1}, {}, {3, 0}, {0}, {4, 0, 3}};
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(shape(got[i]), shapes[i]) << i;
    expect_values(got[3], {5});
    expect_values(got[5], {6});
  });
  expect_user_error([] { return zeros({0, 3}).view({-1, 0}); }, {"view", "-1"});
  expect_user_error([] { return zeros({6}).view({-1, -1}); }, {"view"});
  expect_user_error([] { return zeros({6}).view({4, -1}); }, {"view", "6"});
  expect_user_error([] { return zeros({6}).view({-2, 3}); }, {"view", "-2"});
  expect_user_error([] { return zeros({6}).reshape({5}); }, {"reshape", "5", "6"});
  expect_user_error([] { return zeros({2, 3}).t().view({6}); }, {"view", "reshape"});
  expect_user_error([] { return zeros({2}).expand({3}); }, {"expand"});
  expect_user_error([] { return zeros({2}).expand({-1, 4}); }, {"expand"});
  expect_user_error([] { return zeros({2, 3}).permute({0, 0}); }, {"permute"});
  expect_user_error([] { return zeros({2, 3}).permute({0}); }, {"permute"});
  expect_user_error([] { return zeros({2, 3}).transpose(0, 2); }, {"transpose", "2"});
  expect_user_error([] { return zeros({2, 3}).select(0, 2); }, {"select", "2"});
  expect_user_error([] { return zeros({2, 3}).select(0, -3); }, {"select", "-3"});
  expect_user_error([] { return tensor(1.0).select(0, 0); }, {"select"});
  expect_user_error([] { return zeros({2, 3}).slice(0, 0, 2, 0); }, {"slice", "0"});
  expect_user_error([] { return zeros({2, 3}).narrow(1, 2, 2); }, {"narrow"});
  expect_user_error([] { return zeros({2, 3}).unsqueeze(4); }, {"unsqueeze", "4"});
}

TEST(ViewCases, SlicesPastTheEndsAreCut) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor& x = t[0];
          return Tensors{x.slice(0, 3, 100),        x.slice(0, -100, 2), x.slice(0, 4, 2),
                         x.slice(0, -2, INT64_MAX), x.slice(0, 1, 5, 3), x.slice(0, 0, 5, 100),
                         x.slice(0, 7, 9)};
        },
        {arange(5)});
    const std::vector<int64_t> expected[] = {{3, 4}, {0, 1}, {}, {3, 4}, {1, 4}, {0}, {}};
    for (size_t i = 0; i < got.size(); ++i) expect_whole(got[i], expected[i]);
  });
}

TEST(ViewCases, WindowsDiagonalsAndSplits) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          Tensors out{t[0].unfold(0, 3, 2), diagonal(t[1], 1), diagonal(t[1], -1), diagonal(t[1], 7),
                      t[1].unfold(1, 2, 1).select(2, 1)};
          for (const Tensor& part : t[0].split(3)) out.push_back(part * 1);
          for (const Tensor& part : chunk(t[0], 3)) out.push_back(part);
          return out;
        },
        {arange(7), arange(6).view({2, 3})});
    const std::vector<int64_t> expected[] = {{0, 1, 2, 2, 3, 4, 4, 5, 6},
                                             {1, 5},
                                             {3},
                                             {},
                                             {1, 2, 4, 5},
                                             {0, 1, 2},
                                             {3, 4, 5},
                                             {6},
                                             {0, 1, 2},
                                             {3, 4, 5},
                                             {6}};
    ASSERT_EQ(got.size(), std::size(expected));
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(i);
      expect_whole(got[i], expected[i]);
    }
    EXPECT_EQ(shape(got[3]), Shape{0});
  });
  expect_user_error([] { return zeros({2}).unfold(0, 3, 1); }, {"unfold", "3"});
  expect_user_error([] { return zeros({2}).unfold(0, 1, 0); }, {"unfold"});
  expect_user_error([] { return zeros({6}).split(std::vector<int64_t>{2, 3}); }, {"split"});
}

TEST(ViewCases, ReorderedAndRepeated) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor& x = t[0];
          return Tensors{
              flip(x, {0, 1}),   roll(x, 1, 1),    roll(x, -7, 0),    roll(x, 1),  rot90(x),
              rot90(x, -1),      rot90(x, 6),      repeat(x, {2, 1}), tile(x, 2),  repeat_interleave(x, 2, 1),
              tril(x),           triu(x, 1),       tril(x, -5),       triu(x, -5), movedim(x, 0, 1),
              repeat(x, {0, 1}), roll(t[1], 5, 0), flip(t[1], 0)};
        },
        {arange(6).view({2, 3}), zeros({0, 2}, kInt64)});
    const std::vector<int64_t> expected[] = {{5, 4, 3, 2, 1, 0},
                                             {2, 0, 1, 5, 3, 4},
                                             {3, 4, 5, 0, 1, 2},
                                             {5, 0, 1, 2, 3, 4},
                                             {2, 5, 1, 4, 0, 3},
                                             {3, 0, 4, 1, 5, 2},
                                             {5, 4, 3, 2, 1, 0},
                                             {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5},
                                             {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5},
                                             {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5},
                                             {0, 0, 0, 3, 4, 0},
                                             {0, 1, 2, 0, 0, 5},
                                             {0, 0, 0, 0, 0, 0},
                                             {0, 1, 2, 3, 4, 5},
                                             {0, 3, 1, 4, 2, 5},
                                             {},
                                             {},
                                             {}};
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(i);
      expect_whole(got[i], expected[i]);
    }
  });
}

TEST(ViewCases, TrianglesOfNaNAndInfinityAreZeroOutside) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{tril(t[0]), triu(t[0])};
        },
        {full({2, 2}, kNaN)});
    expect_values(got[0], {kNaN, 0, kNaN, kNaN});
    expect_values(got[1], {kNaN, kNaN, 0, kNaN});
  });
}

TEST(ViewCases, Paddings) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor& x = t[0];
          return Tensors{constant_pad_nd(x, {1, 2}, 9),    constant_pad_nd(x, {-1, 0}),
                         constant_pad_nd(x, {-1, -2}),     constant_pad_nd(x, {-2, 3}, 7),
                         constant_pad_nd(t[1], {1, 1}, 4), constant_pad_nd(x, {0, 0})};
        },
        {arange(3), zeros({0}, kInt64)});
    const std::vector<int64_t> expected[] = {{9, 0, 1, 2, 9, 9}, {1, 2}, {}, {2, 7, 7, 7}, {4, 4}, {0, 1, 2}};
    for (size_t i = 0; i < got.size(); ++i) expect_whole(got[i], expected[i]);
    const Tensors kinds = run(
        [](const Tensors& t) {
          return Tensors{pad(t[0], {2, 1}, "reflect"), pad(t[0], {2, 1}, "replicate"),
                         pad(t[0], {2, 1}, "circular")};
        },
        {make({0, 1, 2}, kFloat32, {1, 1, 3})});
    expect_values(kinds[0], {2, 1, 0, 1, 2, 1});
    expect_values(kinds[1], {0, 0, 0, 1, 2, 2});
    expect_values(kinds[2], {1, 2, 0, 1, 2, 0});
  });
  expect_user_error([] { return constant_pad_nd(zeros({3}), {-2, -2}); }, {"pad", "-1"});
  expect_user_error([] { return constant_pad_nd(zeros({3}), {1}); }, {"pad", "1"});
  expect_user_error([] { return pad(zeros({1, 1, 3}), {3, 0}, "reflect"); }, {"pad", "3"});
  expect_user_error([] { return pad(zeros({1, 1, 3}), {1, 0}, "mirror"); }, {"pad", "mirror"});
}

TEST(ViewCases, JoiningEmptyAndMixedParts) {
  for_each_mode([](const Mode& run) {
    for (const int64_t k : {2, 0}) {
      const Tensors got = run(
          [&run](const Tensors& t) {
            const TensorOptions options = TensorOptions(kInt64).device(run.device());
            return Tensors{cat({ones({3}, options), empty({0}, options), t[0]})};
          },
          {arange(k)});
      expect_whole(got[0], k == 2 ? std::vector<int64_t>{1, 1, 1, 0, 1} : std::vector<int64_t>{1, 1, 1});
    }
    const Tensors got = run(
        [&run](const Tensors& t) {
          return Tensors{cat({t[0], t[1]}),
                         cat({t[0], empty({0}, run.device())}),
                         cat({t[2], t[3]}, 1),
                         stack({t[0], t[0]}, -1),
                         cat({t[2]}),
                         cat({t[2], t[2]}, -2),
                         cat({t[4], t[4], t[2] + 0}, 0)};
        },
        {arange(2), make({0.5}), make({1, 2}, kFloat32, {2, 1}), zeros({2, 0}), zeros({0, 1})});
    expect_form(got[0], kFloat32, {3});
    expect_values(got[0], {0, 1, 0.5});
    expect_form(got[1], kFloat32, {2});
    expect_form(got[2], kFloat32, {2, 1});
    expect_whole(got[3], {0, 0, 1, 1});
    expect_values(got[5], {1, 2, 1, 2});
    expect_values(got[6], {1, 2});
  });
  expect_user_error([] { return cat({zeros({2, 3}), zeros({3, 2})}); }, {"cat", "[2, 3]", "[3, 2]"});
  expect_user_error([] { return cat({zeros({2}), zeros({2, 1})}); }, {"cat"});
  expect_user_error([] { return cat({zeros({2})}, 1); }, {"cat", "1"});
  expect_user_error([] { return cat({tensor(1.0)}); }, {"cat", "zero-dim"});
  expect_user_error([] { return cat(std::vector<Tensor>{}); }, {"cat"});
  expect_user_error([] { return stack({zeros({2}), zeros({3})}); }, {"stack", "[2]", "[3]"});
  expect_user_error([] { return stack(std::vector<Tensor>{}); }, {"stack"});
}

TEST(ViewCases, DetachedTensorsShareTheirMemory) {
  for_each_mode([](const Mode& run) {
    const Tensor x = zeros({2});
    const Tensors got = run([](const Tensors& t) { return Tensors{t[0].detach().add_(1), t[0] * 2}; }, {x});
    expect_values(x, {1, 1});
    expect_values(got[1], {2, 2});
    got[0].fill_(5);
    expect_values(x, {5, 5});
  });
}

TEST(ViewCases, CopiesByStridesCountFromTheStorage) {
  for_each_mode([](const Mode& run) {
    const Tensor base = arange(0, 12, kFloat32);
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor &x = t[0], &y = t[1], nines = full({2, 2}, 9.0f);
          return Tensors{as_strided_copy(x, {2, 2}, {2, 1}),
                         as_strided_copy(x, {2, 2}, {2, 1}, 1),
                         as_strided_copy((x + 1).slice(0, 2), {2}, {1}, 1),
                         as_strided_copy(y, {3}, {1}),
                         as_strided_scatter(x, nines, {2, 2}, {2, 1}),
                         as_strided_scatter(x, nines, {2, 2}, {2, 1}, 4),
                         as_strided_scatter(y, full({2}, 9.0f), {2}, {1}, 1)};
        },
        {base.slice(0, 2), base.slice(0, 0, 6).view({2, 3}).t()});
    expect_values(got[0], {2, 3, 4, 5});
    expect_values(got[1], {1, 2, 3, 4});
    expect_values(got[2], {4, 5});
    expect_values(got[3], {0, 1, 2});
    expect_values(got[4], {9, 9, 9, 9, 6, 7, 8, 9, 10, 11});
    expect_values(got[5], {2, 3, 9, 9, 9, 9, 8, 9, 10, 11});
    expect_values(got[6], {0, 3, 9, 4, 9, 5});
    expect_values(base, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  });
}

}  // namespace
}  // namespace stax::cases
