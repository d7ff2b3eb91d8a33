#include "conformance/row_values.h"

#include <cmath>

#include "stax/factories.h"

namespace stax {
namespace {

using Value = Argument<Tensor>;
using List = Value::Tensors;
using Ints = std::vector<Expr>;

Tensor f(std::vector<double> values, std::vector<int64_t> sizes) {
  return detail::tensor_of(values, std::move(sizes), kFloat32);
}
Tensor f(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return f(std::move(values), {n});
}
Tensor i(std::vector<int64_t> values, std::vector<int64_t> sizes) {
  return detail::tensor_of(values, std::move(sizes), kInt64);
}
Tensor i(std::vector<int64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return i(std::move(values), {n});
}
Value none() {
  return {};
}

std::vector<RowValues> pointwise_values() {
  const Tensor a = f({-2, 3}), b = f({5, 2});
  return {{"absolute", {a}, {{2, 3}}},
          {"negative", {a}, {{2, -3}}},
          {"subtract.Tensor", {a, b}, {{-12, -1}}, {{"alpha", 2}}},
          {"multiply.Tensor", {a, b}, {{-10, 6}}},
          {"divide.Tensor", {a, b}, {{-0.4, 1.5}}},
          {"pow.Tensor_Scalar", {a, 3}, {{-8, 27}}},
          {"pow.Scalar", {2, a}, {{0.25, 8}}},
          {"arctan2", {f({1, -1}), f({1, 1})}, {{0.7853981633974483, -0.7853981633974483}}},
          {"clamp", {f({-2, 0.5, 3}), -1, 1.5}, {{-1, 0.5, 1.5}}},
          {"clip", {f({-2, 0.5, 3}), -1, 1.5}, {{-1, 0.5, 1.5}}},
          {"clip.Tensor", {a, none(), f({-5, 2.5})}, {{-5, 2.5}}},
          {"greater.Tensor", {a, f({-2, 2})}, {{0, 1}}},
          {"greater_equal.Tensor", {a, f({-2, 2})}, {{1, 1}}},
          {"less.Tensor", {a, f({-2, 4})}, {{0, 1}}},
          {"less_equal.Tensor", {a, f({-2, 4})}, {{1, 1}}},
          {"not_equal.Tensor", {a, f({-2, 4})}, {{0, 1}}},
          {"detach_copy", {a}, {{-2, 3}}},
          {"type_as", {f({-2.5, 3.5}), i({0})}, {{-2, 3}}},
          {"log_sigmoid", {f({0, -100})}, {{-0.6931471805599453, -100}}},
          {"frexp.Tensor", {f({0, -3, 0.75, 0x1p-130})}, {{0, -0.75, 0.75, 0.5}, {0, 2, 0, -129}}},
          {"fill.Tensor", {a, f({7}, {})}, {{7, 7}}}};
}

std::vector<RowValues> shape_values() {
  const Tensor m = f({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor pixels = detail::tensor_of(std::vector<int64_t>{0, 100}, {1, 1, 1, 2}, kUInt8);
  return {{"swapaxes", {m, 0, 1}, {{0, 3, 1, 4, 2, 5}}},
          {"fill_diagonal", {m, 9}, {{9, 1, 2, 3, 9, 5}}},
          {"interpolate", {pixels, Ints{1, 4}}, {{0, 25, 75, 100}}, {{"mode", std::string("bilinear")}}},
          {"swapdims", {m, -1, 0}, {{0, 3, 1, 4, 2, 5}}},
          {"moveaxis.intlist", {m, Ints{0}, Ints{1}}, {{0, 3, 1, 4, 2, 5}}},
          {"view.dtype", {f({1, -2}), kInt32}, {{1065353216, -1073741824}}},
          {"hsplit.array", {m, Ints{1}}, {{0, 3}, {1, 2, 4, 5}}},
          {"concat", {List{f({1}), f({2, 3})}, 0}, {{1, 2, 3}}},
          {"atleast_1d.Sequence", {List{f({4}, {})}}, {{4}}},
          {"atleast_2d.Sequence", {List{f({4, 5})}}, {{4, 5}}},
          {"atleast_3d.Sequence", {List{f({4, 5})}}, {{4, 5}}},
          {"slice_scatter", {m, f({8, 9}, {2, 1}), 1, 1, 2}, {{0, 8, 2, 3, 9, 5}}},
          {"squeeze_copy.dims", {f({1, 2}, {1, 2, 1}), Ints{0, 2}}, {{1, 2}}},
          {"arange.start", {2, 5}, {{2, 3, 4}}},
          {"repeat_interleave.Tensor", {i({1, 0, 2})}, {{0, 2, 2}}},
          {"repeat_interleave.self_Tensor", {m, i({2, 1}), 0}, {{0, 1, 2, 0, 1, 2, 3, 4, 5}}}};
}

std::vector<RowValues> index_values() {
  const Tensor m = f({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor at = i({2, 0}, {2, 1});
  return {{"one_hot.infer", {i({2, 0})}, {{0, 0, 1, 1, 0, 0}}},
          {"isin.Tensor_Scalar", {i({1, 2, 3}), 2}, {{0, 1, 0}}},
          {"isin.Scalar_Tensor", {4, i({1, 2, 3})}, {{0}}},
          {"scatter.value", {m, 1, at, 9}, {{0, 1, 9, 9, 4, 5}}},
          {"scatter.value_reduce", {m, 1, at, 10}, {{0, 1, 12, 13, 4, 5}}, {{"reduce", std::string("add")}}},
          // Rows of a norm above 1 are scaled to it, the others stay.
          {"embedding.renorm", {f({3, 4, 0.3, 0.4}, {2, 2}), i({1, 0}), 1.0}, {{0.3, 0.4, 0.6, 0.8}}},
          {"nonzero.as_tuple", {m}, {{0, 0, 1, 1, 1}, {1, 2, 0, 1, 2}}, {{"as_tuple", true}}},
          {"median.dim", {f({5, 1, 3, 2}, {2, 2}), 1}, {{1, 2}, {1, 1}}},
          {"nanmedian.dim", {f({5, NAN, 3, 2}, {2, 2}), 1}, {{5, 2}, {0, 1}}},
          {"quantile", {f({1, 2, 3, 4}), f({0.5, 0.25})}, {{2.5, 1.75}}},
          {"nanquantile", {f({1, NAN, 3, 4}), f({0.5, 1})}, {{3, 4}}},
          // By Bessel's correction: the variance of 0, 1, 2 is 1.
          {"std_mean.correction", {m, Ints{1}}, {{1, 1}, {1, 4}}}};
}

// The singular values of [[3, 0], [4, 5]] are the roots of 45 and 5.
std::vector<RowValues> norm_values() {
  const Tensor a = f({3, 0, 4, 5}, {2, 2}), v = f({3, -4});
  const double root45 = std::sqrt(45.0), root5 = std::sqrt(5.0);
  return {{"linalg_vector_norm", {v, 1}, {{7}}},
          {"linalg_matrix_norm", {a, 1}, {{7}}},
          {"linalg_matrix_norm", {a, -1}, {{5}}},
          {"linalg_matrix_norm", {a, HUGE_VAL}, {{9}}},
          {"linalg_matrix_norm", {a, -HUGE_VAL}, {{3}}},
          {"linalg_matrix_norm", {a, 2}, {{root45}}},
          {"linalg_matrix_norm", {a, -2, Ints{1, 0}, true}, {{root5}}},
          {"linalg_matrix_norm.str_ord", {a, std::string("nuc")}, {{root45 + root5}}},
          {"linalg_matrix_norm.str_ord", {a}, {{std::sqrt(50.0)}}},
          {"linalg_norm", {v}, {{5}}},
          {"linalg_norm", {a, 2}, {{root45}}},
          {"linalg_norm.ord_str", {a, std::string("nuc")}, {{root45 + root5}}},
          {"linalg_svdvals", {a}, {{root45, root5}}},
          {"renorm", {f({3, 4, 0.3, 0.4}, {2, 2}), 2, 0, 1}, {{0.6, 0.8, 0.3, 0.4}}}};
}

// One sample of four classes, by hand; the second is PyTorch's own example.
std::vector<RowValues> margin_values() {
  const Tensor x = f({0.1, 0.2, 0.4, 0.8}, {1, 4});
  return {{"multi_margin_loss", {x, i({3})}, {{0.325}}},
          {"multi_margin_loss", {x, i({3}), 2, 1, f({1, 1, 1, 2})}, {{0.305}}},
          {"multilabel_margin_loss", {x, i({3, 0, -1, 1}, {1, 4})}, {{0.85}}}};
}

std::vector<RowValues> product_values() {
  const Tensor a = f({1, 2, 3, 4}, {2, 2}), one = f({1, 0, 0, 1}, {2, 2}), turn = f({0, 1, 1, 0}, {2, 2});
  return {{"linalg_matmul", {a, turn}, {{2, 1, 4, 3}}},
          {"ger", {f({1, 2}), f({3, 4})}, {{3, 4, 6, 8}}},
          {"chain_matmul", {List{a, one, turn}}, {{2, 1, 4, 3}}},
          {"linalg_multi_dot", {List{turn, a, turn}}, {{4, 3, 2, 1}}},
          {"linalg_cross", {f({1, 0, 0}), f({0, 1, 0})}, {{0, 0, 1}}},
          {"einsum.tensors", {List{a, turn}, std::string("ij,jk->ik")}, {{2, 1, 4, 3}}},
          {"tensordot.count", {a, turn, 2}, {{5}}}};
}

std::vector<RowValues> window_values() {
  const Tensor line = f({1, 3, 2, 4}, {1, 1, 4});
  const Tensor square = f({1, 3, 2, 4}, {1, 1, 2, 2}), cube = f({1, 3, 2, 4, 8, 7, 6, 5}, {1, 1, 2, 2, 2});
  return {{"max_pool1d", {line, Ints{2}}, {{3, 4}}},
          {"max_pool2d", {square, Ints{2, 2}}, {{4}}},
          {"max_pool3d", {cube, Ints{2, 2, 2}}, {{8}}},
          {"lp_pool1d", {f({3, 4, 6, 8}, {1, 1, 4}), 2.0, Ints{2}}, {{5, 10}}},
          {"lp_pool2d", {f({1, 1, 1, 1}, {1, 1, 2, 2}), 2.0, Ints{2, 2}}, {{2}}},
          {"lp_pool3d", {cube, 1.0, Ints{2, 2, 2}}, {{36}}},
          // A kernel of one element scales; its stride spreads the elements out.
          {"conv_transpose3d",
           {f({1, 2}, {1, 1, 1, 1, 2}), f({3}, {1, 1, 1, 1, 1}), none(), Ints{1, 1, 2}},
           {{3, 0, 6}}},
          {"upsample_nearest.number", {f({1, 2}, {1, 1, 2}), 4}, {{1, 1, 2, 2}}}};
}

}  // namespace

std::vector<RowValues> row_values() {
  std::vector<RowValues> all;
  for (const auto part : {pointwise_values, shape_values, index_values, norm_values, margin_values,
                          product_values, window_values}) {
    for (RowValues& row : part()) all.push_back(std::move(row));
  }
  return all;
}

}  // namespace stax
