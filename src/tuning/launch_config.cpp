#include "tuning/launch_config.h"

#include <algorithm>

#include "loops/fold.h"

namespace stax::tuning {
namespace {

using codegen::ReductionHint;
using codegen::TileAxis;
using codegen::TileAxisKind;
using codegen::TileForm;
using codegen::TileKernel;

/// Elements of a block of a pointwise kernel, and of a persistent reduction.
constexpr int64_t kPointwise = 1024, kPersistent = 1024;
/// Elements that the threads of one warp take at once, of rows and of columns.
constexpr int64_t kOfWarp = 512;
/// Elements that a warp sorts: 8 a thread, so that every other step or so moves none between threads.
constexpr int64_t kSortedByWarp = 256;
/// Rows that are read once, by blocks of this length; those that fit one block; and rows that are read again,
/// of which only few may be under way, so that they are found in the cache.
constexpr int64_t kRow = 4096, kShortRow = 2048, kRowAgain = 16384;
/// Up to so many columns an instance takes few of them, and many rows at a time.
constexpr int64_t kFewColumns = 2048;
/// With fewer rows than this no more warps run than one row has.
constexpr int64_t kFewRows = 64;

/// Shared memory that blocks loaded ahead may take: every GPU from sm_80 on has as much.
constexpr int64_t kSharedBytes = int64_t{96} << 10;
/// Steps that hide the latency of memory (column sums on an H200: 6 are faster than 4, 8 no faster).
constexpr int64_t kMostStages = 6;

struct Wanted {
  int64_t z = 1, y = 1, x = 1, r0 = 1;
  int32_t warps = 4;
};

int64_t passes(const TileKernel& kernel) {
  return std::ranges::count(kernel.body, codegen::TileAction::loop, &codegen::TileStatement::action);
}

/// Of an element of each block that a step of a loop loads; of the loop with most of them.
int64_t loaded_bytes(const TileKernel& kernel) {
  int64_t most = 0;
  for (const codegen::TileStatement& loop : kernel.body) {
    if (loop.action != codegen::TileAction::loop) continue;
    int64_t bytes = 0;
    for (const codegen::TileStatement& s : loop.body)
      if (s.action == codegen::TileAction::load) bytes += itemsize(s.dtype);
    most = std::max(most, bytes);
  }
  return most;
}

/// For rows of `length` elements, one after another in memory.
Wanted of_rows(const TileKernel& kernel, int64_t length, int64_t rows) {
  Wanted wanted{.r0 = kRow};
  if (passes(kernel) > 1)
    wanted = {.r0 = kRowAgain, .warps = length >= kRowAgain / 2 ? 16 : 8};
  else if (rows <= kFewRows)
    wanted = {.r0 = kRowAgain, .warps = 16};
  else if (length <= kShortRow)
    wanted = {.r0 = kShortRow, .warps = 8};
  // Rows may be short where sizes change.
  wanted.x = std::clamp<int64_t>(kShortRow / std::min(wanted.r0, length), 1, 64);
  return wanted;
}

Wanted wanted_blocks(const TileKernel& kernel) {
  const auto hint = [&](TileAxisKind kind) {
    const TileAxis* axis = kernel.axis(kind);
    return axis == nullptr ? int64_t{1} : axis->size_hint;
  };
  const int64_t r0 = hint(TileAxisKind::r0);
  switch (kernel.form) {
    case TileForm::pointwise:
      if (kernel.axes.size() == 1) return {.x = kPointwise};
      if (kernel.axes.size() == 2) return {.y = 32, .x = 32};
      return {.z = 16, .y = 16, .x = 16};
    case TileForm::persistent: {
      // Of a form for shorter rows the block is shorter than the hint.
      const int64_t block = kernel.axis(TileAxisKind::r0)->block;
      const int64_t x = std::clamp<int64_t>(kPersistent / block, 1, 64);
      if (sorts(kernel)) {
        const int64_t rows = std::min(x, hint(TileAxisKind::x));
        return {.x = rows, .warps = static_cast<int32_t>(std::max<int64_t>(rows * block / kSortedByWarp, 1))};
      }
      return {.x = x, .warps = static_cast<int32_t>(std::clamp<int64_t>(x * block / kOfWarp, 1, 8))};
    }
    case TileForm::looped:
      if (kernel.hint == ReductionHint::outer && hint(TileAxisKind::x) <= kFewColumns)
        return {.x = 8, .r0 = 256, .warps = 8};
      if (kernel.hint != ReductionHint::inner) return {.x = 32, .r0 = 128, .warps = 8};
      return of_rows(kernel, r0, hint(TileAxisKind::x));
  }
  return {};
}

/// Threads of a kernel add up a row in an order that its block sizes and warps determine, and where a block
/// has several rows also by how these lie. So a block has one row, or one element of each row.
Wanted fixed_blocks(const TileKernel& kernel) {
  constexpr int64_t kUnknownRow = 1024, kOfThread = 8;
  const TileAxis& row = *kernel.axis(TileAxisKind::r0);
  if (kernel.hint != ReductionHint::inner && !sorts(kernel)) return {.x = 64, .warps = 2};
  const int64_t length = row.block > 0                  ? row.block
                         : !row.numel.is_constant()     ? kUnknownRow
                         : row.numel.value() > kRow / 2 ? kRow
                                                        : kShortRow;
  return {.r0 = length, .warps = static_cast<int32_t>(std::clamp<int64_t>(length / (32 * kOfThread), 1, 16))};
}

}  // namespace

bool sorts(const TileKernel& kernel) {
  return std::ranges::any_of(kernel.body, loops::needs_whole_row, &codegen::TileStatement::op);
}

int32_t stages_for(const TileKernel& kernel, const codegen::LaunchConfig& config) {
  const int64_t bytes = kernel.staged ? loaded_bytes(kernel) : 0;
  if (bytes == 0) return 1;
  int64_t elements = 1;
  for (const auto& [name, size] : config.blocks) elements *= size;
  const int64_t steps = kernel.axis(TileAxisKind::r0)->size_hint / config.blocks.back().second + 1;
  const int64_t fit = kSharedBytes / (bytes * elements) + 1;  // the step at hand is in registers
  return static_cast<int32_t>(std::clamp<int64_t>(std::min(steps, fit), 1, kMostStages));
}

codegen::LaunchConfig default_config(const TileKernel& kernel) {
  const Wanted wanted = kernel.batch_invariant ? fixed_blocks(kernel) : wanted_blocks(kernel);
  codegen::LaunchConfig config;
  config.warps = wanted.warps;
  for (const TileAxis& axis : kernel.axes) {
    if (axis.block > 0) continue;
    const int64_t sizes[] = {wanted.z, wanted.y, wanted.x, wanted.r0};
    const auto kind = static_cast<size_t>(axis.kind);
    const bool whole = kernel.batch_invariant && axis.kind == TileAxisKind::r0;
    config.blocks.emplace_back(codegen::facts_of(axis.kind).block,
                               whole ? sizes[kind] : std::min(sizes[kind], axis.size_hint));
  }
  config.stages = stages_for(kernel, config);
  return config;
}

}  // namespace stax::tuning
