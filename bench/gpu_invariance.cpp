// What CompileOptions::batch_invariant costs on a GPU: time that the device spends with it over that without,
// in one run.
#include <fmt/core.h>

#include <cstdio>

#include "bench/gpu_time.h"
#include "device/cuda_device.h"
#include "stax/stax.h"

namespace {

using stax::Tensor;

/// Normally distributed numbers, the same for all lines of the table.
Tensor numbers(int64_t rows, int64_t columns, stax::DType dtype) {
  static const Tensor some = stax::randn({1 << 28}).cuda();
  return some.slice(0, 0, rows * columns).view({rows, columns}).to(dtype);
}

template <class F, class... Inputs>
void line(const char* what, F f, const Inputs&... inputs) {
  auto plain = stax::compile(f), invariant = stax::compile(f, {.batch_invariant = true});
  const std::vector<double> ms =
      bench::device_milliseconds({[&] { invariant(inputs...); }, [&] { plain(inputs...); }});
  fmt::print("| {} | {:.1f} | {:.1f} | {:.2f} |\n", what, ms[1] * 1e3, ms[0] * 1e3, ms[0] / ms[1]);
  std::fflush(stdout);
}

}  // namespace

int main() {
  using stax::kBFloat16, stax::kFloat32;
  if (!stax::cuda::is_available()) {
    fmt::print("not run: {}\n", stax::cuda::unavailable_reason());
    return 0;
  }
  fmt::print("{}\n\n| | us | batch-invariant, us | ratio |\n| --- | ---: | ---: | ---: |\n",
             stax::device::cuda_properties(0).name);
  const auto sums = [](const Tensor& a) { return a.sum(-1); };
  const auto softmax = [](const Tensor& a) { return stax::softmax(a, -1); };
  const auto norm = [](const Tensor& a, const Tensor& w) { return stax::layer_norm(a, {a.size(-1)}, w, w); };
  const auto linear = [](const Tensor& a, const Tensor& w) { return stax::linear(a, w); };
  const Tensor row = numbers(1, 4096, kBFloat16).view({4096});
  line("sums of rows, 8192 x 8192 float32", sums, numbers(8192, 8192, kFloat32));
  line("softmax, 65536 x 1000 float32", softmax, numbers(65536, 1000, kFloat32));
  line("softmax, 4096 x 50257 float32", softmax, numbers(4096, 50257, kFloat32));
  line("softmax, 1 x 50257 float32", softmax, numbers(1, 50257, kFloat32));
  line("layer_norm, 16384 x 4096 bfloat16", norm, numbers(16384, 4096, kBFloat16), row);
  line("layer_norm, 1 x 4096 bfloat16", norm, numbers(1, 4096, kBFloat16), row);
  const Tensor weight = numbers(4096, 4096, kBFloat16);
  for (const int64_t rows : {1, 64, 4096})
    line(fmt::format("linear, {} x 4096 x 4096 bfloat16", rows).c_str(), linear,
         numbers(rows, 4096, kBFloat16), weight);
  line("linear, 4096 x 4096 x 4096 float32", linear, numbers(4096, 4096, kFloat32), weight.to(kFloat32));
  line("linear, 4096 x 1001 x 1001 bfloat16", linear, numbers(4096, 1001, kBFloat16),
       numbers(1001, 1001, kBFloat16));
}
