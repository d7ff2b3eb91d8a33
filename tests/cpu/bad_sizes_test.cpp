// Calls that contradict what is declared about sizes: each error names the dimension, what is declared, and
// what it got.
#include "cpu/export_testing.h"

namespace stax {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using T = Tensor;

T twice(const T& x) {
  return x * 2;
}
T sum_of(const T& x, const T& y) {
  return x + y;
}

TEST(BadSizes, OutsideOfTheDeclaredRange) {
  const auto n = Dim("n", {.min = 3, .max = 8});
  const auto f = compile(twice, {.dynamic = true, .dynamic_shapes = {{{0, n}}}});
  const auto e = export_program(twice, std::tuple{zeros({5, 2})}, {{{0, n}}}, {.names = {"x"}});
  for (int round = 0; round < 2; ++round) {  // without an artifact and with one
    for (const int64_t size : {0, 1, 2, 9}) {
      const std::string got = "got " + std::to_string(size);
      EXPECT_THAT(error_of([&] {
                    f(zeros({size, 2}));
                  }),
                  AllOf(HasSubstr("dimension 0 of tensor 0"), HasSubstr("n is declared within [3, 8]"),
                        HasSubstr(got)));
      EXPECT_THAT(
          error_of([&] {
            e(zeros({size, 2}));
          }),
          AllOf(HasSubstr("dimension 0 of x"), HasSubstr("n is declared within [3, 8]"), HasSubstr(got)));
    }
    f(zeros({3, 2}));
    f(zeros({8, 2}));
  }
  EXPECT_EQ(f.artifacts().size(), 1u);
}

TEST(BadSizes, ThatShareANameAndDiffer) {
  const auto n = Dim("n", {.min = 2, .max = 8});
  const auto f = compile(sum_of, {.dynamic = true, .dynamic_shapes = {{{0, n}}, {{1, n}}}});
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(error_of([&] {
                  f(zeros({4, 4}), zeros({4, 5}));
                }),
                AllOf(HasSubstr("n, declared within [2, 8], is 5 in dimension 1 of tensor 1"),
                      HasSubstr("4 in dimension 0 of tensor 0")));
    f(zeros({3, 3}), zeros({3, 3}));
  }
  const auto derived = compile(twice, {.dynamic = true, .dynamic_shapes = {{{0, n}, {1, 2 * n + 1}}}});
  EXPECT_THAT(error_of([&] {
                derived(zeros({3, 9}));
              }),
              AllOf(HasSubstr("n, declared within [2, 8], is 4 in dimension 1 of tensor 0"),
                    HasSubstr("3 in dimension 0")));
  EXPECT_THAT(error_of([&] {
                derived(zeros({3, 8}));
              }),
              AllOf(HasSubstr("dimension 1 of tensor 0 is declared as 2*n + 1, with n within [2, 8]"),
                    HasSubstr("got 8")));
  EXPECT_EQ(T(derived(zeros({3, 7}))).size(1), 7);
}

/// Symbols say nothing to who did not choose them.
TEST(BadSizes, HaveTheirValuesInErrorsOfTracing) {
  const auto f = compile(
      [](const Tensor& x, const Tensor& y) {
        return x.reshape({-1, 3}) + y;
      },
      {.dynamic = true});
  EXPECT_THAT(error_of([&] {
                f(zeros({4, 3}), zeros({5, 3}));
              }),
              HasSubstr("(in this call s2 = 5, s0 = 4, s1 = 3)"));
  const auto g = compile([](const Tensor& x) { return x.view({5, -1}); }, {.dynamic = true});
  EXPECT_THAT(error_of([&] { g(zeros({7})); }), AllOf(HasSubstr("view"), HasSubstr("(in this call s0 = 7)")));
  // Without symbols there is nothing to add.
  EXPECT_THAT(error_of([&] { compile([](const Tensor& x) {
                               return x.view({5, -1});
                             })(zeros({7})); }),
              testing::Not(HasSubstr("in this call")));
}

