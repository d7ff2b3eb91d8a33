// A GPU: what a call costs beside the driver's own launch, and the suite of programs whose time on the device
// bench/gpu_peers.py sets beside PyTorch's. `bench_gpu --json` prints the suite alone, for that.
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "bench/gpu_time.h"
#include "device/cuda_device.h"
#include "stax/stax.h"
#include "support/median.h"

namespace {

using stax::median;
using stax::Tensor;
namespace device = stax::device;

/// Microseconds that the host spends on one call, whose work the device does meanwhile.
double host_microseconds(const std::function<void()>& f) {
  constexpr int kCalls = 200;
  stax::cuda::synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int k = 0; k < kCalls; ++k) f();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  stax::cuda::synchronize();
  return time.count() / kCalls * 1e6;
}

struct Call {
  const char* name;
  std::function<void()> run;
  std::vector<double> microseconds;
};

/// In turns, since clocks change. The first is what the others are compared with.
void print_calls(std::vector<Call> calls) {
  for (int turn = 0; turn < 41; ++turn)
    for (Call& call : calls) call.microseconds.push_back(host_microseconds(call.run));
  for (const Call& call : calls) {
    std::vector<double> above;
    for (size_t turn = 0; turn < call.microseconds.size(); ++turn)
      above.push_back(call.microseconds[turn] - calls.front().microseconds[turn]);
    fmt::print("{:40} {:.2f} us, {:+.2f} us\n", call.name, median(call.microseconds), median(above));
  }
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
  const auto f = [](const Tensor& x, const Tensor& w) { return (relu(x + w) * 2).sum(-1); };
  auto fixed = stax::compile(f), dynamic = stax::compile(f, {.dynamic = true});
  const Tensor x = stax::randn({64, 128}).cuda(), w = stax::randn({64, 128}).cuda();
  const auto start = std::chrono::steady_clock::now();
  fixed(x, w).cpu();
  const std::chrono::duration<double> first = std::chrono::steady_clock::now() - start;
  dynamic(x, w);
  fmt::print("first result of a program of one kernel: {:.1f} ms\n", first.count() * 1e3);
  const auto launch = [&] {
    STAX_CUDA(cuLaunchKernel, nothing, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr);
  };
  print_calls({{"a launch by the driver alone", launch, {}},
               {"(relu(x+w)*2).sum(-1) on 64x128", [&] { fixed(x, w); }, {}},
               {"the same for all sizes", [&] { dynamic(x, w); }, {}},
               {"x + w, eagerly", [&] { x + w; }, {}}});
}

/// A program of the suite: its inputs are made when the row's turn comes, and go with it.
struct Row {
  const char* name;
  double bytes;  // every input read once, every result written once
  std::function<std::function<void()>()> prepare;
  double operations = 0;  // multiplications and additions, where they and not the bytes limit
};

/// Normally distributed numbers on the device.
Tensor numbers(stax::IntList sizes, stax::DType dtype = stax::kFloat32) {
  static const Tensor some = stax::randn({1 << 26}).cuda();
  stax::SymInt count = 1;
  for (size_t k = 0; k < sizes.size(); ++k) count *= sizes[k];
  const int64_t wanted = count;
  Tensor all = some;
  while (all.numel() < wanted) all = stax::cat({all, all});
  return all.slice(0, 0, wanted).view(sizes).to(dtype).clone();
}

/// A row that compiles `f` and calls it with tensors.
template <class F, class... Inputs>
std::function<void()> calls_with(const stax::CompileOptions& options, F f, Inputs... inputs) {
  return [compiled = stax::compile(f, options), inputs...] { compiled(inputs...); };
}
template <class F, class... Inputs>
std::function<void()> calls_of(F f, Inputs... inputs) {
  return calls_with({}, f, inputs...);
}

constexpr double kFloats = 4.0 * (1 << 26), kHalves = 2.0 * (1 << 26);

Tensor half_rows() {
  return numbers({16384, 4096}, stax::kBFloat16);
}
Tensor half_row() {
  return numbers({4096}, stax::kBFloat16);
}

