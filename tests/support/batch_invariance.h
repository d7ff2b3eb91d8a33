// Networks whose rows do not depend on each other, and the comparison of what is computed of the same rows in
// batches of different sizes, bit by bit.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "stax/stax.h"

namespace stax {

/// Takes (rows, row...) and gives (rows, result...).
struct RowNet {
  std::string name;
  std::vector<int64_t> row;  // sizes of a row
  std::function<Tensor(const Tensor& x)> run;
};

/// Numbers of very different sizes: their sums depend on the order in which they are added.
inline Tensor noise(std::vector<int64_t> sizes, DType dtype, uint64_t seed, Device device = kCPU) {
  manual_seed(seed);
  const std::vector<SymInt> shape(sizes.begin(), sizes.end());
  return (randn(shape) * exp(randn(shape))).to(dtype).to(device);
}

/// Reductions and scans along rows of `width`.
inline std::vector<RowNet> row_reductions(int64_t width) {
  return {
      {"sum", {width}, [](const Tensor& x) { return x.sum(-1); }},
      {"mean", {width}, [](const Tensor& x) { return (x * x).mean(-1); }},
      {"var", {width}, [](const Tensor& x) { return x.var(-1); }},
      {"prod", {width}, [](const Tensor& x) { return (1 + x * 1e-3).prod(-1); }},
      {"logsumexp", {width}, [](const Tensor& x) { return logsumexp(x, -1); }},
      {"argmax", {width}, [](const Tensor& x) { return x.argmax(-1); }},
      {"softmax", {width}, [](const Tensor& x) { return softmax(x * 0.1, -1); }},
      {"log_softmax", {width}, [](const Tensor& x) { return log_softmax(x, -1); }},
      {"layer_norm", {width}, [](const Tensor& x) { return layer_norm(x, {x.size(-1)}); }},
      {"rms_norm", {width}, [](const Tensor& x) { return x * rsqrt((x * x).mean(-1, true) + 1e-6); }},
      {"cumsum", {width}, [](const Tensor& x) { return x.cumsum(-1); }},
      {"gelu and sum", {width}, [](const Tensor& x) { return (gelu(x) * sigmoid(x)).sum(-1); }},
  };
}

/// Products, convolutions, and what stands around them.
inline std::vector<RowNet> networks(DType dtype, Device device) {
  const auto weight = [&](std::vector<int64_t> sizes, uint64_t seed) {
    return noise(sizes, dtype, seed, device);
  };
  const Tensor g = weight({128}, 1), b = weight({128}, 2), w = weight({64, 128}, 3) * 0.1,
               c = weight({64}, 4);
  const Tensor up = weight({256, 128}, 5) * 0.1, down = weight({128, 256}, 6) * 0.1;
  const Tensor odd = weight({33, 127}, 7), q = weight({32, 32}, 8), image = weight({8, 3, 3, 3}, 9);
  const Tensor back = weight({8, 3, 2, 2}, 10), wide = weight({40, 3000}, 11);
  return {
      {"layer_norm, linear, softmax",
       {128},
       [=](const Tensor& x) { return softmax(linear(layer_norm(x, {128}, g, b), w, c), -1); }},
      {"two layers and a residual",
       {128},
       [=](const Tensor& x) { return x + linear(gelu(linear(layer_norm(x, {128}, g, b), up)), down); }},
      {"linear of long rows", {3000}, [=](const Tensor& x) { return linear(x, wide); }},
      {"addmm, odd sizes", {127}, [=](const Tensor& x) { return addmm(odd.sum(-1), x, odd.t()); }},
      {"columns", {127}, [=](const Tensor& x) { return odd.matmul(x.t()).t(); }},
      {"attention",
       {9, 32},
       [=](const Tensor& x) {
         const Tensor k = x.matmul(q);
         return softmax(x.matmul(k.transpose(1, 2)) * 0.1, -1).matmul(x);
       }},
      {"means of columns", {40, 24}, [=](const Tensor& x) { return (x * x).mean(1); }},
      {"conv2d", {3, 9, 11}, [=](const Tensor& x) { return relu(conv2d(x, image, {}, 1, 1)).sum(-1); }},
      {"norm of a convolution", {3, 9, 11}, [=](const Tensor& x) { return group_norm(conv2d(x, image), 8); }},
      {"conv_transpose2d", {8, 5, 5}, [=](const Tensor& x) { return conv_transpose2d(x, back, {}, 2); }},
  };
}

/// Where rows have several dimensions, where weights are computed with, and where rows are read in parts.
inline std::vector<RowNet> other_networks(DType dtype, Device device) {
  const auto weight = [&](std::vector<int64_t> sizes, uint64_t seed) {
    return noise(sizes, dtype, seed, device);
  };
  const Tensor w = weight({128}, 1), m = weight({64, 128}, 2), h = weight({128, 128}, 3), c = weight({16}, 4);
  const Tensor window = weight({6, 4, 3}, 5), each = weight({8, 1, 3, 3}, 6), gate = weight({256, 128}, 7);
  return {
      {"weights of norm 1", {128}, [=](const Tensor& x) { return linear(x, m / m.norm(2, {1}, true)); }},
      {"softmax of weights", {128}, [=](const Tensor& x) { return softmax(x * softmax(w, 0), -1); }},
      {"weights used twice",
       {128},
       [=](const Tensor& x) {
         const Tensor u = w * 1.37;
         return (x * u).sum(-1) + u.sum() + (x - u).var(-1);
       }},
      {"parts of rows",
       {128},
       [=](const Tensor& x) {
         return softmax(cat({x, x.flip({1}), x.slice(1, 3, 77)}, 1), 1);
       }},
      {"every other element",
       {256},
       [=](const Tensor& x) { return x.slice(1, 0, 256, 2).sum(-1) + x.slice(1, 1, 256, 3).mean(-1); }},
      {"gated",
       {128},
       [=](const Tensor& x) {
         const Tensor y = linear(x, gate);
         return (silu(y.slice(1, 0, 128)) * y.slice(1, 128, 256)).matmul(h);
       }},
      {"causal attention",
       {4, 10, 16},
       [=](const Tensor& x) { return scaled_dot_product_attention(x, x * 1.1, x + 1, {}, 0.0, true); }},
      {"heads",
       {12, 64},
       [=](const Tensor& x) {
         const Tensor q = x.reshape({x.size(0), 12, 4, 16}).transpose(1, 2);
         return softmax(q.matmul(q.transpose(2, 3)), -1)
             .matmul(q)
             .transpose(1, 2)
             .reshape({x.size(0), 12, 64});
       }},
      {"means of two dimensions",
       {9, 11, 5},
       [=](const Tensor& x) {
         return x.mean({1, 3}) + x.sum({2, 3}).mean({1}, true);
       }},
      {"variances of images",
       {9, 11, 5},
       [=](const Tensor& x) {
         return x.var({1, 2, 3});
       }},
      {"group_norm", {16, 6, 7}, [=](const Tensor& x) { return group_norm(x, 4, c, c); }},
      {"conv1d", {4, 37}, [=](const Tensor& x) { return conv1d(x, window).mean({-1}); }},
      {"convolution of each channel",
       {8, 9, 9},
       [=](const Tensor& x) { return conv2d(x, each, {}, 1, 1, 1, 8); }},
      {"pooling", {8, 12, 12}, [=](const Tensor& x) { return avg_pool2d(x, 3) + max_pool2d(x, 3); }},
      {"scans", {300}, [=](const Tensor& x) { return logcumsumexp(x, 1) + x.cumsum(1) / x.sum(1, true); }},
      {"scans of columns", {40, 12}, [=](const Tensor& x) { return x.cumsum(1).sum(-1); }},
      {"matrix and vector", {40, 128}, [=](const Tensor& x) { return x.matmul(w); }},
  };
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.cpu().contiguous(), y = b.cpu().contiguous();
  return x.dtype() == y.dtype() && x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), static_cast<size_t>(int64_t{x.numel()} * x.itemsize())) == 0;
}

