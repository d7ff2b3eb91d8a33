// Softmax and its relatives on rows that overflow, vanish, or are infinite. exp and log of small numbers are
// written out from NumPy.
#include <gtest/gtest.h>

#include <algorithm>

#include "cpu/cases.h"

namespace stax::cases {
namespace {

/// Rows of different values share no state: each is checked in a matrix with ordinary rows around it.
Tensor between_plain_rows(const Numbers& row, DType dtype) {
  Numbers all(row.size(), 0);
  all.insert(all.end(), row.begin(), row.end());
  all.insert(all.end(), row.size(), 1);
  return make(all, dtype, {3, static_cast<int64_t>(row.size())});
}

TEST(SoftmaxCases, ScaledByHugeFactorsOfBothSigns) {
  for_each_mode([](const Mode& run) {
    const Tensor x = make({0.5, -1, 2});
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{softmax(t[0] * 1.7e14, 0),  softmax(t[0] * t[1], 0),
                         softmax(t[0] * -1.7e14, 0), softmax(t[0] * t[2], 0),
                         softmax(t[0] / 1e-30, 0),   exp(log_softmax(t[0] * -1.7e14, 0))};
        },
        {x, tensor(1.7e14), tensor(-1.7e14)});
    const Numbers last{0, 0, 1}, middle{0, 1, 0};
    expect_values(got, {last, last, middle, middle, last, middle});
  });
}

TEST(SoftmaxCases, RowsWithInfinities) {
  const struct {
    Numbers row, softmax, logsumexp;
  } probes[] = {{{kInf, 1, -kInf}, {kNaN, kNaN, kNaN}, {kInf}},
                {{-kInf, 0, 0}, {0, 0.5, 0.5}, {0.6931471805599453}},
                {Numbers(4, -kInf), Numbers(4, kNaN), {-kInf}},
                {{kInf, 0, 0}, {kNaN, kNaN, kNaN}, {kInf}},
                {{1000, 1000}, {0.5, 0.5}, {1000.6931471805599}},
                {{-1000, -1000}, {0.5, 0.5}, {-999.3068528194401}},
                {{kNaN, 0, 1}, {kNaN, kNaN, kNaN}, {kNaN}},
                {{kNaN, kInf, -kInf}, {kNaN, kNaN, kNaN}, {kNaN}},
                {{3.4e38, -3.4e38}, {1, 0}, {3.4e38}},
                {{7}, {1}, {7}}};
  for_each_mode([&](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      return Tensors{softmax(t[0], -1), logsumexp(t[0], -1), exp(log_softmax(t[0], -1)), softmax(t[1], 0),
                     softmin(-t[0], -1)};
    });
    for (const auto& probe : probes) {
      SCOPED_TRACE(probe.row[0]);
      const Tensor x = between_plain_rows(probe.row, kFloat32);
      const Tensors got = f({x, x.t().contiguous()});
      const auto n = static_cast<double>(probe.row.size());
      for (const size_t i : {0, 2, 4}) {
        SCOPED_TRACE(i);
        expect_values(got[i][1], probe.softmax, 1e-6);
        expect_values(got[i][0], Numbers(probe.row.size(), 1 / n), 1e-6);
        expect_values(got[i][2], Numbers(probe.row.size(), 1 / n), 1e-6);
      }
      expect_values(got[3].t()[1], probe.softmax, 1e-6);
      expect_values(got[1], {std::log(n), probe.logsumexp[0], 1 + std::log(n)}, 1e-6);
    }
  });
}

TEST(SoftmaxCases, LongRowsWithInfinities) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      return Tensors{softmax(t[0], -1), log_softmax(t[0], -1), logsumexp(t[0], -1)};
    });
    for (const size_t n : {100u, 1500u, 9000u, 20011u}) {
      SCOPED_TRACE(n);
      Numbers x(n, -kInf), expected(n, 0), logs(n, -kInf);
      x[n - 1] = 3;
      expected[n - 1] = 1;
      logs[n - 1] = 0;
      const Tensors got = f({make(x, kFloat32, {1, static_cast<int64_t>(n)})});
      expect_values(got, {expected, logs, {3}});
      x[7] = kInf;
      expect_values(f({make(x, kFloat32, {1, static_cast<int64_t>(n)})})[0], Numbers(n, kNaN));
      expect_values(f({full({1, static_cast<int64_t>(n)}, -kInf)})[0], Numbers(n, kNaN));
    }
  });
}