std::vector<Row> float_rows() {
  const auto square = [](const Tensor& a, int64_t dim) { return (a * a).sum(dim); };
  return {
      {"copy, float32", 2 * kFloats,
       [] {
         const Tensor x = numbers({1 << 26}), copy = stax::empty_like(x);
         return [=] {
           device::copy_on_device(copy.data_ptr(), 0, x.data_ptr(), 0, static_cast<int64_t>(kFloats));
         };
       }},
      {"relu(x+y)*2, 2^26", 3 * kFloats,
       [] {
         return calls_of([](const Tensor& a, const Tensor& b) { return relu(a + b) * 2; }, numbers({1 << 26}),
                         numbers({1 << 26}));
       }},
      {"gelu(x), float32", 2 * kFloats,
       [] { return calls_of([](const Tensor& a) { return gelu(a); }, numbers({1 << 26})); }},
      {"x.t()+y, 8192x8192", 3 * kFloats,
       [] {
         return calls_of([](const Tensor& a, const Tensor& b) { return a.t() + b; }, numbers({8192, 8192}),
                         numbers({8192, 8192}));
       }},
      {"(x*x).sum(-1), 8192x8192", kFloats,
       [=] {
         return calls_of([=](const Tensor& a) { return square(a, -1); }, numbers({8192, 8192}));
       }},
      {"(x*x).sum(0), 8192x8192", kFloats,
       [=] {
         return calls_of([=](const Tensor& a) { return square(a, 0); }, numbers({8192, 8192}));
       }},
      {"(x*x).sum(), 2^26", kFloats,
       [] { return calls_of([](const Tensor& a) { return (a * a).sum(); }, numbers({1 << 26})); }},
      {"(x*x).sum(-1), 64x2^20", kFloats,
       [=] {
         return calls_of([=](const Tensor& a) { return square(a, -1); }, numbers({64, 1 << 20}));
       }},
      {"softmax(x,-1), 65536x1000", 2 * 4.0 * 65536 * 1000,
       [] {
         return calls_of([](const Tensor& a) { return softmax(a, -1); }, numbers({65536, 1000}));
       }},
      {"softmax(x,-1), 4096x50257", 2 * 4.0 * 4096 * 50257,
       [] {
         return calls_of([](const Tensor& a) { return softmax(a, -1); }, numbers({4096, 50257}));
       }},
      {"cross_entropy, 8192x50257", 4.0 * 8192 * 50257,
       [] {
         const Tensor targets = (numbers({8192}).abs() * 1000).to(stax::kInt64);
         return calls_of([](const Tensor& l, const Tensor& t) { return cross_entropy(l, t); },
                         numbers({8192, 50257}), targets);
       }},
  };
}

std::vector<Row> scan_rows() {
  const auto row = [](const char* name, double bytes, std::vector<int64_t> sizes, int64_t dim) {
    return Row{name, bytes,
               [=] { return calls_of([=](const Tensor& a) { return cumsum(a, dim); }, numbers(sizes)); }};
  };
  return {
      row("cumsum(x,0), 2^24", kFloats / 2, {1 << 24}, 0),
      row("cumsum(x,-1), 64x2^20", 2 * kFloats, {64, 1 << 20}, -1),
      row("cumsum(x,-1), 8192x8192", 2 * kFloats, {8192, 8192}, -1),
      row("cumsum(x,0), 8192x8192", 2 * kFloats, {8192, 8192}, 0),
  };
}

/// Values and their positions.
std::vector<Row> order_rows() {
  constexpr double kElement = 4 + 8;
  return {
      {"sort(x,-1), 16384x1000", 16384e3 * (4 + kElement),
       [] {
         return calls_of([](const Tensor& a) { return sort(a, -1); }, numbers({16384, 1000}));
       }},
      {"topk(x,50), 64x50257", 64 * (50257 * 4 + 50 * kElement),
       [] {
         return calls_of([](const Tensor& a) { return topk(a, 50); }, numbers({64, 50257}));
       }},
  };
}

