// A first look at a GPU: what a call costs beside the driver's own launch, and the bandwidth of a few kernels
// beside that of a copy.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "device/cuda_device.h"
#include "stax/stax.h"

namespace {

using stax::Tensor;
namespace device = stax::device;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Microseconds that the host spends on one call of `f`, whose work the device does meanwhile.
double host_microseconds(const std::function<void()>& f) {
  constexpr int kCalls = 200, kBatches = 41;
  std::vector<double> all;
  for (int batch = 0; batch < kBatches; ++batch) {
    stax::cuda::synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < kCalls; ++k) f();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    all.push_back(time.count() / kCalls * 1e6);
  }
  stax::cuda::synchronize();
  return median(all);
}

/// Milliseconds that the device spends on one call, from a cold L2 cache. Writing over it takes the device
/// longer than the host needs for the call, so that the launch is no part of the figure.
double device_milliseconds(const std::function<void()>& f) {
  static const Tensor flush = stax::empty({1 << 28}, stax::TensorOptions(stax::kUInt8).device(stax::kCUDA));
  std::vector<double> all;
  f();
  for (int k = 0; k < 30; ++k) {
    stax::cuda::Event start(true), end(true);
    STAX_CUDA(cuMemsetD8Async, reinterpret_cast<device::CudaAddress>(flush.data_ptr()), 0, size_t{1} << 28,
              device::current_cuda_stream(0).handle);
    start.record();
    f();
    end.record();
    end.synchronize();
    all.push_back(start.elapsed_time(end));
  }
  return median(all);
}

constexpr const char* kNothing = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d, .param .u32 e, .param .u64 f,
                        .param .u64 g) { ret; }
)";

void calls() {
  device::CudaModule module = nullptr;
  device::CudaFunction nothing = nullptr;
  device::use_cuda_device(0);
  STAX_CUDA(cuModuleLoadData, &module, kNothing);
  STAX_CUDA(cuModuleGetFunction, &nothing, module, "nothing");
  uint64_t values[7] = {};
  void* arguments[7];
  for (int k = 0; k < 7; ++k) arguments[k] = &values[k];
  const double bare = host_microseconds(
      [&] { STAX_CUDA(cuLaunchKernel, nothing, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr); });
  const auto f = [](const Tensor& x, const Tensor& w) { return (relu(x + w) * 2).sum(-1); };
  auto fixed = stax::compile(f), dynamic = stax::compile(f, {.dynamic = true});
  const Tensor x = stax::randn({64, 128}).cuda(), w = stax::randn({64, 128}).cuda();
  const auto start = std::chrono::steady_clock::now();
  fixed(x, w).cpu();
  const std::chrono::duration<double> first = std::chrono::steady_clock::now() - start;
  dynamic(x, w);
  fmt::print("first result of a program of one kernel: {:.1f} ms\n", first.count() * 1e3);
  fmt::print("a launch by the driver alone:            {:.2f} us\n", bare);
  fmt::print("(relu(x+w)*2).sum(-1) on 64x128:         {:.2f} us\n", host_microseconds([&] { fixed(x, w); }));
  fmt::print("the same for all sizes:                  {:.2f} us\n",
             host_microseconds([&] { dynamic(x, w); }));
  fmt::print("x + w, eagerly:                          {:.2f} us\n", host_microseconds([&] { x + w; }));
}

void row(const char* name, double bytes, const std::function<void()>& f) {
  const double ms = device_milliseconds(f);
  fmt::print("{:<28} {:8.4f} ms  {:6.3f} TB/s\n", name, ms, bytes / ms * 1e-9);
}

void bandwidth() {
  const auto options = stax::TensorOptions(stax::kFloat32).device(stax::kCUDA);
  const Tensor x = stax::ones({1 << 26}, options), y = stax::ones({1 << 26}, options);
  const double big = 4.0 * (1 << 26);
  const Tensor copy = stax::empty({1 << 26}, options);
  row("copy", 2 * big,
      [&] { device::copy_on_device(copy.data_ptr(), 0, x.data_ptr(), 0, static_cast<int64_t>(big)); });
  auto add = stax::compile([](const Tensor& a, const Tensor& b) { return relu(a + b) * 2; });
  row("relu(x+y)*2, 2^26", 3 * big, [&] { add(x, y); });
  const Tensor m = x.view({8192, 8192});
  auto rows = stax::compile([](const Tensor& a) { return (a * a).sum(-1); });
  row("(x*x).sum(-1), 8192x8192", big, [&] { rows(m); });
  auto columns = stax::compile([](const Tensor& a) { return (a * a).sum(0); });
  row("(x*x).sum(0), 8192x8192", big, [&] { columns(m); });
  auto all = stax::compile([](const Tensor& a) { return (a * a).sum(); });
  row("(x*x).sum(), 2^26", big, [&] { all(x); });
  auto transposed = stax::compile([](const Tensor& a, const Tensor& b) { return a.t() + b; });
  row("x.t()+y, 8192x8192", 3 * big, [&] { transposed(m, y.view({8192, 8192})); });
  const Tensor s = x.slice(0, 0, 65536 * 1000).view({65536, 1000});
  auto soft = stax::compile([](const Tensor& a) { return softmax(a, -1); });
  row("softmax(x,-1), 65536x1000", 2 * 4.0 * 65536 * 1000, [&] { soft(s); });
  const Tensor wide = stax::ones({4096, 50257}, options);
  row("softmax(x,-1), 4096x50257", 2 * 4.0 * 4096 * 50257, [&] { soft(wide); });
  const Tensor long_rows = x.view({64, 1 << 20});
  row("(x*x).sum(-1), 64x2^20", big, [&] { rows(long_rows); });
}

void half_precision() {
  const auto options = stax::TensorOptions(stax::kBFloat16).device(stax::kCUDA);
  const Tensor x = stax::ones({16384, 4096}, options), y = stax::ones({16384, 4096}, options);
  const Tensor w = stax::ones({4096}, options), b = stax::ones({4096}, options);
  const double bytes = 2.0 * 16384 * 4096;
  auto activation = stax::compile([](const Tensor& a) { return gelu(a); });
  row("gelu(x), bfloat16", 2 * bytes, [&] { activation(x); });
  auto norm = stax::compile(
      [](const Tensor& a, const Tensor& v, const Tensor& c) { return layer_norm(a, {a.size(-1)}, v, c); });
  row("layer_norm(x,w,b), bfloat16", 2 * bytes, [&] { norm(x, w, b); });
  auto gated = stax::compile([](const Tensor& g, const Tensor& u) { return silu(g) * u; });
  row("silu(g)*u, bfloat16", 3 * bytes, [&] { gated(x, y); });
  auto loss = stax::compile([](const Tensor& l, const Tensor& t) { return cross_entropy(l, t); });
  const Tensor logits = stax::ones({8192, 50257}, stax::TensorOptions(stax::kFloat32).device(stax::kCUDA));
  const Tensor targets = stax::zeros({8192}, stax::TensorOptions(stax::kInt64).device(stax::kCUDA));
  row("cross_entropy, 8192x50257", 4.0 * 8192 * 50257, [&] { loss(logits, targets); });
}

}  // namespace

int main() {
  if (!stax::cuda::is_available()) {
    fmt::print("not run: {}\n", stax::cuda::unavailable_reason());
    return 0;
  }
  fmt::print("{}\n", device::cuda_properties(0).name);
  calls();
  bandwidth();
  half_precision();
}
