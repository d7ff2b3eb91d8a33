// Recorded graphs that are not compiled.
#include "cpu/export_testing.h"

namespace stax {
namespace {

using T = Tensor;
using testing::HasSubstr;

TEST(MakeGraph, RecordsSymbolicSizes) {
  const auto f = [](const T& x) { return x.size(0) > 4 ? (x + 1).sum(0) : x.sum(0); };
  const auto g = make_graph(f, std::tuple{zeros({6, 3})}, {.tracing = Tracing::symbolic, .names = {"x"}});
  EXPECT_EQ(g.str(),
            "%arg: float32[s0, s1] strides [s1, 1] = input 0\n"
            "%add: float32[s0, s1] = add.Tensor(%arg, 1, 1)\n"
            "%sum: float32[s1] = sum.dim_IntList(%add, [0], False, None)\n"
            "return %sum\n");
  EXPECT_EQ(g.guards(), std::vector<std::string>{"s0 > 4"});
  EXPECT_EQ(g.text(),
            "add = x + 1\n"
            "sum_0 = add.sum(0)\n"
            "getattr_0 = getattr_1(x, 'shape')\n"
            "getitem = getattr_0[0]\n"
            "gt = getitem > 4\n"
            "_assert_shape_guard = stax_export__trace__assert_shape_guard(gt, True, 'x.size()[0] > 4')\n"
            "return sum_0\n");
}

TEST(MakeGraph, TakesTensorsWithoutMemory) {
  // 2^50 elements: nothing may allocate them.
  const auto g =
      make_graph([](const T& x, const T& y) { return matmul(x, y); },
                 std::tuple{TensorSpec{kFloat32, {1 << 25, 1 << 25}}, TensorSpec{kFloat32, {1 << 25, 8}}});
  EXPECT_THAT(g.str(), HasSubstr("float32[33554432, 8] = mm("));
  const auto e = export_program([](const T& x) { return x * 2; },
                                std::tuple{TensorSpec{kInt64, {1 << 20, 2}}}, {{{0, Dim("n")}}});
  expect_values(e(ones({2, 2}, kInt64)), {2, 2}, {2, 2, 2, 2});
}

TEST(MakeGraph, RefusesReadsOfElements) {
  const auto reads = [](const T& x) { return x.sum().item<float>() > 0 ? x : -x; };
  EXPECT_THAT(error_of([&] {
                make_graph(reads, std::tuple{TensorSpec{kFloat32, {4}}});
              }),
              HasSubstr("reads a value"));
  EXPECT_THAT(error_of([&] { export_program(reads, std::tuple{zeros({4})}); }), HasSubstr("reads a value"));
}

TEST(MakeGraph, RecordsConcreteSizes) {
  const auto g = make_graph([](const T& x) { return x.view({-1}); }, std::tuple{zeros({2, 3})});
  EXPECT_THAT(g.str(), HasSubstr("float32[6] = view("));
  EXPECT_TRUE(g.guards().empty());
}

}  // namespace
}  // namespace stax
