// What one eager operator costs: small ones in nanoseconds a call, a large one against a copy of its bytes.
#include "bench/harness.h"
#include "stax/stax.h"

namespace {

double nanoseconds(const std::function<void()>& f) {
  std::vector<double> samples;
  for (int round = 0; round < 15; ++round) {
    constexpr int64_t kCalls = 2000;
    samples.push_back(bench::time_calls(f, kCalls) / kCalls * 1e9);
  }
  return bench::median(samples);
}

}  // namespace

int main() {
  bench::print_machine(bench::this_machine());
  const stax::Tensor x = stax::full({4, 8}, 1.5), y = stax::full({4, 8}, 2.5), row = stax::full({8}, 0.5);
  fmt::print("{:<32} {:>8.0f} ns\n", "x + y, 4x8", nanoseconds([&] { (void)(x + y); }));
  fmt::print("{:<32} {:>8.0f} ns\n", "x * 2, 4x8", nanoseconds([&] { (void)(x * 2); }));
  fmt::print("{:<32} {:>8.0f} ns\n", "x + row, 4x8 and 8", nanoseconds([&] { (void)(x + row); }));
  fmt::print("{:<32} {:>8.0f} ns\n", "x.sum(-1), 4x8", nanoseconds([&] { (void)x.sum(-1); }));
  fmt::print("{:<32} {:>8.0f} ns\n", "x.permute({1, 0})", nanoseconds([&] { (void)x.permute({1, 0}); }));
  fmt::print("{:<32} {:>8.0f} ns\n", "x.view({8, 4})", nanoseconds([&] { (void)x.view({8, 4}); }));
  fmt::print("{:<32} {:>8.0f} ns\n", "x.t()", nanoseconds([&] { (void)x.t(); }));
  fmt::print("{:<32} {:>8.0f} ns\n", "x.add_(1), 4x8", nanoseconds([&] { (void)x.add_(1); }));
  double number = 0;
  fmt::print("{:<32} {:>8.0f} ns\n", "x * n, n changing", nanoseconds([&] { (void)(x * (number += 1)); }));
  const stax::Tensor long_row = stax::full({4096}, 1.0);
  int64_t length = 2;
  fmt::print("{:<32} {:>8.0f} ns\n", "x[:n] + 1, n changing", nanoseconds([&] {
               length = 2 + length % 4000;
               (void)(long_row.slice(0, 0, length) + 1);
             }));
  constexpr int64_t kElements = int64_t{1} << 26;
  const stax::Tensor large = stax::full({kElements}, 1.0);
  bench::ParallelCopy copy(kElements * 8);
  const bench::Comparison sum = bench::compare([&] { (void)(large + 1.0); }, [&] { copy.run(); });
  bench::print_head("eager", "copy");
  bench::print_row("large + 1.0, 256 MiB in and out", sum);
}
