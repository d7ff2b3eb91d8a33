// Exported programs against eager evaluation: at every size that is declared the same numbers, or a refusal.
#include <algorithm>
#include <cmath>
#include <functional>

#include "cpu/export_testing.h"

namespace stax {
namespace {

using T = Tensor;
using Binary = std::function<T(const T&, const T&)>;
using indexing::None;
using indexing::Slice;

struct ExportedCase {
  const char* name;
  Binary function;
  /// Sizes 0 to 9 at which both arguments may be alike and the program may refuse, though eager evaluation
  /// does not: the function does something else there.
  std::vector<int64_t> refused = {};
};

/// x is (n, 3), y is (m, 3); n and m are declared apart.
std::vector<ExportedCase> cases() {
  return {
      {"pointwise", [](const T& x, const T& y) { return x * 2 - y; }},
      {"row sum", [](const T& x, const T&) { return x.sum(-1); }},
      {"column sum", [](const T& x, const T&) { return x.sum(0, true) + 1; }},
      {"mean", [](const T& x, const T&) { return x.mean(0); }},
      {"largest of rows", [](const T& x, const T&) { return x.amax({1}); }},
      {"softmax over n", [](const T& x, const T&) { return softmax(x, 0); }},
      {"layer norm", [](const T& x, const T&) { return layer_norm(x, {3}); }},
      {"product of transposed", [](const T& x, const T& y) { return matmul(x, y.transpose(0, 1)); }},
      {"square of n", [](const T& x, const T&) { return matmul(x.transpose(0, 1), x); }},
      {"cat",
       [](const T& x, const T& y) {
         return cat({x, y, x}, 0);
       }},
      {"stack",
       [](const T& x, const T& y) {
         return stack({x, y}, 1);
       }},
      {"flatten", [](const T& x, const T&) { return x.flatten() * 2; }},
      {"reshape by size",
       [](const T& x, const T&) {
         return x.reshape({3, x.size(0)}) + 1;
       }},
      {"every second row", [](const T& x, const T&) { return x.index({Slice(None, None, 2)}) * 3; }},
      {"without the last", [](const T& x, const T&) { return x.slice(0, 0, -1) - 1; }, {0}},
      {"backwards halves", [](const T& x, const T&) { return x.slice(0, x.size(0) / 2).sum(0); }, {0}},
      {"cumsum", [](const T& x, const T&) { return x.cumsum(0); }},
      {"squeezed", [](const T& x, const T&) { return x.squeeze(0) + 1; }, {1}},
      {"unsqueezed", [](const T& x, const T& y) { return x.unsqueeze(1) + y.unsqueeze(0); }},
      {"expanded",
       [](const T& x, const T&) {
         return x.sum(0, true).expand({x.size(0), 3}) * 2;
       }},
      {"range", [](const T& x, const T&) { return x + arange(x.size(0), kFloat32).unsqueeze(1); }},
      {"filled",
       [](const T& x, const T&) {
         return ones({x.size(0), 3}) + x;
       }},
      {"scaled by sizes", [](const T& x, const T& y) { return x * (x.size(0) * 3 + y.size(0)); }},
      {"permuted", [](const T& x, const T&) { return x.t().contiguous() * 2; }, {0, 1}},
      {"flipped", [](const T& x, const T&) { return x.flip({0}) + x; }},
      {"written slice",
       [](const T& x, const T&) {
         T z = x.clone();
         z.slice(0, 1).mul_(5);
         return z;
       },
       {0}},
      {"gathered",
       [](const T& x, const T& y) { return x.index_select(1, zeros({2}, kInt64)) + y.slice(1, 0, 2); }},
      {"last row", [](const T& x, const T&) { return x.select(0, -1) * 2; }},
      {"where", [](const T& x, const T& y) { return where(x > 1, x, y); }},
  };
}

T filled(int64_t rows, float start) {
  return arange(static_cast<double>(3 * rows)).to(kFloat32).view({rows, 3}) + start;
}

void expect_close(const T& got, const T& expected) {
  ASSERT_EQ(got.dim(), expected.dim());
  for (int64_t d = 0; d < got.dim(); ++d) ASSERT_EQ(got.size(d).value(), expected.size(d).value());
  const T a = got.contiguous(), b = expected.contiguous();
  for (int64_t k = 0; k < a.numel(); ++k) {
    const float x = a.data_ptr<float>()[k], y = b.data_ptr<float>()[k];
    if (std::isnan(x) && std::isnan(y)) continue;
    EXPECT_NEAR(x, y, 1e-5 * std::max(1.f, std::abs(y))) << "element " << k;
  }
}

class ExportSizes : public testing::TestWithParam<size_t> {};

TEST_P(ExportSizes, AgreeWithEagerEvaluationOrAreRefused) {
  const ExportedCase c = cases()[GetParam()];
  SCOPED_TRACE(c.name);
  for (const bool shared : {true, false}) {
    const Dim n("n", {.max = 9}), m("m", {.max = 9});
    const auto e =
        export_program(c.function, std::tuple{filled(5, 0), filled(5, 1)}, {{{0, n}}, {{0, shared ? n : m}}});
    for (int64_t a = 0; a <= 9; ++a) {
      for (const int64_t b : {a, int64_t{1}, a + 1}) {
        if (b > 9 || (shared && a != b)) continue;
        SCOPED_TRACE(testing::Message() << "sizes " << a << " and " << b);
        const T x = filled(a, 0.5), y = filled(b, 2);
        T expected, got;
        const std::string eager = error_of([&] { expected = c.function(x, y); });
        const std::string exported = error_of([&] { got = e(x, y); });
        if (exported != "no error") {
          const bool may = eager != "no error" || a != b || std::ranges::count(c.refused, a) > 0;
          EXPECT_TRUE(may) << exported;
          continue;
        }
        ASSERT_EQ(eager, "no error");
        expect_close(got, expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ExportSizes, testing::Range(size_t{0}, cases().size()));

}  // namespace
}  // namespace stax
