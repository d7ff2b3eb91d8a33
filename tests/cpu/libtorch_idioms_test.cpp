// Code as users of libtorch write it: it compiles with the namespace changed, and means the same.
#include <gtest/gtest.h>

#include <cmath>

#include "stax/stax.h"

namespace torch = stax;  // NOLINT: ported code

namespace {

namespace F = torch::nn::functional;
using torch::indexing::Ellipsis;
using torch::indexing::None;
using torch::indexing::Slice;

std::vector<double> values(const torch::Tensor& x) {
  const torch::Tensor flat = x.to(torch::kFloat64).contiguous();
  const double* data = flat.data_ptr<double>();
  return {data, data + static_cast<int64_t>(flat.numel())};
}
using Values = std::vector<double>;

torch::Tensor grid() {  // 0 ... 23
  return torch::arange(24, torch::kFloat32).reshape({2, 3, 4});
}

TEST(Libtorch, ReductionsTakeDimsAndBools) {
  const torch::Tensor x = torch::tensor({1.0f, 2.0f, 3.0f, 4.0f});
  EXPECT_FLOAT_EQ(x.var(true).item<float>(), 5.0f / 3);
  EXPECT_FLOAT_EQ(x.var(false).item<float>(), 1.25f);
  EXPECT_FLOAT_EQ(x.std(true).item<float>(), std::sqrt(5.0f / 3));
  EXPECT_FLOAT_EQ(torch::std(x, false).item<float>(), std::sqrt(1.25f));
  EXPECT_FLOAT_EQ(x.var(/*dim=*/0, /*unbiased=*/false, /*keepdim=*/true)[0].item<float>(), 1.25f);
  EXPECT_EQ(values(grid().sum({0, 1})), (Values{60, 66, 72, 78}));
  EXPECT_EQ(values(grid().sum(-1, /*keepdim=*/true).sizes() == torch::IntList({2, 3, 1}) ? x : x + 1),
            values(x));
  EXPECT_EQ(values(grid().mean({1, 2})), (Values{5.5, 17.5}));
  EXPECT_EQ(grid().sum(torch::kFloat64).item<double>(), 276);
  const auto [most, where] = grid()[0].max(1);
  EXPECT_EQ(values(most), (Values{3, 7, 11}));
  EXPECT_EQ(values(where), (Values{3, 3, 3}));
  EXPECT_EQ(values(std::get<1>(torch::min(grid()[0], 0))), (Values{0, 0, 0, 0}));
  EXPECT_TRUE((x > 0).all().item<bool>());
  EXPECT_EQ(x.argmax().item<int64_t>(), 3);
  EXPECT_EQ(values(x.norm(2, 0).pow(2).round()), Values{30});
}

TEST(Libtorch, IndicesAreWrittenAsInPython) {
  torch::Tensor x = grid();
  EXPECT_EQ(values(x.index({Slice(1, None), "...", None}).squeeze(-1).select(1, 0)),
            (Values{12, 13, 14, 15}));
  EXPECT_EQ(values(x.index({0, Slice(None, None, 2), -1})), (Values{3, 11}));
  EXPECT_EQ(values(x.index({Ellipsis, 0})), (Values{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(values(x.index({torch::tensor({1, 0}), 0, 0})), (Values{12, 0}));
  x.index_put_({Slice(), 0, Slice(None, 2)}, -1);
  EXPECT_EQ(values(x[1][0]), (Values{-1, -1, 14, 15}));
  x.index_put_({x < 0}, torch::tensor(7.0f));
  EXPECT_EQ(values(x[0][0]), (Values{7, 7, 2, 3}));
  EXPECT_EQ(values(x.slice(1, 2).narrow(2, 1, 2)), (Values{9, 10, 21, 22}));
}

TEST(Libtorch, ShapesFactoriesAndOptions) {
  const torch::Tensor x = torch::zeros({2, 3}, torch::TensorOptions().dtype(torch::kInt64));
  EXPECT_EQ(x.dtype(), torch::kInt64);
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_EQ(x.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(torch::cat({x, torch::ones_like(x)}, 1).size(1), 6);
  EXPECT_EQ(torch::stack({x, x}).dim(), 3);
  EXPECT_EQ(values(torch::full({2}, 1.5)), (Values{1.5, 1.5}));
  EXPECT_EQ(values(torch::linspace(0, 1, 3)), (Values{0, 0.5, 1}));
  EXPECT_EQ(values(torch::eye(2)), (Values{1, 0, 0, 1}));
  EXPECT_EQ(x.view({-1}).numel(), 6);
  EXPECT_EQ(x.unsqueeze(0).permute({2, 0, 1}).size(0), 3);
  EXPECT_EQ(x.transpose(0, 1).contiguous().size(0), 3);
  EXPECT_EQ(torch::randn({4, 5}).flatten().size(0), 20);
  EXPECT_EQ(torch::randint(0, 10, {3}).dtype(), torch::kInt64);
  EXPECT_EQ(torch::randperm(5).sum().item<int64_t>(), 10);
  EXPECT_EQ(values(torch::where(x == 0, 1, 2).sum()), Values{6});
  const std::vector<torch::Tensor> parts = grid().chunk(3, 1);
  EXPECT_EQ(parts.size(), 3u);
  auto [sorted, order] = torch::tensor({3, 1, 2}).sort(/*dim=*/0, /*descending=*/true);
  EXPECT_EQ(values(order), (Values{0, 2, 1}));
  auto [top, at] = torch::tensor({3, 1, 2}).topk(2);
  EXPECT_EQ(values(top), (Values{3, 2}));
  torch::Tensor y = torch::ones({2, 2});
  y.fill_diagonal_(5).mul_(2).add_(1);
  EXPECT_EQ(values(y), (Values{11, 3, 3, 11}));
  EXPECT_NEAR(torch::linalg_norm(y, "nuc").item<double>(), 22, 1e-5);  // eigenvalues 14 and 8
}

TEST(Libtorch, ConvolutionsAndPools) {
  const torch::Tensor line = torch::arange(6, torch::kFloat32).view({1, 1, 6}), pair = torch::ones({1, 1, 2});
  EXPECT_EQ(values(F::conv1d(line, pair)), (Values{1, 3, 5, 7, 9}));
  EXPECT_EQ(values(F::conv1d(line, pair, F::Conv1dFuncOptions().stride(2).bias(torch::ones({1})))),
            (Values{2, 6, 10}));
  EXPECT_EQ(values(F::conv1d(line, torch::ones({1, 1, 3}), F::Conv1dFuncOptions().padding(torch::kSame))),
            (Values{1, 3, 6, 9, 12, 9}));
  const torch::Tensor image = torch::arange(16, torch::kFloat32).view({1, 1, 4, 4});
  EXPECT_EQ(
      values(F::conv2d(image, torch::ones({1, 1, 2, 2}), F::Conv2dFuncOptions().stride({2, 2}).padding(0))),
      (Values{10, 18, 42, 50}));
  EXPECT_EQ(F::conv_transpose2d(image, torch::ones({1, 1, 2, 2}), F::ConvTranspose2dFuncOptions().stride(2))
                .size(3),
            8);
  EXPECT_EQ(values(F::max_pool2d(image, F::MaxPool2dFuncOptions(2))), (Values{5, 7, 13, 15}));
  EXPECT_EQ(values(F::max_pool2d(image, F::MaxPool2dFuncOptions({3, 3}).stride({1, 1}))),
            (Values{10, 11, 14, 15}));
  const auto [most, at] = F::max_pool2d_with_indices(image, F::MaxPool2dFuncOptions(4));
  EXPECT_EQ(values(at), Values{15});
  EXPECT_EQ(values(F::avg_pool2d(image, F::AvgPool2dFuncOptions(2).stride(2))),
            (Values{2.5, 4.5, 10.5, 12.5}));
  EXPECT_EQ(values(F::adaptive_avg_pool2d(image, F::AdaptiveAvgPool2dFuncOptions({1, 1}))), Values{7.5});
  EXPECT_EQ(values(F::adaptive_max_pool2d(image, F::AdaptiveMaxPool2dFuncOptions(2))),
            (Values{5, 7, 13, 15}));
  EXPECT_EQ(values(F::max_pool1d(line, F::MaxPool1dFuncOptions(3))), (Values{2, 5}));
  EXPECT_EQ(F::unfold(image, F::UnfoldFuncOptions({2, 2}).stride(2)).size(1), 4);
  EXPECT_EQ(values(F::pad(line, F::PadFuncOptions({1, 0}).value(9))), (Values{9, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(F::pad(line, F::PadFuncOptions({1, 1}).mode(torch::kReflect))),
            (Values{1, 0, 1, 2, 3, 4, 5, 4}));
  EXPECT_EQ(
      values(F::interpolate(line, F::InterpolateFuncOptions().scale_factor(std::vector<double>({0.5})))),
      (Values{0, 2, 4}));
  EXPECT_EQ(F::interpolate(image, F::InterpolateFuncOptions()
                                      .size(std::vector<int64_t>({8, 8}))
                                      .mode(torch::kBilinear)
                                      .align_corners(false))
                .size(3),
            8);
}

TEST(Libtorch, LayersAndLosses) {
  const torch::Tensor x = torch::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}});
  EXPECT_EQ(values(F::linear(x, torch::eye(2), torch::ones({2}))), (Values{2, 3, 4, 5}));
  EXPECT_EQ(values(F::embedding(torch::tensor({1, 0}), x)), (Values{3, 4, 1, 2}));
  EXPECT_EQ(values(F::one_hot(torch::tensor({1, 0}), 2)), (Values{0, 1, 1, 0}));
  EXPECT_NEAR(values(F::layer_norm(x, F::LayerNormFuncOptions({2}).eps(0)))[1], 1, 1e-6);
  const torch::Tensor mean = torch::tensor({1.0f, 2.0f}), one = torch::ones({2});
  EXPECT_NEAR(values(F::batch_norm(x, mean, one, F::BatchNormFuncOptions().eps(0)))[2], 2, 1e-6);
  EXPECT_NEAR(values(F::group_norm(x, F::GroupNormFuncOptions(1).eps(0)))[0], -1, 1e-6);
  EXPECT_NEAR(values(F::normalize(x, F::NormalizeFuncOptions().p(1).dim(1)))[1], 2.0 / 3, 1e-6);
  EXPECT_EQ(values(F::dropout(x, F::DropoutFuncOptions().p(0.5).training(false))), values(x));
  EXPECT_EQ(values(F::relu(-x).sum()), Values{0});
  EXPECT_NEAR(values(F::gelu(x))[0], 0.8413447, 1e-6);
  EXPECT_EQ(values(F::leaky_relu(-x, F::LeakyReLUFuncOptions().negative_slope(0.5)))[3], -2);
  EXPECT_NEAR(values(F::softmax(x, /*dim=*/1).sum(1))[0], 1, 1e-6);
  EXPECT_EQ(values(F::hardshrink(x, F::HardshrinkFuncOptions(1.5))), (Values{0, 2, 3, 4}));
  const torch::Tensor target = torch::tensor({1, 0});
  const double near = std::log1p(std::exp(-1.0)), far = std::log1p(std::exp(1.0));
  EXPECT_NEAR(F::cross_entropy(x, target).item<double>(), (near + far) / 2, 1e-6);
  EXPECT_NEAR(F::cross_entropy(x, target, F::CrossEntropyFuncOptions().ignore_index(0).reduction(torch::kSum))
                  .item<double>(),
              near, 1e-6);
  EXPECT_EQ(F::mse_loss(x, torch::zeros_like(x), F::MSELossFuncOptions(torch::kSum)).item<double>(), 30);
  EXPECT_EQ(values(F::l1_loss(x, torch::zeros_like(x), F::L1LossFuncOptions().reduction(torch::kNone))),
            values(x));
  EXPECT_EQ(F::nll_loss(-x, target).item<double>(), 2.5);
  EXPECT_EQ(F::smooth_l1_loss(x, torch::zeros_like(x)).item<double>(), 2);
  EXPECT_NEAR(F::binary_cross_entropy_with_logits(x, torch::ones_like(x)).item<double>(),
              (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(-2.0)) + std::log1p(std::exp(-3.0)) +
               std::log1p(std::exp(-4.0))) /
                  4,
              1e-6);
  EXPECT_NEAR(F::multi_margin_loss(x, target, F::MultiMarginLossFuncOptions().p(2)).item<double>(), 1, 1e-6);
  EXPECT_NEAR(F::cosine_similarity(x, x)[0].item<double>(), 1, 1e-6);
}

}  // namespace