TEST(BadSizes, OfAnotherRank) {
  const auto n = Dim("n", {.min = 2, .max = 8});
  const auto f = compile(twice, {.dynamic = true, .dynamic_shapes = {{{1, n}}}});
  f(zeros({2, 3}));
  EXPECT_THAT(error_of([&] { f(zeros({3})); }),
              AllOf(HasSubstr("dimension 1 of tensor 0"), HasSubstr("n within [2, 8]"),
                    HasSubstr("has 1 dimension")));
  const auto e = export_program(twice, std::tuple{zeros({3, 4})}, {{{1, n}}}, {.names = {"x"}});
  EXPECT_THAT(error_of([&] { e(zeros({3})); }), AllOf(HasSubstr("x"), HasSubstr("rank 2, got rank 1")));
  // Without a declaration, another rank is another artifact.
  const auto any = compile(twice, {.dynamic = true});
  EXPECT_EQ(T(any(zeros({3}))).dim(), 1);
  EXPECT_EQ(T(any(zeros({3, 4}))).dim(), 2);
  EXPECT_EQ(any.artifacts().size(), 2u);
}

TEST(BadSizes, OfTensorsThatShareMemory) {
  const auto n = Dim("n", {.min = 2, .max = 8});
  const auto f = compile(sum_of, {.dynamic = true, .dynamic_shapes = {{{0, n}}, {}}});
  const T x = ones({6});
  EXPECT_THAT(error_of([&] { f(x.slice(0, 0, 3), x.slice(0, 1, 4)); }),
              AllOf(HasSubstr("dimension 0 of tensor 0 is declared as n, with n within [2, 8], and is 3"),
                    HasSubstr("shares memory")));
  expect_values(f(x.slice(0, 0, 3).clone(), x.slice(0, 1, 4)), {3}, {2, 2, 2});
}

TEST(BadSizes, OfStrideZero) {
  const auto f = compile([](const T& x) { return x.sum(0); }, {.dynamic = true});
  const T row = tensor({1.0f, 2.0f, 3.0f});
  expect_values(f(row.unsqueeze(0).expand({4, 3})), {3}, {4, 8, 12});
  expect_values(f(row.unsqueeze(0).expand({5, 3})), {3}, {5, 10, 15});
  EXPECT_EQ(f.artifacts().size(), 1u);
  expect_values(f(ones({5, 3})), {3}, {5, 5, 5});
  EXPECT_EQ(f.artifacts().size(), 2u);
  const auto g = compile([](const T& x) { x.add_(1); }, {.dynamic = true});
  EXPECT_THAT(error_of([&] {
                g(row.unsqueeze(0).expand({4, 3}));
              }),
              HasSubstr("several elements of the tensor that is written lie at one place"));
}

TEST(BadSizes, WhoseProductsAreLarge) {
  const auto n = Dim("n", {.min = 2});
  const auto f = compile([](const T& x) { return x.reshape({-1}).narrow(0, 0, 2) + x.size(0); },
                         {.dynamic = true, .dynamic_shapes = {{{0, n}, {1, Dim("m", {.min = 2})}}}});
  expect_values(f(ones({3, 3})), {2}, {4, 4});
  // 2^32 elements, none of which has memory of its own: more than 32 bits number.
  const int64_t half = int64_t{1} << 16;
  expect_values(f(ones({1}).expand({half, half}).narrow(0, 0, 3).narrow(1, 0, half)), {2}, {4, 4});
  const auto g =
      compile([](const T& x) { return x.select(0, x.size(0) - 1).select(0, 0) * 2; }, {.dynamic = true});
  expect_values(g(ones({1}).expand({half, half})), {}, {2});
  expect_values(g(ones({1}).expand({half * 2, half * 2})), {}, {2});
  // Beyond 2^63: one element is fine, all of them are not.
  const T huge = ones({1}).expand({half * half, half * half, half});
  const auto first =
      compile([](const T& x) { return x.select(0, 0).select(0, 0).select(0, 0) * 2; }, {.dynamic = true});
  expect_values(first(huge), {}, {2});
  const auto all = compile([](const T& x) { return x + 1; }, {.dynamic = true, .dynamic_shapes = {{{0, n}}}});
  all(zeros({3, 3, 3}));
  EXPECT_THAT(error_of([&] { all(huge); }),
              AllOf(HasSubstr("64 bits"),
                    HasSubstr("s0 = 4294967296 is dimension 0 of tensor 0, declared as n within [2, inf)")));
  const auto e = export_program([](const T& x) { return x + 1; }, std::tuple{zeros({3, 3})},
                                {{{0, n}, {1, Dim("m", {.min = 2})}}});
  EXPECT_THAT(error_of([&] {
                e(ones({1}).expand({half * half, half * half}));
              }),
              AllOf(HasSubstr("64 bits"), HasSubstr("declared as n within [2, inf)")));
}

