// Writes: through views, onto their own source, into tensors that are passed twice, into expanded tensors.
#include <gtest/gtest.h>

#include "cpu/cases.h"

namespace stax::cases {
namespace {

/// Functions that only write.
Function writer(const std::function<void(const Tensors&)>& f) {
  return [f](const Tensors& t) {
    f(t);
    return Tensors{};
  };
}

TEST(MutationCases, RowsShiftInPlace) {
  for_each_mode([](const Mode& run) {
    const Function shift = run.prepare([](const Tensors& t) {
      Tensor x = t[0];
      x.index_put_({Slice(1, None)}, x.index({Slice(None, -1)}).clone());
      return Tensors{x};
    });
    const Tensor small = make({1, 2, 3, 4}, kFloat32, {4, 1});
    expect_values(shift({small})[0], {1, 1, 2, 3});
    expect_values(small, {1, 1, 2, 3});
    for (int round = 0; round < 3; ++round) {
      const Tensor large = arange(1024).to(kFloat32).view({1024, 1}).expand({1024, 512}).contiguous();
      const Tensor got = shift({large})[0];
      const Tensor expected = clamp(arange(1024).to(kFloat32) - 1, 0).view({1024, 1});
      EXPECT_TRUE(all(got == expected).item<bool>());
      EXPECT_TRUE(all(large == expected).item<bool>());
    }
  });
}

TEST(MutationCases, OverlappingCopiesInBothDirectionsAndTurned) {
  for_each_mode([](const Mode& run) {
    for (const size_t n : {5u, 40u, 3000u}) {
      SCOPED_TRACE(n);
      Numbers start(n), down(n), up(n), back(n);
      for (size_t i = 0; i < n; ++i) start[i] = static_cast<double>(i);
      for (size_t i = 0; i < n; ++i) {
        down[i] = start[i == 0 ? 0 : i - 1];
        up[i] = start[i == n - 1 ? i : i + 1];
        back[i] = start[n - 1 - i];
      }
      const Tensor a = make(start), b = make(start), c = make(start);
      run(writer([](const Tensors& t) {
            t[0].slice(0, 1).copy_(t[0].slice(0, 0, -1));
            t[1].slice(0, 0, -1).copy_(t[1].slice(0, 1));
            t[2].copy_(flip(t[2], 0));
          }),
          {a, b, c});
      expect_values(a, down);
      expect_values(b, up);
      expect_values(c, back);
    }
    const Tensor square = arange(1024).to(kFloat32).view({32, 32});
    const Tensor turned = square.t().contiguous();
    run(writer([](const Tensors& t) { t[0].copy_(t[0].t()); }), {square});
    EXPECT_TRUE(all(square == turned).item<bool>());
    const Tensor sums = arange(16).to(kFloat32).view({4, 4});
    run(writer([](const Tensors& t) { t[0].add_(t[0].t()); }), {sums});
    expect_values(sums, {0, 5, 10, 15, 5, 10, 15, 20, 10, 15, 20, 25, 15, 20, 25, 30});
  });
}

TEST(MutationCases, InputsThatOverlapOnlyInALaterCall) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      Tensor x = t[0];
      x.mul_(3);
      return Tensors{x + t[1]};
    });
    expect_values(f({ones({4}), ones({4})})[0], {4, 4, 4, 4});
    const Tensor base = ones({8});
    expect_values(f({base.slice(0, 0, 4), base.slice(0, 2, 6)})[0], {6, 6, 4, 4});
    expect_values(base, {3, 3, 3, 3, 1, 1, 1, 1});
    const Tensor other = ones({8});
    expect_values(f({other.slice(0, 2, 6), other.slice(0, 0, 4)})[0], {4, 4, 6, 6});
    expect_values(f({ones({4}), ones({4})})[0], {4, 4, 4, 4});
    const Tensor interleaved = ones({8});
    expect_values(f({interleaved.slice(0, 0, 8, 2), interleaved.slice(0, 1, 8, 2)})[0], {4, 4, 4, 4});
    expect_values(interleaved, {3, 1, 3, 1, 3, 1, 3, 1});
  });
}

TEST(MutationCases, OneTensorForTwoParameters) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      Tensor p = t[0];
      p.add_(1);
      return Tensors{p * t[1]};
    });
    expect_values(f({make({2}), make({5})})[0], {15});
    const Tensor c = make({2});
    expect_values(f({c, c})[0], {9});
    expect_values(c, {3});
    expect_values(f({make({2}), make({5})})[0], {15});
  });
}

TEST(MutationCases, RepeatedIndicesStoreOnce) {
  for_each_mode([](const Mode& run) {
    const Tensor x = make({1.5, -2.0}, kFloat32, {1, 2}), y = make({1.5, -2.0}, kFloat32, {1, 2});
    run(writer([](const Tensors& t) {
          Tensor x = t[0], y = t[1];
          const Tensor twice = tensor({0, 0});
          x.index_put_({twice}, x.index({twice}) + x.index({twice}));
          const Tensor z = t[2] + 10;
          y.index_put_({z}, y.index({z}) + y.index({z}));
        }),
        {x, y, integers({-10, -10}).view({1, 2})});
    expect_values(x, {3, -4});
    expect_values(y, {3, -4});
  });
}

