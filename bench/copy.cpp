// What this machine's memory gives, and how far two measurements of one thing differ: the copy against
// itself.
#include "bench/harness.h"

int main() {
  const bench::Machine machine = bench::this_machine();
  bench::print_machine(machine);
  constexpr size_t kBytes = size_t{512} << 20;
  bench::ParallelCopy copy(kBytes);
  const bench::Comparison same = bench::compare([&] { copy.run(); }, [&] { copy.run(); });
  bench::print_head("copy", "copy");
  bench::print_row("copy of 256 MiB", same);
  fmt::print("copy bandwidth: {:.1f} GB/s, bytes read plus written\n", kBytes / same.b * 1e-9);
}