// On GPUs in chunks; those of the first row have maxima that differ by hundreds.
TEST(SoftmaxCases, LongRowsOfWhichThereAreFew) {
  constexpr size_t kLength = 20011;
  Numbers x(2 * kLength), probabilities(2 * kLength), logs(2 * kLength), sums;
  for (size_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (size_t k = 0; k < kLength; ++k) {
      const double wave = static_cast<double>(k * 7919 % 1024) / 64;
      x[row * kLength + k] = row == 0 ? wave + static_cast<double>(k / 4096) * 128 : -wave;
      sum += std::exp(x[row * kLength + k] - (row == 0 ? 528 : 0));
    }
    const double log = std::log(sum) + (row == 0 ? 528 : 0);
    sums.push_back(log);
    for (size_t k = row * kLength; k < (row + 1) * kLength; ++k) {
      logs[k] = x[k] - log;
      probabilities[k] = std::exp(logs[k]);
    }
  }
  for_each_mode([&](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{softmax(t[0], -1), log_softmax(t[0], 1), logsumexp(t[0], 1), softmax(t[1], 0),
                         amax(t[0], 1) + logsumexp(t[0], 1)};
        },
        {make(x, kFloat32, {2, kLength}), make(x, kFloat32, {2, kLength}).t().contiguous()});
    for (const Tensor& t : {got[0], got[3].t()})
      EXPECT_TRUE(t.allclose(make(probabilities, kFloat32, {2, kLength}), 1e-4, 1e-12));
    EXPECT_TRUE(got[1].allclose(make(logs, kFloat32, {2, kLength}), 1e-6, 1e-4));
    expect_values(got[2], sums, 1e-6);
    expect_values(got[4], {sums[0] + 527.984375, sums[1]}, 1e-6);
  });
}

TEST(SoftmaxCases, HalfDenominatorsAreSummedWide) {
  for_each_mode([](const Mode& run) {
    const Function f = run.prepare([](const Tensors& t) {
      return Tensors{softmax(t[0], -1), log_softmax(t[0], -1), logsumexp(t[0], -1)};
    });
    for (const int64_t n : {512, 4096}) {
      for (const DType dtype : {kBFloat16, kFloat16}) {
        const Tensors got = f({zeros({n}, dtype)});
        EXPECT_EQ(got[0].dtype(), dtype);
        expect_values(got[0], Numbers(static_cast<size_t>(n), 1.0 / static_cast<double>(n)));
        expect_values(got[1], Numbers(static_cast<size_t>(n), -std::log(static_cast<double>(n))), 4e-3);
        expect_values(got[2], {std::log(static_cast<double>(n))}, 4e-3);
      }
    }
    const Tensors large = f({make({60000, 60000, 0}, kFloat16)});
    expect_values(large[0], {0.5, 0.5, 0});
    expect_values(large[1], {-0.69287109375, -0.69287109375, -60000}, 1e-3);
  });
}

TEST(SoftmaxCases, AnyAxisAnyLayout) {
  for_each_mode([](const Mode& run) {
    const Tensor x = arange(60).to(kFloat32).view({3, 4, 5}) * 0.25;
    for (const Tensor& layout : {x, x.permute({2, 0, 1}).contiguous().permute({1, 2, 0})}) {
      const Tensors got = run(
          [](const Tensors& t) {
            return Tensors{sum(softmax(t[0], 0), 0), sum(softmax(t[0], 1), 1), sum(softmax(t[0], -1), -1),
                           softmax(t[0], 2), softmax(t[0], 0)};
          },
          {layout});
      expect_values(got[0], Numbers(20, 1), 1e-6);
      expect_values(got[1], Numbers(15, 1), 1e-6);
      expect_values(got[2], Numbers(12, 1), 1e-6);
      const Numbers row = numbers(got[3]);
      double total = 0;
      for (int k = 0; k < 5; ++k) total += std::exp(0.25 * k);
      for (size_t i = 0; i < 60; ++i)
        EXPECT_NEAR(row[i], std::exp(0.25 * static_cast<double>(i % 5)) / total, 2e-7);
      EXPECT_NEAR(numbers(got[4])[0], std::exp(-10) / (1 + std::exp(-5) + std::exp(-10)), 1e-9);
    }
  });
}