TEST(BadSizes, ThatContradictingDeclarationsAllow) {
  const auto tried = [](DynamicShapes shapes) {
    return error_of([&] {
      compile(sum_of, {.dynamic = true, .dynamic_shapes = std::move(shapes)})(zeros({4}), zeros({4}));
    });
  };
  EXPECT_THAT(tried({{{0, Dim("n", {.min = 2, .max = 8})}}, {{0, Dim("n", {.min = 2, .max = 9})}}}),
              HasSubstr("n is declared within [2, 8] and within [2, 9]"));
  EXPECT_THAT(error_of([&] { Dim("n", {.min = 5, .max = 4}); }),
              AllOf(HasSubstr("'n'"), HasSubstr("min 5 and max 4")));
  EXPECT_THAT(tried({{{0, Dim(5)}}}), HasSubstr("dimension 0 of tensor 0 is declared as 5, got 4"));
  EXPECT_THAT(tried({{{0, Dim("n")}}, {{0, 2 * Dim("n")}}}),
              HasSubstr("is 2 in dimension 0 of tensor 1, but 4"));
  EXPECT_THAT(tried({{}, {}, {}}), HasSubstr("declarations for 3 tensors, but the arguments have 2"));
  // The function makes two declared names one: artifacts hold for that, other calls get an error of add.
  const auto f = compile(sum_of, {.dynamic = true, .dynamic_shapes = {{{0, Dim("n")}}, {{0, Dim("m")}}}});
  f(zeros({4}), zeros({4}));
  EXPECT_THAT(error_of([&] { f(zeros({4}), zeros({5})); }), HasSubstr("add"));
}

TEST(BadSizes, ThatTheFunctionFixes) {
  const auto n = Dim("n", {.min = 2, .max = 8});
  const auto f =
      compile([](const T& x) { return x + ones({4}); }, {.dynamic = true, .dynamic_shapes = {{{0, n}}}});
  EXPECT_THAT(error_of([&] { f(zeros({4})); }),
              AllOf(HasSubstr("dimension n is declared dynamic, within [2, 8]"), HasSubstr("fixes it to 4")));
}

TEST(BadSizes, ThatAFailedCheckRefuses) {
  const auto n = Dim("n", {.min = 2, .max = 64});
  const auto f = compile(
      [](const T& x, const T& y) {
        check(x.size(0) <= y.size(0), "as many rows");
        return x.sum() + y.sum();
      },
      {.dynamic = true, .dynamic_shapes = {{{0, n}}, {}}});
  expect_values(f(ones({3}), ones({5})), {}, {8});
  const std::string text = error_of([&] { f(ones({6}), ones({5})); });
  EXPECT_THAT(text, AllOf(HasSubstr("check failed: s0 <= s1 (as many rows), with s0 = 6, s1 = 5"),
                          HasSubstr("s0 is dimension 0 of tensor 0, declared as n with n within [2, 64]"),
                          HasSubstr("s1 is dimension 0 of tensor 1"), HasSubstr("bad_sizes_test.cpp:")));
  EXPECT_EQ(f.artifacts().size(), 1u);
}

}  // namespace
}  // namespace stax
