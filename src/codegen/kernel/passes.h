// The passes over the reduction range of one cell: one point of the iteration range, one vector or one block
// of it. Internal to codegen/kernel.
#pragma once

#include <functional>
#include <map>

#include "codegen/kernel/emitter.h"
#include "codegen/kernel/prefix.h"
#include "symbolic/sizes.h"

namespace stax::codegen {

/// Rows that one set of accumulators adds up before the sum is put aside, where a lane sees every row.
inline constexpr int64_t kPartRows = 512;

/// Writes everything a cell computes, pass by pass.
class Passes {
 public:
  Passes(const schedule::Group& group, const FlatGroup& flat, const Layout& layout,
         const schedule::Target& target, Chooser& chooser, Emitter& emitter);

  /// Declares the arrays that cells or blocks use; once, before the loops around them.
  void prepare();
  /// A cell whose iteration values are registers: one point, or (vectors along an iteration dimension) one
  /// vector.
  void cell();
  /// Vectors [lo, hi) of the vector dimension, accumulators in arrays.
  void block(Expr lo, Expr hi);
  /// A store of pass `p` (-1: over no reduction) to whose alignment a vector loop may be cut; null: none.
  const loops::Inst* streamed(int32_t p) const;

 private:
  struct Accumulator {
    std::vector<Var> value;                                     // one for each copy of an unrolled loop
    Var position = -1;                                          // argmax, argmin, scan_max, scan_min
    Var outer = -1;                                             // sum of finished parts of a long sum
    int32_t array = -1, position_array = -1, outer_array = -1;  // the same, in a block
  };
  using Ids = std::vector<loops::ValueId>;

  // Reductions and scans, in registers
  void start(loops::ValueId id, int32_t copies);
  void update(loops::ValueId id, int32_t copy);
  Var reduction_position();
  void update_extremum(loops::ValueId id);
  void scan(loops::ValueId id);
  void finish(loops::ValueId id);
  void bind_results(loops::ValueId id, Var first, Var second);

  // Passes of a cell
  void pass(int32_t p);
  /// The innermost loop of a pass: ids_inside and `copies` for the points below the end of `prefix`.
  struct Rows {
    int32_t pass = 0, copies = 1;
    Ids ids, folds;
    std::optional<Prefix> prefix;
    Ids ids_inside;
  };
  void rows(const Rows& rows, Expr lo, Expr hi);
  void run_rows(const Rows& rows, const Ids& ids, Expr lo, Expr hi);
  void vector_rows(int32_t p, const Ids& ids, const Ids& folds, int32_t copies, Expr lo, Expr hi);
  bool folds_nothing(const Rows& rows) const;
  void body_once(const Ids& ids, const Ids& folds, int32_t copy);
  /// The loops over the reduction from `depth` on. Long sums are cut: `flush` puts a part aside, of which it
  /// is told where it starts in the loop that is cut (1 where that is not known), `reset` begins the next.
  void nest(size_t depth, const std::function<void(Expr, Expr)>& innermost, const Emitter::Body& reset,
            const std::function<void(Expr)>& flush);
  void plan_parts(bool long_sums, int64_t limit);
  Var sum_of_copies(const Accumulator& a, DType dtype);
  void emit(loops::ValueId id);

  // Passes of a block
  void block_pass(int32_t p, Expr lo, Expr hi);
  void start_block(const Ids& running, Expr lo, Expr hi);
  /// Loops over the accumulators of the long sums among `folds`: visit(accumulator, dtype, place in its
  /// arrays).
  void for_long_sums(const Ids& folds, Expr lo, Expr hi,
                     const std::function<void(const Accumulator&, DType, Expr)>& visit);
  /// Adds the sums of the parts at hand to those put aside, into array `to`.
  void add_parts(const Ids& folds, Expr lo, Expr hi, int32_t Accumulator::*to);
  void flush_parts(const Ids& folds, Expr lo, Expr hi, Expr start);
  void block_rows(const Ids& ids, const Ids& folds, Expr lo, Expr hi, int32_t rows);
  void block_iteration(int32_t done, Expr lo, Expr hi);
  void fill(int32_t array, loops::ValueId id, Expr lo, Expr hi);
  void emit_in_block(const Ids& ids, Expr lo);

  // Questions
  Ids roots(int32_t p, bool with_folds) const;
  Ids folds(int32_t p) const;  // reduce instructions of pass p
  Ids collect(const Ids& roots) const;
  bool is_leaf(loops::ValueId id) const;
  bool is_long_sum(loops::ValueId id) const;
  int32_t copies(const Ids& ids, const Ids& folds) const;
  void choose_kept();
  void choose_held();
  Expr row_index() const;
  Expr row_elements() const;
  void prefetch_next_cell();
  void prefetch_ahead(const std::function<Expr(const Expr&)>& distance, Symbol next);
  Symbol reduction_symbol(size_t depth) const {
    return {SymbolKind::reduction, layout_.reduction_order[depth]};
  }
  Expr reduction_extent(size_t depth) const {
    return group_.reduction_ranges[layout_.reduction_order[depth]];
  }

  const schedule::Group& group_;
  const FlatGroup& flat_;
  const Layout& layout_;
  const schedule::Target& target_;
  Chooser& choose_;
  Emitter& e_;
  Assumptions assumed_;
  std::map<loops::ValueId, Accumulator> accumulators_;
  std::map<loops::ValueId, int32_t>
      kept_;  // values over the reduction that later passes read from a row array
  std::map<loops::ValueId, int32_t> held_;  // iteration values of a block, by array
  std::vector<bool> ready_;                 // in its array, at this point of the kernel
  int32_t parts_at_ = -1;                   // reduction loop that is cut in parts for long sums
  int64_t part_ = 0;
  int64_t unrolled_ = 1;          // elements of the pass at hand that one step of its unrolled loop takes
  std::optional<Expr> runs_end_;  // where that loop ends, if that is known already
  bool prefetches_ = false;       // in the pass at hand
};

}  // namespace stax::codegen