TEST(MutationCases, ASnapshotKeepsWhatItTook) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors&) {
          const Tensor w = full({3, 2}, 4.0), d = w.clone(), e = as_strided(d, {3}, {2}, 0), f = e.clone();
          e.copy_(zeros({3}));
          return Tensors{f, d, w};
        },
        {});
    expect_values(got[0], {4, 4, 4});
    expect_values(got[1], {0, 4, 0, 4, 0, 4});
    expect_values(got[2], Numbers(6, 4));
    const Tensors order = run(
        [](const Tensors& t) {
          Tensor x = t[0];
          const Tensor before = x + 0, view = x.slice(0, 1);
          x.add_(10);
          const Tensor between = x * 1;
          view.mul_(2);
          return Tensors{before, between, view * 1, x * 1};
        },
        {make({1, 2, 3})});
    expect_values(order[0], {1, 2, 3});
    expect_values(order[1], {11, 12, 13});
    expect_values(order[2], {24, 26});
    expect_values(order[3], {11, 24, 26});
  });
}

TEST(MutationCases, AMaskIsNotEvaluatedAgain) {
  for_each_mode([](const Mode& run) {
    const Tensor x = make({0.5, 2, 4});
    const Tensors got = run.lax()(
        [](const Tensors& t) {
          Tensor x = t[0];
          const Tensor m = x > 1;
          x.index_put_({m}, x.index({m}) * 0.5);
          return Tensors{x.index({m}), where(m, x, 0)};
        },
        {x});
    expect_values(x, {0.5, 1, 2});
    expect_values(got[0], {1, 2});
    expect_values(got[1], {0, 1, 2});
  });
}

TEST(MutationCases, AFunctionThatEndsWithACopyIntoItsInput) {
  for_each_mode([](const Mode& run) {
    const Tensor x = make({1, 2, 3, 4});
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor shifted = cat({t[0].slice(0, 3), t[0].slice(0, 0, 3)});
          t[0].copy_(shifted);
          return Tensors{t[0] + 1};
        },
        {x});
    expect_values(x, {4, 1, 2, 3});
    expect_values(got[0], {5, 2, 3, 4});
  });
}

TEST(MutationCases, WritesConvertAndBroadcast) {
  for_each_mode([](const Mode& run) {
    const Tensor whole_numbers = zeros({2, 3}, kInt32), halves = zeros({3}, kFloat16),
                 flags = zeros({3}, kBool), bytes = zeros({3}, kUInt8);
    run(writer([](const Tensors& t) {
          t[0].copy_(t[4]);
          t[1].copy_(t[4] * 1e5);
          t[2].copy_(t[4]);
          t[3].copy_(t[4]);
        }),
        {whole_numbers, halves, flags, bytes, make({1.9, -1.9, 0})});
    expect_whole(whole_numbers, {1, -1, 0, 1, -1, 0});
    expect_values(halves, {kInf, -kInf, 0});
    expect_whole(flags, {1, 1, 0});
    expect_whole(bytes, {1, 255, 0});
  });
}

TEST(MutationCases, InPlaceOperatorsKeepDTypeShapeAndStorage) {
  for_each_mode([](const Mode& run) {
    const Tensor x = ones({2, 3}, kFloat16), bytes = integers({250, 3, 7}, kUInt8),
                 inner = arange(12).view({3, 4});
    const void* place = x.data_ptr();
    run(writer([](const Tensors& t) {
          Tensor x = t[0], bytes = t[1];
          x.add_(t[3]).mul_(2.5).clamp_(0, 10);
          bytes.add_(10);
          t[2].slice(1, 1, 3).mul_(10);
          t[2][0].zero_();
        }),
        {x, bytes, inner, make({1, 2, 100})});
    expect_form(x, kFloat16, {2, 3});
    EXPECT_EQ(x.data_ptr(), place);
    expect_values(x, {5, 7.5, 10, 5, 7.5, 10});
    expect_whole(bytes, {4, 13, 17});
    expect_whole(inner, {0, 0, 0, 0, 4, 50, 60, 7, 8, 90, 100, 11});
  });
}

