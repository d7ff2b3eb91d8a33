// Forms of kernels that every target chooses between, by what is known of the sizes.
#pragma once

#include "schedule/schedule.h"

namespace stax::schedule {

/// What becomes of values over a reduction that a later pass over the same row needs again.
enum class RowForm : uint8_t {
  held,        // a row of them stays close to the processor
  recomputed,  // each pass loads and computes anew
};

/// The form for rows of `bytes`: by the upper bound of their range where it is low enough, otherwise by the
/// hint. Both are right for rows of any length.
RowForm row_form(Expr bytes, const Target& target, Chooser& chooser);

/// How wide the integers are that a kernel counts its points and finds its elements with.
struct IndexWidth {
  int32_t bits = 64;
  /// The largest number of points and the largest offset of an element, one of them; nothing where no bound
  /// is known.
  std::optional<Expr> largest;
};

/// 32 bits where the ranges prove that they do, or where the kernel is only launched when they do; the target
/// may have one width only.
IndexWidth index_width(const loops::Program& program, const Group& group, const Target& target,
                       Chooser& chooser);

}  // namespace stax::schedule