/// The batches, "3 of 64" and the like, in which some row of x is another than in a batch of all. Batches are
/// slices of x: their rows start wherever they do.
inline std::vector<std::string> batches_that_differ(const RowNet& net, const Tensor& x,
                                                    const std::vector<int64_t>& batches,
                                                    const CompileOptions& options) {
  constexpr int64_t kParts = 3;  // at most, of each size
  const int64_t rows = x.size(0);
  auto compiled = compile(net.run, options);
  const Tensor all = compiled(x).cpu();
  std::vector<std::string> found;
  for (const int64_t batch : batches) {
    auto again = compile(net.run, options);  // a function keeps few programs
    const auto& some = options.dynamic ? compiled : again;
    bool same = true;
    for (int64_t part = 0; part < kParts && same; ++part) {
      const int64_t first = batch == 1 ? part * (rows / kParts) + part : part * batch;
      if (first + batch > rows) break;
      same = same_bits(some(x.slice(0, first, first + batch)), all.slice(0, first, first + batch));
    }
    if (!same) found.push_back(net.name + ": " + std::to_string(batch) + " of " + std::to_string(rows));
  }
  return found;
}

/// For each network, rows in batches of these sizes.
inline std::vector<std::string> batches_that_differ(const std::vector<RowNet>& nets, DType dtype,
                                                    int64_t rows, const std::vector<int64_t>& batches,
                                                    const CompileOptions& options, Device device = kCPU) {
  std::vector<std::string> found;
  std::vector<int64_t> last;
  Tensor x;
  for (const RowNet& net : nets) {
    std::vector<int64_t> sizes = {rows};
    sizes.insert(sizes.end(), net.row.begin(), net.row.end());
    if (sizes != last) x = noise(sizes, dtype, 42, device);
    last = sizes;
    const auto more = batches_that_differ(net, x, batches, options);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

}  // namespace stax