std::vector<Row> half_precision_rows() {
  return {
      {"copy, bfloat16", 2 * kHalves,
       [] {
         const Tensor x = half_rows(), copy = stax::empty_like(x);
         return [=] {
           device::copy_on_device(copy.data_ptr(), 0, x.data_ptr(), 0, static_cast<int64_t>(kHalves));
         };
       }},
      {"gelu(x), bfloat16", 2 * kHalves,
       [] { return calls_of([](const Tensor& a) { return gelu(a); }, half_rows()); }},
      {"layer_norm(x,w,b), bfloat16", 2 * kHalves,
       [] {
         return calls_of([](const Tensor& a, const Tensor& v,
                            const Tensor& c) { return layer_norm(a, {a.size(-1)}, v, c); },
                         half_rows(), half_row(), half_row());
       }},
      {"rms_norm(x,w), bfloat16", 2 * kHalves,
       [] {
         return calls_of([](const Tensor& a, const Tensor& v) { return rms_norm(a, {a.size(-1)}, v); },
                         half_rows(), half_row());
       }},
      {"silu(g)*u, bfloat16", 3 * kHalves,
       [] {
         return calls_of([](const Tensor& g, const Tensor& u) { return silu(g) * u; }, half_rows(),
                         half_rows());
       }},
  };
}

std::vector<Row> product_rows() {
  constexpr double kCube = 2.0 * 4096 * 4096 * 4096, kWide = 2.0 * 8192 * 1024 * 4096;
  const auto half = [](int64_t rows, int64_t columns) { return numbers({rows, columns}, stax::kBFloat16); };
  const auto with_gelu = [half](const char* form) {
    return calls_of([form](const Tensor& a, const Tensor& b) { return gelu(matmul(a, b), form); },
                    half(8192, 1024), half(1024, 4096));
  };
  const auto product = [](const Tensor& a, const Tensor& b) { return matmul(a, b); };
  return {
      {"relu(a@b+c), 4096^3 bfloat16", 2.0 * 3 * 4096 * 4096,
       [=] {
         return calls_of(
             [](const Tensor& a, const Tensor& b, const Tensor& c) { return relu(matmul(a, b) + c); },
             half(4096, 4096), half(4096, 4096), half_row());
       },
       kCube},
      {"gelu(a@b), 8192x1024x4096", 2.0 * (8192 * 1024 + 1024 * 4096 + 8192 * 4096),
       [=] { return with_gelu("none"); }, kWide},
      {"gelu(a@b,tanh), 8192x1024x4096", 2.0 * (8192 * 1024 + 1024 * 4096 + 8192 * 4096),
       [=] { return with_gelu("tanh"); }, kWide},
      {"a@b, 64x65536x64 bfloat16", 2.0 * 2 * 64 * 65536,
       [=] { return calls_of(product, half(64, 65536), half(65536, 64)); }},
      {"a@b, 4096^3 TF32", 4.0 * 3 * 4096 * 4096,
       [=] {
         return calls_with({.matmul_precision = "high"}, product, numbers({4096, 4096}),
                           numbers({4096, 4096}));
       },
       kCube},
  };
}

/// One line a row whose name has `part` in it; `as_json` is for bench/gpu_peers.py.
void measure(const std::vector<Row>& rows, bool as_json, std::string_view part) {
  for (const Row& row : rows) {
    if (std::string_view(row.name).find(part) == std::string_view::npos) continue;
    const double ms = bench::device_milliseconds({row.prepare()})[0];
    if (as_json)
      fmt::print("{{\"row\": \"{}\", \"ms\": {:.5f}, \"bytes\": {:.0f}, \"operations\": {:.0f}}}\n", row.name,
                 ms, row.bytes, row.operations);
    else
      fmt::print("{:<30} {:8.4f} ms  {:6.3f} TB/s{}\n", row.name, ms, row.bytes / ms * 1e-9,
                 row.operations > 0 ? fmt::format("  {:4.0f} TFLOP/s", row.operations / ms * 1e-9) : "");
    std::fflush(stdout);
  }
}

}  // namespace

// bench_gpu [--json] [PART]: all rows, or those that have PART in their names.
int main(int argc, char** argv) {
  const bool as_json = argc > 1 && std::string_view(argv[1]) == "--json";
  const int next = as_json ? 2 : 1;
  const std::string_view part = argc > next ? argv[next] : "";
  if (!stax::cuda::is_available()) {
    fmt::print("not run: {}\n", stax::cuda::unavailable_reason());
    return 0;
  }
  if (!as_json) fmt::print("{}\n", device::cuda_properties(0).name);
  if (!as_json && part.empty()) calls();
  for (const auto& rows : {float_rows(), scan_rows(), order_rows(), half_precision_rows(), product_rows()})
    measure(rows, as_json, part);
}
