// What calls of exported programs may do: layouts, aliases, containers, threads, sizes 0 and 1.
#include <thread>

#include "cpu/export_testing.h"

namespace stax {
namespace {

using T = Tensor;
using testing::HasSubstr;
using testing::Not;

TEST(ExportContract, TakesTensorsInOtherLayouts) {
  auto n = Dim("n");
  const auto e = export_program([](const T& x) { return x * 2; }, std::tuple{zeros({4, 3})}, {{{0, n}}});
  const T x = arange(6.0).view({3, 2}).transpose(0, 1);  // [[0, 2, 4], [1, 3, 5]]
  expect_values(e(x), {2, 3}, {0, 4, 8, 2, 6, 10});
  expect_values(e(tensor({1.f, 2.f, 3.f}).expand({2, 3})), {2, 3}, {2, 4, 6, 2, 4, 6});
  expect_values(e(arange(12.0).view({4, 3}).slice(0, 0, 4, 2)), {2, 3}, {0, 2, 4, 12, 14, 16});
  // A transposed example: the order of the example is that of the program.
  const auto turned = export_program([](const T& y) { return y.sum(0); },
                                     std::tuple{zeros({3, 4}).transpose(0, 1)}, {{{0, n}}});
  expect_values(turned(x), {3}, {1, 5, 9});
  expect_values(turned(x.contiguous()), {3}, {1, 5, 9});
}

TEST(ExportContract, ReturnsViewsOfArguments) {
  auto n = Dim("n", {.min = 2});
  const auto e = export_program(
      [](const T& x) {
        return std::vector<T>{x.slice(0, 1), x};
      },
      std::tuple{zeros({4})}, {{{0, n}}});
  const T x = tensor({1.f, 2.f, 3.f});
  const ExportedResults out = e(x);
  ASSERT_EQ(out.size(), 2u);
  x.add_(10);
  expect_values(out[0], {2}, {12, 13});
  expect_values(out[1], {3}, {11, 12, 13});
  EXPECT_THAT(error_of([&] { e(arange(6.0).slice(0, 0, 6, 2)); }), HasSubstr("another order in memory"));
  EXPECT_THAT(error_of([&] { const T one = e(x); }), HasSubstr("returns 2 tensors where one was expected"));
}

TEST(ExportContract, WritesToArgumentsThatShareNothing) {
  const auto f = [](T x, const T& y) {
    x.slice(0, 1).add_(y.slice(0, 1));
    return x.sum();
  };
  auto n = Dim("n", {.min = 2, .max = 9});
  const auto e =
      export_program(f, std::tuple{zeros({4}), zeros({4})}, {{{0, n}}, {{0, n}}}, {.names = {"x", "y"}});
  for (int64_t size = 2; size <= 4; ++size) {  // at 2 the slice has one element
    const T x = ones({size});
    expect_values(e(x, full({size}, 3.0)), {}, {static_cast<float>(4 * size - 3)});
    EXPECT_EQ(x[0].item<float>(), 1.f);
    EXPECT_EQ(x[1].item<float>(), 4.f);
  }
  const T both = ones({4});
  EXPECT_THAT(error_of([&] { e(both, both); }), HasSubstr("y shares memory with x"));
  EXPECT_THAT(error_of([&] { e(ones({1}).expand({4}), both); }), HasSubstr("several of its elements"));
}

TEST(ExportContract, RefusesWhatTheFunctionDoesOtherwiseAtSmallSizes) {
  auto n = Dim("n", {.max = 100});
  const auto squeezed =
      export_program([](const T& x) { return x.squeeze(0); }, std::tuple{zeros({4, 2})}, {{{0, n}}});
  EXPECT_THAT(error_of([&] { squeezed(ones({1, 2})); }), HasSubstr("holds only where arg0.size()[0] != 1"));
  expect_values(squeezed(ones({0, 2})), {0, 2}, {});
  const auto largest =
      export_program([](const T& x) { return x.amax({0}); }, std::tuple{zeros({4, 2})}, {{{0, n}}});
  EXPECT_THAT(error_of([&] { largest(ones({0, 2})); }), HasSubstr("holds only where arg0.size()[0] != 0"));
  expect_values(largest(tensor({{3.f, 4.f}})), {2}, {3, 4});
  // The example may have such a size.
  const auto one = export_program([](const T& x) { return x + 1; }, std::tuple{zeros({1})}, {{{0, n}}});
  for (const int64_t size : {0, 1, 5}) {
    expect_values(one(ones({size})), {size}, std::vector<float>(static_cast<size_t>(size), 2.f));
  }
  EXPECT_THAT(one.graph(), Not(HasSubstr("assert_shape_guard")));
}

/// One attention layer; heads are split and joined by reshapes, which copy or not by the sizes.
T attention(const T& x, const T& w) {
  const auto split = [&](const T& t) { return t.reshape({x.size(0), x.size(1), 2, 4}).transpose(1, 2); };
  const T q = split(matmul(x, w)), k = split(matmul(x, w.t())), v = split(x);
  const T mixed = matmul(softmax(matmul(q, k.transpose(-1, -2)) / 2, -1), v);
  return mixed.transpose(1, 2).reshape({x.size(0), x.size(1), 8}) + x;
}

TEST(ExportContract, ServesABatchOfOne) {
  Dim b("b", {.min = 1, .max = 64}), s("s", {.min = 1, .max = 512});
  const auto e = export_program(attention, std::tuple{TensorSpec{kFloat32, {4, 32, 8}}, zeros({8, 8})},
                                {{{0, b}, {1, s}}});
  EXPECT_THAT(e.graph(), Not(HasSubstr("assert_shape_guard")));
  for (const int64_t batch : {1, 2, 5}) {
    for (const int64_t length : {1, 3, 40}) {
      const T x = randn({batch, length, 8}), w = randn({8, 8});
      const T difference = T(e(x, w)) - attention(x, w);
      EXPECT_LT(difference.abs().max().item<float>(), 1e-4f) << batch << " and " << length;
    }
  }
}

TEST(ExportContract, TakesContainersAndKeepsNumbers) {
  const auto f = [](const std::vector<T>& list, int64_t times, const Scalar& scale) {
    return std::tuple{list[0] * times * scale, list[1].sum()};
  };
  auto n = Dim("n");
  const auto e =
      export_program(f, std::tuple{std::vector{zeros({3}), zeros({2})}, int64_t{3}, Scalar(0.5)}, {{{0, n}}});
  const ExportedResults out = e(std::vector{ones({2}), ones({2})});
  expect_values(out[0], {2}, {1.5, 1.5});
  expect_values(out[1], {}, {2});
  expect_values(e(ones({2}), ones({2}))[0], {2}, {1.5, 1.5});
  EXPECT_THAT(error_of([&] { e(ones({2}), ones({2}), Scalar(2)); }), HasSubstr("constants of it"));
}

TEST(ExportContract, RefusesContradictingDeclarations) {
  const auto f = [](const T& x, const T& y) { return x.sum() + y.sum(); };
  const auto refused = [&](const Dim& a, const Dim& b) {
    return error_of([&] { export_program(f, std::tuple{zeros({6}), zeros({4})}, {{{0, a}}, {{0, b}}}); });
  };
  EXPECT_THAT(
      refused(Dim("n"), Dim("n")),
      HasSubstr(
          "n, declared within [0, inf), is 4 in dimension 0 of tensor 1, but 6 in dimension 0 of tensor 0"));
  EXPECT_THAT(refused(Dim("n", {.max = 9}), Dim("n", {.max = 8}) + 2),
              HasSubstr("n is declared within [0, 9] and within [0, 8]"));
  EXPECT_THAT(refused(Dim("n", {.max = 5}), Dim("m")), HasSubstr("n is declared within [0, 5], got 6"));
  EXPECT_THAT(refused(4 * Dim("n"), Dim("m")), HasSubstr("got 6, which is not of that form"));
  EXPECT_THAT(refused(Dim(5), Dim("m")), HasSubstr("declared as 5, got 6"));
  EXPECT_THAT(error_of([&] {
                export_program(f, std::tuple{zeros({6}), zeros({4})}, {{{1, Dim("n")}}});
              }),
              HasSubstr("dimension 1 of tensor 0 is declared (n), the tensor has 1 dimension"));
  EXPECT_THAT(error_of([&] {
                export_program(f, std::tuple{zeros({6}), zeros({4})}, {{{0, Dim("n")}, {-1, Dim("n")}}});
              }),
              HasSubstr("is declared twice"));
  EXPECT_THAT(error_of([&] {
                export_program(f, std::tuple{zeros({6}), zeros({4})}, {}, {.names = {"x", "x"}});
              }),
              HasSubstr("two tensors are named x"));
}

TEST(ExportContract, RestrictsAutomaticDimsByWhatIsDecided) {
  const auto f = [](const T& x) { return x.size(0) > 4 ? x + 1 : x * 2; };
  const auto e = export_program(f, std::tuple{zeros({6})}, {{{0, Dim::automatic()}}}, {.names = {"x"}});
  EXPECT_EQ(e.assertions(), (std::vector<std::string>{"x is float32[x.size()[0]]", "x.size()[0] > 4"}));
  expect_values(e(zeros({5})), {5}, {1, 1, 1, 1, 1});
  EXPECT_EQ(error_of([&] { e(zeros({4})); }),
            "an exported program holds only where x.size()[0] > 4, but x.size()[0] is 4");
}

TEST(ExportContract, RefusesSizesWhoseProductsLeave64Bits) {
  const auto f = [](const T& x, const T& y) { return (x.unsqueeze(1) + y).sum(); };
  const auto e =
      export_program(f, std::tuple{zeros({4, 3}), zeros({5, 1})}, {{{0, Dim("n")}}, {{0, Dim("m")}}});
  expect_values(e(ones({2, 3}), ones({7, 1})), {}, {84});  // 2 * 7 * 3 * 2
  const std::vector<int64_t> huge = {int64_t{1} << 62, 3};
  EXPECT_THROW(e(ones({1, 3}).expand(huge), ones({1, 1})), Error);
  EXPECT_THROW(make_graph(f, std::tuple{TensorSpec{kFloat32, {int64_t{1} << 61, 3}}, zeros({5, 1})}),
               UserError);
}

TEST(ExportContract, ExportsModels) {
  const OnnxModel model = OnnxModel::load(STAX_TEST_DATA "/onnx/mlp.onnx");
  const auto e = export_program(model, std::tuple{std::vector{zeros({4, 2})}},
                                {{{0, Dim("batch", {.min = 1, .max = 99})}}}, {.names = {"x"}});
  for (const int64_t batch : {1, 2, 9}) {
    const T x = randn({batch, 2});
    EXPECT_LT((T(e(x)) - model({x})[0]).abs().max().item<float>(), 1e-5f);
  }
}

TEST(ExportContract, DecidesRelationsOfDims) {
  const auto f = [](const T& x, const T& y) { return x.size(0) > y.size(0) ? x.sum() : y.sum(); };
  const std::tuple inputs{zeros({10}), zeros({4})};
  const std::string error = error_of([&] {
    export_program(f, inputs, {{{0, Dim("p", {.max = 100})}}, {{0, Dim("q", {.max = 100})}}});
  });
  EXPECT_THAT(error, HasSubstr("Constraints violated (q, p)!"));
  EXPECT_THAT(error, HasSubstr("satisfy the guard q < p,"));
  // Whatever is suggested has to work.
  const size_t fixes = error.find("Suggested fixes:");
  ASSERT_NE(fixes, std::string::npos) << error;
  EXPECT_THAT(error.substr(fixes), HasSubstr("auto q = Dim(\"q\", {.max = 9});"));
  EXPECT_THAT(error.substr(fixes), HasSubstr("auto p = Dim(\"p\", {.min = 10, .max = 100});"));
  auto q = Dim("q", {.max = 9});
  auto p = Dim("p", {.min = 10, .max = 100});
  const auto e = export_program(f, inputs, {{{0, p}}, {{0, q}}});
  expect_values(e(ones({12}), zeros({9})), {}, {12});
  // Equal dims are one.
  const auto g = [](const T& x, const T& y) { return x.size(0) == y.size(0) ? x.sum() : y.sum(); };
  EXPECT_THAT(error_of([&] {
                export_program(g, std::tuple{zeros({4}), zeros({4})}, {{{0, Dim("p")}}, {{0, Dim("q")}}});
              }),
              HasSubstr("    auto q = p;"));
}

TEST(ExportContract, SuggestsDeclarationsInAnOrderThatCanBePasted) {
  const auto twice = [](const T& x) { return x.size(0) == 2 * x.size(1) ? x * 2 : x; };
  const std::tuple matrix{zeros({32, 16})};
  {
    auto n = Dim("n", {.min = 2, .max = 4096}), m = Dim("m", {.min = 2, .max = 4096});
    // n = 2 * m stays within what n was declared as: m up to 2048.
    EXPECT_THAT(error_of([&] {
                  export_program(twice, matrix, {{{0, n}, {1, m}}});
                }),
                HasSubstr("Suggested fixes:\n"
                          "    auto m = Dim(\"m\", {.min = 2, .max = 2048});\n"
                          "    auto n = 2*m;"));
  }
  auto m = Dim("m", {.min = 2, .max = 2048});
  auto n = 2 * m;
  const auto e = export_program(twice, matrix, {{{0, n}, {1, m}}});
  expect_values(e(ones({4, 2})), {4, 2}, std::vector<float>(8, 2.f));
}

TEST(ExportContract, SuggestsAMultipleWithinBounds) {
  const auto f = [](const T& x) {
    return x.size(0) > 10 && x.size(0) < 100 && x.size(0) % 4 == 1 ? x * 2 : x;
  };
  const std::string error = error_of([&] {
    export_program(f, std::tuple{zeros({33})}, {{{0, Dim("n", {.min = 2, .max = 4096})}}});
  });
  EXPECT_THAT(error, HasSubstr("satisfy the guard n % 4 == 1,"));
  // 13, 17, ..., 97
  EXPECT_THAT(error,
              HasSubstr("    auto _n = Dim(\"_n\", {.min = 3, .max = 24});\n    auto n = 4 * _n + 1;"));
  auto _n = Dim("_n", {.min = 3, .max = 24});
  const auto e = export_program(f, std::tuple{zeros({33})}, {{{0, 4 * _n + 1}}});
  expect_values(T(e(ones({97}))).sum(), {}, {194});
  EXPECT_THAT(error_of([&] { e(ones({101})); }), HasSubstr("_n is declared within [3, 24], got 25"));
}

TEST(ExportContract, SuggestsARangeForAnEquationThatARangeSolves) {
  const auto f = [](const T& x) { return min(x.size(0), 10) == 10 ? x * 2 : x; };
  EXPECT_THAT(error_of([&] {
                export_program(f, std::tuple{zeros({32})}, {{{0, Dim("n", {.min = 2, .max = 64})}}});
              }),
              HasSubstr("Suggested fixes:\n    auto n = Dim(\"n\", {.min = 10, .max = 64});"));
}

TEST(ExportContract, ServesRangesOfZeroAndOneOnly) {
  const auto f = [](const T& x) { return x.sum(0) + 3; };
  for (const int64_t example : {0, 1}) {
    const auto e = export_program(f, std::tuple{zeros({example, 2})}, {{{0, Dim("n", {.max = 1})}}});
    expect_values(e(ones({0, 2})), {2}, {3, 3});
    expect_values(e(ones({1, 2})), {2}, {4, 4});
    EXPECT_EQ(error_of([&] { e(ones({2, 2})); }), "dimension 0 of arg0: n is declared within [0, 1], got 2");
  }
  EXPECT_THAT(error_of([&] {
                export_program(f, std::tuple{zeros({2, 2})}, {{{0, Dim("n", {.max = 1})}}});
              }),
              HasSubstr("n is declared within [0, 1], got 2"));
}

TEST(ExportContract, AsksForTheDivisorOnlyWhereAViewNeedsIt) {
  const auto f = [](const T& x) { return x.view({-1, 4}).sum(1); };
  const auto e = export_program(f, std::tuple{zeros({64})}, {{{0, Dim::automatic()}}});
  expect_values(e(ones({4})), {1}, {4});
  expect_values(e(ones({12})), {3}, {4, 4, 4});
  EXPECT_THAT(error_of([&] { e(ones({6})); }), HasSubstr("arg0.size()[0] % 4 == 0"));
}

TEST(ExportContract, RefusesBuckets) {
  EXPECT_THAT(error_of([&] {
                export_program([](const T& x) { return x; }, std::tuple{zeros({4})},
                               {{{0, Dim("n", {.max = 8, .power_of_two_buckets = true})}}});
              }),
              HasSubstr("n is declared with buckets"));
}

TEST(ExportContract, ServesManyThreads) {
  auto n = Dim("n", {.min = 0, .max = 64});
  const auto e =
      export_program([](const T& x) { return (x * 2).sum(0); }, std::tuple{zeros({8, 3})}, {{{0, n}}});
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t size = 0; size < 20; ++size) {
        const T y = e(ones({(size + t) % 20, 3}));
        wrong[static_cast<size_t>(t)] += y[2].item<float>() != static_cast<float>(2 * ((size + t) % 20));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace stax
