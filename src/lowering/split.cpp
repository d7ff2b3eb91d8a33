#include "lowering/split.h"

#include <fmt/core.h>

#include <algorithm>

namespace stax::lowering {
namespace {

int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// A divisor of `length` close to `count`, so that no chunk is short; `count` itself when there is none near
// it.
int64_t even_count(int64_t length, int64_t count) {
  for (int64_t distance = 0; distance <= count / 2; ++distance) {
    if (length % (count + distance) == 0) return count + distance;
    if (count - distance > 1 && length % (count - distance) == 0) return count - distance;
  }
  return count;
}

// CPU: enough chunks to give every core several, each of them long enough to pay for its partial result.
int64_t cpu_count(const Target& target, int64_t outputs, int64_t length) {
  constexpr int64_t kShortest = 4096;       // values of a chunk
  constexpr int64_t kChunksPerCore = 16;    // uneven cores still finish together
  constexpr int64_t kParallelWork = 65536;  // below, one core is faster
  if (outputs >= 4 * target.processors || outputs * length < kParallelWork) return 1;
  const int64_t wanted = ceil_divide(kChunksPerCore * target.processors, std::max<int64_t>(outputs, 1));
  return even_count(length, std::max<int64_t>(1, std::min(wanted, length / kShortest)));
}

// GPU: the specification's listing 9.4 splits 64 sums of 16384 in two. Where there are values for all
// threads and more, an instance that reads its chunk at once, without a loop, comes closest to the speed of
// memory.
int64_t cuda_count(const Target& target, int64_t outputs, int64_t length) {
  constexpr int64_t kModerate = 8192, kShort = 2048;  // values of a chunk
  constexpr int64_t kMostPartials = 1 << 16;          // of all results: the second level stays short
  const int64_t processors = target.processors, threads = processors * target.threads_each;
  if (length <= kModerate || outputs >= 2 * processors) return 1;
  if (outputs * length <= 32 * threads) return ceil_divide(length, kModerate);
  const int64_t wanted = ceil_divide(length, kShort);
  const int64_t most = std::max<int64_t>(2, kMostPartials / std::max<int64_t>(outputs, 1));
  return even_count(length, std::min(wanted, most));
}

}  // namespace

Split split_reduction(const Target& target, Expr outputs, Expr length, Chooser& chooser) {
  const auto n = chooser.sizes().hint(outputs), r = chooser.sizes().hint(length);
  const bool known = n && r;
  int64_t count = 1;
  if (known && *n > 0 && *r > 0) {
    count = target.kind == Target::Kind::cpu ? cpu_count(target, *n, *r) : cuda_count(target, *n, *r);
  }
  if (!outputs.is_constant() || !length.is_constant()) {
    const std::string what =
        count <= 1 ? "a reduction in one" : fmt::format("a reduction in {} parts", count);
    chooser.note(what, known ? fmt::format("{} results of {} values, by the hint ({} and {})", outputs.str(),
                                           length.str(), *n, *r)
                             : fmt::format("{} results of {} values, of which one has no hint", outputs.str(),
                                           length.str()));
  }
  if (count <= 1) return {1, length};
  return {Expr(count), ceil_div(length, count)};
}

}  // namespace stax::lowering
