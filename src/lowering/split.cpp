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

// The length of a scan's chunks; 0: it stays whole. Chunks read their values twice and pay where whole scans
// would leave processors idle, or few rows would take many steps. On an H200: 64 rows of 2^20 float32 take
// 0.40 ms whole and 0.20 ms in chunks of 1024, which an instance reads at once; with 1088 rows it would be
// 0.18 ms whole.
int64_t scan_chunk(const Target& target, int64_t outer, int64_t inner, int64_t length) {
  constexpr int64_t kSideBySide = 32;    // rows that an instance takes at a time where they lie side by side
  constexpr int64_t kBusy = 6;           // instances of a processor
  constexpr int64_t kMostTotals = 2048;  // of a row: one block scans them
  struct Lengths {
    int64_t whole, chunk;  // the longest whole scan, and the shortest chunk
  };
  const auto [whole, chunk] = inner > 1 ? Lengths{2048, 512} : Lengths{32768, 1024};
  if (target.kind == Target::Kind::cpu || length <= whole) return 0;
  if (outer * ceil_divide(inner, kSideBySide) >= kBusy * target.processors) return 0;
  return ceil_divide(std::max(chunk, ceil_divide(length, kMostTotals)), chunk) * chunk;
}

// At most `chunk`, and such that all chunks are full, if there is such a length near it: then what is
// computed from the results can become a part of the kernel that scans the chunks. Chunks start at a multiple
// of 16 bytes.
int64_t full_chunk(int64_t length, int64_t chunk) {
  constexpr int64_t kAligned = 8;
  for (int64_t c = chunk; c > chunk - chunk / 4; c -= kAligned)
    if (length % c == 0) return c;
  return chunk;
}

/// Records `choice` with the sizes that decided it, where any of them changes.
void note_choice(const std::string& choice, Expr rows, Expr length, Chooser& chooser) {
  if (rows.is_constant() && length.is_constant()) return;
  const auto n = chooser.sizes().hint(rows), values = chooser.sizes().hint(length);
  const std::string what = fmt::format("{} results of {} values", rows.str(), length.str());
  chooser.note(choice, n && values ? fmt::format("{}, by the hint ({} and {})", what, *n, *values)
                                   : fmt::format("{}, of which one has no hint", what));
}

}  // namespace

Split split_reduction(const Target& target, Expr outputs, Expr length, Chooser& chooser) {
  if (target.batch_invariant) return {1, length};
  const auto n = chooser.sizes().hint(outputs), r = chooser.sizes().hint(length);
  const bool known = n && r;
  int64_t count = 1;
  if (known && *n > 0 && *r > 0) {
    count = target.kind == Target::Kind::cpu ? cpu_count(target, *n, *r) : cuda_count(target, *n, *r);
  }
  note_choice(count <= 1 ? "a reduction in one" : fmt::format("a reduction in {} parts", count), outputs,
              length, chooser);
  if (count <= 1) return {1, length};
  return {Expr(count), ceil_div(length, count)};
}

Split split_scan(const Target& target, Expr outer, Expr inner, Expr length, Chooser& chooser) {
  if (target.batch_invariant) return {1, length};
  const auto rows = chooser.sizes().hint(outer), side = chooser.sizes().hint(inner),
             values = chooser.sizes().hint(length);
  int64_t chunk = 0;
  if (rows && side && values && *rows > 0 && *side > 0) chunk = scan_chunk(target, *rows, *side, *values);
  if (target.kind == Target::Kind::cuda)
    note_choice(chunk == 0 ? "a scan in one" : fmt::format("a scan in chunks of {}", chunk), outer * inner,
                length, chooser);
  if (chunk == 0) return {1, length};
  if (length.is_constant()) chunk = full_chunk(*values, chunk);
  return {ceil_div(length, chunk), chunk};
}

}  // namespace stax::lowering
