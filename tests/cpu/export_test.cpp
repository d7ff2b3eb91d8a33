// Exported programs: the text, the declared ranges, the assertions. Expected values are worked out by hand.
#include "cpu/export_testing.h"

namespace stax {
namespace {

using T = Tensor;
using testing::HasSubstr;

TEST(Export, PrintsTheFirstExample) {
  auto n = Dim("n", {.min = 2, .max = 4096});
  const auto e = export_program(scaled_sum, std::tuple{zeros({64, 128}), zeros({64, 128})},
                                {{{0, n}}, {{0, n}}}, {.names = {"x", "w"}});
  EXPECT_EQ(e.graph(),
            "add = x + w\n"
            "relu = stax_nn_functional_relu(add)\n"
            "mul = relu * 2\n"
            "sum_0 = mul.sum(-1)\n"
            "getattr_0 = getattr_1(x, 'shape')\n"
            "getitem = getattr_0[0]\n"
            "truediv = sum_0 / getitem\n"
            "_assert_dims_equal = stax_export__trace__assert_dims_equal(w, 0, x, 0, 'n')\n"
            "_assert_dim_range = stax_export__trace__assert_dim_range(w, 0, 2, 4096, 'n')\n"
            "return truediv\n");
  // relu(1 + 2) * 2 * 128 / 10
  const T y = e(full({10, 128}, 1.0), full({10, 128}, 2.0));
  expect_values(y, {10}, std::vector<float>(10, 76.8f));
  expect_values(e(full({64, 128}, 1.0), full({64, 128}, -2.0)), {64}, std::vector<float>(64, 0.f));
}

TEST(Export, PrintsTheThirdExample) {
  const auto b = [](const T& x, const T& y) { return x + y; };
  const std::string text =
      "add = x + y\n"
      "getattr_0 = getattr_1(x, 'shape')\n"
      "getitem = getattr_0[0]\n"
      "getattr_2 = getattr_1(y, 'shape')\n"
      "getitem_0 = getattr_2[0]\n"
      "eq = getitem == getitem_0\n"
      "_assert_shape_guard = stax_export__trace__assert_shape_guard(eq, True, 'x.size()[0] == y.size()[0]')\n"
      "return add\n";
  const auto e = export_program(b, std::tuple{zeros({4}), zeros({4})}, {{{0, Dim("p")}}, {{0, Dim("q")}}},
                                {.names = {"x", "y"}});
  EXPECT_EQ(e.graph(), text);
  const auto automatic =
      export_program(b, std::tuple{zeros({4}), zeros({4})},
                     {{{0, Dim::automatic()}}, {{0, Dim::automatic()}}}, {.names = {"x", "y"}});
  EXPECT_EQ(automatic.graph(), text);
  expect_values(e(tensor({1.f, 2.f, 3.f}), tensor({10.f, 20.f, 30.f})), {3}, {11, 22, 33});
  // Size 1 meets the assertion, and works where both have it.
  EXPECT_THAT(
      error_of([&] {
        e(tensor({1.f}), tensor({1.f, 2.f}));
      }),
      HasSubstr("holds only where x.size()[0] == y.size()[0], but x.size()[0] is 1 and y.size()[0] is 2"));
  EXPECT_THAT(error_of([&] {
                e(tensor({1.f, 2.f}), tensor({1.f}));
              }),
              HasSubstr("x.size()[0] == y.size()[0]"));
  expect_values(e(tensor({1.f}), tensor({5.f})), {1}, {6});
  expect_values(e(zeros({0}), zeros({0})), {0}, {});
}

T branches(const T& x, const T& w) {
  if (x.size(0) > 32) return scaled_sum(x, w);
  return x.sum(-1);
}

TEST(Export, RefusesAnUnprovenDecisionAndTheSuggestedFixWorks) {
  const std::tuple inputs{zeros({64, 128}), zeros({64, 128})};
  {
    auto n = Dim("n", {.min = 2, .max = 4096});
    EXPECT_EQ(error_of([&] {
                export_program(branches, inputs, {{{0, n}}, {{0, n}}});
              }),
              "Constraints violated (n)! The captured program holds only for some of the declared sizes:\n"
              "  - Not all values of n in [2, 4096] satisfy the guard n > 32, which the program was captured "
              "under\n"
              "Suggested fixes:\n"
              "    auto n = Dim(\"n\", {.min = 33, .max = 4096});");
  }
  auto n = Dim("n", {.min = 33, .max = 4096});
  const auto e = export_program(branches, inputs, {{{0, n}}, {{0, n}}}, {.names = {"x", "w"}});
  EXPECT_THAT(e.graph(), HasSubstr("assert_dim_range(w, 0, 33, 4096, 'n')\nreturn truediv"));
  EXPECT_THAT(e.graph(), testing::Not(HasSubstr("assert_shape_guard")));
  expect_values(e(full({33, 128}, 1.0), full({33, 128}, 2.0)), {33}, std::vector<float>(33, 768.f / 33));
  EXPECT_THAT(error_of([&] {
                e(zeros({32, 128}), zeros({32, 128}));
              }),
              HasSubstr("n is declared within [33, 4096], got 32"));
}

TEST(Export, CollectsAllViolations) {
  const auto f = [](const T& x, const T& y) {
    T z = x.size(0) <= 100 ? x + 1 : x;
    if (x.size(0) != 7) z = z * 2;
    return y.size(0) % 4 == 0 ? z.sum() + y.sum() : z.sum();
  };
  const std::string error = error_of([&] {
    export_program(f, std::tuple{zeros({20}), zeros({8})},
                   {{{0, Dim("n", {.max = 1000})}}, {{0, Dim("m", {.min = 1, .max = 63})}}});
  });
  EXPECT_THAT(error, HasSubstr("Constraints violated (n, m)!"));
  EXPECT_THAT(error, HasSubstr("of n in [0, 1000] satisfy the guard n <= 100,"));
  EXPECT_THAT(error, HasSubstr("of n in [0, 1000] satisfy the guard n != 7,"));
  EXPECT_THAT(error, HasSubstr("    auto n = Dim(\"n\", {.min = 8, .max = 100});"));
  EXPECT_THAT(error, HasSubstr("    auto _m = Dim(\"_m\", {.min = 1, .max = 15});\n    auto m = 4 * _m;"));
  auto n = Dim("n", {.min = 8, .max = 100});
  auto _m = Dim("_m", {.min = 1, .max = 15});
  auto m = 4 * _m;
  const auto e = export_program(f, std::tuple{zeros({20}), zeros({8})}, {{{0, n}}, {{0, m}}});
  expect_values(e(ones({10}), ones({12})), {}, {52});  // 10 * 2 * 2 + 12
  EXPECT_THAT(error_of([&] { e(ones({10}), ones({13})); }),
              HasSubstr("dimension 0 of arg1 is declared as 4*_m, got 13"));
}

TEST(Export, NarrowsTheNameBehindADerivedDim) {
  const auto f = [](const T& x) { return x.size(0) > 32 && x.size(0) / 2 != 100 ? x + 1 : x; };
  auto n = Dim("n", {.min = 1, .max = 100});
  const std::string error = error_of([&] {
    export_program(f, std::tuple{zeros({129})}, {{{0, 2 * n + 1}}});
  });
  // 2n + 1 > 32 from n = 16 on; (2n + 1)/2 = n is 100 at the end.
  EXPECT_THAT(error, HasSubstr("    auto n = Dim(\"n\", {.min = 16, .max = 99});"));
  auto fixed = Dim("n", {.min = 16, .max = 99});
  const auto e = export_program(f, std::tuple{zeros({129})}, {{{0, 2 * fixed + 1}}});
  expect_values(e(zeros({33})).tensors()[0].sum(), {}, {33});
  EXPECT_THAT(error_of([&] { e(zeros({31})); }),
              HasSubstr("n is declared within [16, 99], got 15 (the size is 31)"));
  EXPECT_THAT(error_of([&] { e(zeros({34})); }), HasSubstr("which is not of that form"));
}

TEST(Export, RefusesToPinADeclaredDim) {
  auto n = Dim("n", {.min = 2, .max = 64});
  const auto reads = [](const T& x) {
    const int64_t rows = x.size(0);
    return x * rows;
  };
  EXPECT_THAT(error_of([&] {
                export_program(reads, std::tuple{zeros({6})}, {{{0, n}}});
              }),
              testing::AllOf(HasSubstr("satisfy the guard n == 6,"), HasSubstr("    auto n = Dim(6);")));
  const auto meets = [](const T& x) { return x + ones({6}); };
  EXPECT_THAT(error_of([&] {
                export_program(meets, std::tuple{zeros({6})}, {{{0, n}}});
              }),
              HasSubstr("satisfy the guard n == 6,"));
  // An automatic dimension is restricted without a word.
  const auto e = export_program(meets, std::tuple{zeros({6})}, {{{0, Dim::automatic()}}});
  expect_values(e(ones({6})), {6}, std::vector<float>(6, 2.f));
  EXPECT_THAT(error_of([&] { e(ones({5})); }), HasSubstr("arg0.size()[0] == 6, but arg0.size()[0] is 5"));
}

TEST(Export, KeepsUndeclaredDimsFixed) {
  const auto e = export_program([](const T& x) { return x * 2; }, std::tuple{zeros({3, 4})},
                                {{{0, Dim("n")}}}, {.names = {"x"}});
  expect_values(e(ones({1, 4})), {1, 4}, {2, 2, 2, 2});
  EXPECT_EQ(error_of([&] {
              e(ones({3, 5}));
            }),
            "dimension 1 of x: the program was exported for the size 4, got 5");
  EXPECT_THAT(error_of([&] { e(zeros({3, 4}, kInt32)); }), HasSubstr("exported for float32, got int32"));
  EXPECT_THAT(error_of([&] { e(ones({3, 4}), ones({3, 4})); }), HasSubstr("of 1 tensors is called with 2"));
}

TEST(Export, NamesDimRangeAndSizeOutside) {
  auto n = Dim("n", {.min = 2, .max = 4096});
  const auto e = export_program(scaled_sum, std::tuple{zeros({4, 3}), zeros({4, 3})}, {{{0, n}}, {{0, n}}},
                                {.names = {"x", "w"}});
  EXPECT_EQ(error_of([&] {
              e(zeros({4097, 3}), zeros({4097, 3}));
            }),
            "dimension 0 of x: n is declared within [2, 4096], got 4097");
  EXPECT_EQ(error_of([&] {
              e(zeros({10, 3}), zeros({11, 3}));
            }),
            "dimension 0 of w is declared as n, which is 10 by dimension 0 of x, got 11");
}

TEST(Export, RunsBothEndsOfSmallRanges) {
  const auto f = [](const T& x) { return x.sum(0); };
  for (const auto& [min, max, example] : {std::tuple{1, 2, 2}, {1, 1, 1}, {0, 4, 3}, {0, 1, 1}, {0, 0, 0}}) {
    const auto e = export_program(f, std::tuple{ones({example})}, {{{0, Dim("n", {.min = min, .max = max})}}},
                                  {.names = {"x"}});
    for (int size = min; size <= max; ++size) {
      expect_values(e(full({size}, 1.5)), {}, {1.5f * static_cast<float>(size)});
    }
    EXPECT_EQ(error_of([&] { e(ones({max + 1})); }), "dimension 0 of x: n is declared within [" +
                                                         std::to_string(min) + ", " + std::to_string(max) +
                                                         "], got " + std::to_string(max + 1));
  }
}

TEST(Export, TakesDerivedDims) {
  auto d = Dim("d", {.min = 1, .max = 8});
  const auto f = [](const T& x, const T& y) { return x.view({3, -1}) - y; };
  const auto e = export_program(f, std::tuple{zeros({15}), zeros({5})}, {{{0, 3 * d}}, {{0, d}}});
  expect_values(e(arange(6.0), tensor({10.f, 20.f})), {3, 2}, {-10, -19, -8, -17, -6, -15});
  expect_values(e(arange(3.0), tensor({10.f})), {3, 1}, {-10, -9, -8});
  EXPECT_THAT(error_of([&] { e(zeros({7}), zeros({2})); }),
              HasSubstr("dimension 0 of arg0 is declared as 3*d, which is 6 by dimension 0 of arg1, got 7"));
  EXPECT_THAT(error_of([&] { e(zeros({27}), zeros({9})); }), HasSubstr("d is declared within [1, 8], got 9"));
  const auto next = export_program([](const T& x, const T& y) { return y.slice(0, 1) + x; },
                                   std::tuple{zeros({4}), zeros({5})}, {{{0, d}}, {{0, d + 1}}});
  expect_values(next(tensor({1.f, 2.f}), tensor({9.f, 10.f, 20.f})), {2}, {11, 22});
  EXPECT_THAT(error_of([&] { next(zeros({2}), zeros({4})); }), HasSubstr("declared as d + 1, which is 3"));
}

TEST(Export, SlicesWithSteps) {
  const auto f = [](const T& x, const T& y) {
    return x + y.index({indexing::Slice(indexing::None, indexing::None, 2)});
  };
  const auto e = export_program(f, std::tuple{zeros({4}), zeros({7})}, {{{0, Dim("n")}}, {{0, Dim("m")}}});
  expect_values(e(zeros({4}), arange(7.0)), {4}, {0, 2, 4, 6});
  expect_values(e(ones({4}), arange(8.0)), {4}, {1, 3, 5, 7});
  expect_values(e(zeros({5}), arange(9.0)), {5}, {0, 2, 4, 6, 8});
  EXPECT_THAT(error_of([&] { e(zeros({4}), arange(9.0)); }), HasSubstr("holds only where"));
}

TEST(Export, CountsTheRankToTheContract) {
  const auto e =
      export_program([](const T& x) { return abs(x); }, std::tuple{tensor(-2.f)}, {{}}, {.names = {"x"}});
  expect_values(e(tensor(-1.f)), {}, {1});
  EXPECT_EQ(error_of([&] {
              e(tensor({-1.f, -2.f}));
            }),
            "x: the program was exported for a tensor of rank 0, got rank 1");
}

TEST(Export, TakesAnAxisOfSizeZero) {
  auto batch = Dim("batch");
  const auto e = export_program(
      [](const T& a, const T& b) {
        return cat({a, b}, 1) + 1;
      },
      std::tuple{zeros({4, 0}), zeros({4, 3})}, {{{0, batch}}, {{0, batch}}});
  for (const int64_t size : {4, 2, 1}) {
    expect_values(e(zeros({size, 0}), full({size, 3}, 2.0)), {size, 3},
                  std::vector<float>(static_cast<size_t>(3 * size), 3.f));
  }
}

}  // namespace
}  // namespace stax