TEST(MutationCases, ExpandedAndReadOnlyTargetsAreRefused) {
  for_each_mode([](const Mode& run) {
    for (const auto& write : std::vector<std::function<void(const Tensors&)>>{
             [](const Tensors& t) {
               t[0].expand({2, 3}).add_(1);
             },
             [](const Tensors& t) {
               t[0].expand({2, 3}).copy_(zeros({2, 3}));
             },
             [](const Tensors& t) {
               t[0].expand({2, 3}).fill_(1);
             },
             [](const Tensors& t) { t[0].unfold(0, 2, 1).add_(1); }}) {
      const Tensor x = make({1, 2, 3});
      expect_user_error([&] { run(writer(write), {x}); }, {"clone"});
      expect_values(x, {1, 2, 3});
    }
    // Stride 0 over one element overlaps nothing.
    const Tensor one = make({1, 2, 3});
    run(writer([](const Tensors& t) { t[0].expand({1, 3}).add_(1); }), {one});
    expect_values(one, {2, 3, 4});
    // An expanded source is only read.
    const Tensor target = zeros({2, 3});
    run(writer([](const Tensors& t) { t[0].add_(t[1].expand({2, 3})); }), {target, one});
    expect_values(target, {2, 3, 4, 2, 3, 4});
  });
}

TEST(MutationCases, WritesOfOtherShapesAndDTypesAreRefused) {
  const Tensor ints = arange(3), x = zeros({3});
  expect_user_error([&] { ints.add_(0.5); }, {"add_", "float32", "int64"});
  expect_user_error([&] { ints.div_(2); }, {"div_", "float32", "int64"});
  expect_user_error([&] { x.add_(zeros({2, 3})); }, {"add_", "[2, 3]", "[3]"});
  expect_user_error([&] { x.copy_(zeros({2})); }, {"copy_", "[2]", "[3]"});
  expect_user_error([&] { x.copy_(zeros({1, 2, 3})); }, {"copy_", "[1, 2, 3]", "[3]"});
  expect_user_error([&] { Tensor().add_(1); }, {"undefined"});
  expect_user_error([&] { x.add_(Tensor()); }, {"undefined"});
  expect_whole(ints, {0, 1, 2});
  expect_values(x, {0, 0, 0});
}

TEST(MutationCases, EmptyAndZeroDimTargets) {
  for_each_mode([](const Mode& run) {
    const Tensor point = tensor(2.0), nothing = zeros({0, 3}), x = arange(4).to(kFloat32);
    run(writer([](const Tensors& t) {
          Tensor point = t[0], nothing = t[1];
          point.mul_(3).add_(1);
          nothing.add_(1).fill_(3);
          nothing.copy_(zeros({1, 3}));
          t[2].slice(0, 2, 2).fill_(9);
          t[2].select(0, 1).copy_(point);
        }),
        {point, nothing, x});
    expect_values(point, {7});
    EXPECT_EQ(shape(nothing), (std::vector<int64_t>{0, 3}));
    expect_values(x, {0, 7, 2, 3});
  });
}

TEST(MutationCases, ADiagonalOfAnOffsetViewIsWritten) {
  for_each_mode([](const Mode& run) {
    const Tensor x = ones({2, 3, 3});
    run(writer([](const Tensors& t) { diagonal(t[0][1]).fill_(0); }), {x});
    EXPECT_EQ(sum(x).item<float>(), 15);
    expect_values(x[0], Numbers(9, 1));
    expect_values(x[1], {0, 1, 1, 1, 0, 1, 1, 1, 0});
  });
}

TEST(MutationCases, WritesThatAccumulate) {
  for_each_mode([](const Mode& run) {
    const Tensors x{zeros({4}), make({0, 1, 2, 3, 4, 5}, kFloat32, {2, 3}), ones({3})};
    run(
        [](const Tensors& t) {
          Tensor a = t[0], b = t[1], c = t[2];
          a.index_put_({t[3]}, t[4], true);
          b.index_put_({1, Slice(0, 2)}, tensor(10.0f), true);
          c.index_put_({t[5]}, tensor(5.0f), true);
          return Tensors{a * 1};
        },
        {x[0], x[1], x[2], integers({0, 0, 3, 0}), make({1, 2, 5, 4}), make({1, 0, 1}, kBool)});
    expect_values(x[0], {7, 0, 0, 5});
    expect_values(x[1], {0, 1, 2, 13, 14, 5});
    expect_values(x[2], {6, 1, 6});
  });
}

TEST(MutationCases, OtherNamesAndScansInPlace) {
  for_each_mode([](const Mode& run) {
    const Tensors x{make({1, -2, 3}), make({1, -2, 3}), make({1, -2, 3}), make({1, -2, 3}), make({1, -2, 3})};
    run(
        [](const Tensors& t) {
          t[0].cumsum_(0).multiply_(2).subtract_(1);
          t[1].cumprod_(0).divide_(2).negative_();
          t[2].sgn_().heaviside_(tensor(0.5f));
          t[3].clip_(-1, 2).absolute_().true_divide_(4);
          t[4].arctan2_(tensor(0.0f));
          return Tensors{t[0] + 0};
        },
        x);
    expect_values(x[0], {1, -3, 3});
    expect_values(x[1], {-0.5, 1, 3});
    expect_values(x[2], {1, 0, 1});
    expect_values(x[3], {0.25, 0.25, 0.5});
    expect_values(x[4], {1.5707963267948966, -1.5707963267948966, 1.5707963267948966}, 1e-6);
  });
}

}  // namespace
}  // namespace stax::cases