TEST(SoftmaxCases, OtherDTypes) {
  for_each_mode([](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          return Tensors{softmax(t[0], 0, kFloat32), softmax(t[1], 0, kFloat64),
                         log_softmax(t[1], 0, kFloat32)};
        },
        {integers({1, 1, 1, 1}), make({0, 0}, kFloat16)});
    expect_form(got[0], kFloat32, {4});
    expect_values(got[0], Numbers(4, 0.25));
    expect_form(got[1], kFloat64, {2});
    expect_values(got[2], Numbers(2, -0.6931471805599453), 1e-6);
  });
  expect_user_error([] { return softmax(integers({1, 2}), 0); }, {"softmax", "int64"});
  expect_user_error([] { return softmax(zeros({2}), 1); }, {"softmax", "1"});
}

/// Too long for one block of a GPU, of odd length, and one element into memory: rows start at every residue
/// of a vector. softmax(log k) is k over the sum of all k.
TEST(SoftmaxCases, LongRowsThatStartAnywhere) {
  constexpr int64_t kLength = 2051, kRows = 5;
  constexpr double kSum = kLength * (kLength + 1) / 2.0;
  Numbers logs{0}, expected;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t k = 1; k <= kLength; ++k) {
      // Rows of other order, so that maxima come early and late.
      const auto value = static_cast<double>(r % 2 == 0 ? k : kLength + 1 - k);
      logs.push_back(std::log(value));
      expected.push_back(value / kSum);
    }
  }
  for_each_mode([&](const Mode& run) {
    const Tensors got = run(
        [](const Tensors& t) {
          const Tensor x = t[0].slice(0, 1).view({kRows, kLength});
          const Tensor e = exp(x - amax(x, 1, true));
          return Tensors{softmax(x, 1), exp(log_softmax(x, 1)), logsumexp(x, 1), e / sum(e, 1, true)};
        },
        {make(logs, kFloat32)});
    for (const size_t i : {0, 1, 3}) expect_values(got[i], expected, 2e-5);
    expect_values(got[2], Numbers(kRows, std::log(kSum)), 1e-6);
  });
}

TEST(SoftmaxCases, LongRowsWithInfinitiesAtAnyPlace) {
  const struct {
    Numbers begin;
    double first, logsumexp, sum;
  } probes[] = {{{0, 0}, 0.5, std::log(2), 2},
                {{-kInf, -kInf}, kNaN, -kInf, kNaN},
                {{kInf, 0}, kNaN, kInf, kNaN},
                {{kNaN, kInf}, kNaN, kNaN, kNaN},
                {{1000, -1000}, 1, 1000, 1}};
  for (const auto& probe : probes) {
    Numbers row(3001, -kInf);
    for (const size_t at : {size_t{0}, size_t{1500}, size_t{2999}}) {
      Numbers values = row;
      std::copy(probe.begin.begin(), probe.begin.end(), values.begin() + static_cast<std::ptrdiff_t>(at));
      for_each_mode([&](const Mode& run) {
        const Tensors got = run(
            [&](const Tensors& t) {
              const Tensor picked = softmax(t[0], 1).slice(1, at, at + 1);
              return Tensors{picked, logsumexp(t[0], 1), sum(exp(t[0] - amax(t[0], 1, true)), 1)};
            },
            {make(values, kFloat32, {1, 3001})});
        expect_values(got[0], {probe.first}, 1e-6);
        expect_values(got[1], {probe.logsumexp}, 1e-6);
        expect_values(got[2], {probe.sum}, 1e-6);
      });
    }
  }
}

}  // namespace
}  // namespace stax::cases
