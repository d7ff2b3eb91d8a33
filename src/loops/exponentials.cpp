#include "loops/exponentials.h"

#include <algorithm>
#include <limits>
#include <set>

namespace stax::loops {
namespace {

bool is_constant(const Inst& inst, double value) {
  return inst.op == OpCode::constant && is_floating_point(inst.dtype) && inst.constant.as_double() == value;
}

bool contains(const std::vector<BufferId>& list, BufferId buffer) {
  return std::ranges::find(list, buffer) != list.end();
}

/// A node that reduces one operand and stores the result: reduce `op` over `operand`.
struct Fold {
  size_t node = 0;
  ValueId reduce = -1, operand = -1;
  BufferId buffer = -1;  // that it is stored into, at `index`
  Expr index;
};

std::optional<Fold> fold_of(const Program& program, size_t node, OpCode op) {
  const Node& n = program.nodes[node];
  if (n.kind != NodeKind::loops || n.reduction_ranges.empty()) return std::nullopt;
  Fold fold{.node = node};
  for (size_t i = 0; i < n.body.size(); ++i) {
    const Inst& inst = n.body[i];
    if (is_reduction(inst.op)) {
      if (inst.op != op || fold.reduce >= 0) return std::nullopt;
      fold.reduce = static_cast<ValueId>(i);
      fold.operand = inst.args[0];
    }
    if (!is_store(inst.op)) continue;
    const bool plain = inst.op == OpCode::store && inst.indirect.empty() && inst.args.size() == 1;
    if (!plain || fold.buffer >= 0) return std::nullopt;
    fold.buffer = inst.buffer;
    fold.index = inst.index;
  }
  return fold.reduce >= 0 && fold.buffer >= 0 ? std::optional(fold) : std::nullopt;
}

/// Maxima of chunks, and what the sums of exponentials are stored into that are found with them.
struct Maxima : Fold {
  std::optional<Fold> sums;
};

/// The sums of one program whose chunks are found with those of a maximum.
class SplitSoftmax {
 public:
  explicit SplitSoftmax(Program& program) : program_(program) {}

  void run() {
    for (size_t n = 0; n < program_.nodes.size(); ++n)
      if (const auto fold = fold_of(program_, n, OpCode::reduce_max))
        maxima_.push_back({*fold, std::nullopt});
    if (maxima_.empty()) return;
    std::set<size_t> done;
    for (size_t n = 0; n < program_.nodes.size(); ++n) {
      const auto sums = fold_of(program_, n, OpCode::reduce_sum);
      if (sums && merge(*sums)) done.insert(n);
    }
    size_t n = 0;
    std::erase_if(program_.nodes, [&](const Node&) { return done.contains(n++); });
  }

 private:
  /// The maximum that the exponents of a chunk's sum are taken from.
  struct Shift {
    Inst load;  // of the maximum of the row, without mask
    bool guarded = false;
  };

  /// True if the node of `sums`, of exponentials in chunks, is needed no longer.
  bool merge(const Fold& sums) {
    for (Maxima& maxima : maxima_) {
      if (maxima.node >= sums.node || !same_space(maxima.node, sums.node)) continue;
      const auto shift = shift_of(maxima, sums);
      if (!shift || !is_maximum_of(maxima, shift->load, sums.node)) continue;
      const std::vector<size_t> readers = readers_of(sums);
      if (readers.empty() || !undisturbed(maxima, *shift, sums.node, readers.back())) continue;
      if (!maxima.sums) find_with(maxima, sums);
      for (const size_t reader : readers) read_both(reader, maxima, sums, *shift);
      return true;
    }
    return false;
  }

  bool same_space(size_t a, size_t b) const {
    const Node &x = program_.nodes[a], &y = program_.nodes[b];
    return !x.ranges.empty() && x.ranges == y.ranges && x.reduction_ranges == y.reduction_ranges;
  }

  /// Where the sum is one of exp(x - m) over the very x of the maximum: m. Past the end of a row both fold
  /// what changes nothing.
  std::optional<Shift> shift_of(const Fold& maxima, const Fold& sums) const {
    BodyBuilder both;  // in which equal values are one
    const auto copy = [&](const Fold& fold) {
      const ValueId root = fold.operand;
      return copy_values(program_.nodes[fold.node].body, {&root, 1}, both,
                         [](Symbol) { return std::nullopt; })[0];
    };
    ValueId x = copy(maxima), term = copy(sums), inside = -1;
    const Body& body = both.body();
    if (body[term].op == OpCode::where && body[x].op == OpCode::where) {
      inside = body[x].args[0];
      const bool ends = body[term].args[0] == inside && is_constant(body[body[term].args[2]], 0) &&
                        is_constant(body[body[x].args[2]], -std::numeric_limits<double>::infinity());
      if (!ends) return std::nullopt;
      x = body[x].args[1];
      term = body[term].args[1];
    }
    const auto exponential = shifted_exponential(body, term);
    if (!exponential || exponential->x != x) return std::nullopt;
    Inst load = body[exponential->maximum];
    const bool masked_alike = load.args.empty() || (load.args.size() == 1 && load.args[0] == inside);
    if (load.op != OpCode::load || !load.indirect.empty() || !masked_alike) return std::nullopt;
    load.args.clear();
    return Shift{load, exponential->guarded};
  }

  /// The index of a chunk's value where the chunks are what is reduced.
  static Expr over_chunks(Expr index, const Node& chunks) {
    const auto last = static_cast<int32_t>(chunks.ranges.size()) - 1;
    return substitute(index, [&](Symbol s) -> std::optional<Expr> {
      if (s.kind != SymbolKind::index || s.number != last) return std::nullopt;
      return Expr(Symbol{SymbolKind::reduction, 0});
    });
  }

  /// Whether `node` reduces all chunks of `fold`, and nothing else.
  bool reduces_chunks(const Node& node, const Fold& fold) const {
    const Node& chunks = program_.nodes[fold.node];
    return node.reduction_ranges == std::vector{chunks.ranges.back()} &&
           std::equal(node.ranges.begin(), node.ranges.end(), chunks.ranges.begin(), chunks.ranges.end() - 1);
  }

  /// Whether `load`, in a node that lies over chunks, reads the maximum over the chunks of `maxima`.
  bool is_maximum_of(const Fold& maxima, const Inst& load, size_t end) const {
    for (size_t b = maxima.node + 1; b < end; ++b) {
      const auto rows = fold_of(program_, b, OpCode::reduce_max);
      if (!rows || rows->buffer != load.buffer || rows->index != load.index) continue;
      const Inst& read = program_.nodes[b].body[rows->operand];
      return reduces_chunks(program_.nodes[b], maxima) && is_read_of(read, maxima);
    }
    return false;
  }

  bool is_read_of(const Inst& inst, const Fold& fold) const {
    return inst.op == OpCode::load && inst.buffer == fold.buffer && inst.args.empty() &&
           inst.indirect.empty() && inst.index == over_chunks(fold.index, program_.nodes[fold.node]);
  }

  /// The nodes that read the sums of chunks; none where one does so otherwise than by adding up a row's.
  std::vector<size_t> readers_of(const Fold& sums) const {
    if (program_.buffers[sums.buffer].role != BufferRole::intermediate) return {};
    std::vector<size_t> found;
    for (size_t n = 0; n < program_.nodes.size(); ++n) {
      const Node& node = program_.nodes[n];
      if (!contains(node.reads(), sums.buffer)) continue;
      if (node.kind != NodeKind::loops || !reduces_chunks(node, sums)) return {};
      for (const Inst& inst : node.body)
        if (inst.op == OpCode::load && inst.buffer == sums.buffer && !is_read_of(inst, sums)) return {};
      found.push_back(n);
    }
    return found;
  }

  /// Whether what the maxima are of stays until node `sums`, and the maxima stay until node `last`.
  bool undisturbed(const Fold& maxima, const Shift& shift, size_t sums, size_t last) const {
    const std::vector<BufferId> read = program_.nodes[maxima.node].reads();
    for (size_t n = maxima.node + 1; n <= last; ++n) {
      const std::vector<BufferId> written = program_.nodes[n].writes();
      const bool changes = std::ranges::any_of(written, [&](BufferId b) { return contains(read, b); });
      if (n <= sums && changes) return false;
      if (contains(written, maxima.buffer) || (n > sums && contains(written, shift.load.buffer)))
        return false;
    }
    return true;
  }

  /// The node that finds maxima finds the sums with them.
  void find_with(Maxima& maxima, const Fold& sums) {
    maxima.sums = sums;
    Node& node = program_.nodes[maxima.node];
    BodyBuilder builder;
    const std::vector<ValueId> moved =
        rebuild(node.body, builder, [](BodyBuilder& to, ValueId, Inst inst, const std::vector<ValueId>&) {
          if (inst.op == OpCode::reduce_max) inst.op = OpCode::reduce_softmax;
          return to.add(std::move(inst));
        });
    const ValueId m = moved[maxima.reduce];
    const DType dtype = builder.dtype(m);
    builder.store(sums.buffer, dtype, sums.index, builder.result(m, 1, dtype));
    node.body = builder.take();
  }

  /// The reader adds up s_k exp(m_k - m) instead of the sums below m. Where m_k is infinite, s_k is 0 or NaN,
  /// and the chunk is worth as much as one element.
  void read_both(size_t reader, const Maxima& maxima, const Fold& sums, const Shift& shift) {
    Node& node = program_.nodes[reader];
    const Expr index = over_chunks(maxima.index, program_.nodes[maxima.node]);
    BodyBuilder builder;
    rebuild(node.body, builder, [&](BodyBuilder&, ValueId, Inst inst, const std::vector<ValueId>&) {
      if (inst.op != OpCode::load || inst.buffer != sums.buffer) return builder.add(std::move(inst));
      inst.buffer = maxima.sums->buffer;
      inst.index = over_chunks(maxima.sums->index, program_.nodes[maxima.node]);
      ValueId m = builder.add(shift.load);
      if (shift.guarded)
        m = builder.where(builder.unary(OpCode::isinf, m), builder.constant(builder.dtype(m), 0.0), m);
      const ValueId chunk = builder.load(maxima.buffer, program_.buffers[maxima.buffer].dtype, index);
      const ValueId factor = builder.unary(OpCode::exp, builder.binary(OpCode::sub, chunk, m));
      const ValueId scaled = builder.binary(OpCode::mul, builder.add(std::move(inst)), factor);
      return builder.where(builder.unary(OpCode::isinf, chunk), factor, scaled);
    });
    node.body = builder.take();
  }

  Program& program_;
  std::vector<Maxima> maxima_;
};

}  // namespace

std::optional<ShiftedExponential> shifted_exponential(const Body& body, ValueId v) {
  if (body[v].op != OpCode::exp) return std::nullopt;
  const Inst& difference = body[body[v].args[0]];
  if (difference.op != OpCode::sub) return std::nullopt;
  const ValueId shift = difference.args[1];
  ShiftedExponential found{difference.args[0], shift, false};
  if (body[shift].op == OpCode::where) {
    const Inst& condition = body[body[shift].args[0]];
    const ValueId maximum = body[shift].args[2];
    found.guarded = condition.op == OpCode::isinf && condition.args[0] == maximum &&
                    is_constant(body[body[shift].args[1]], 0);
    if (found.guarded) found.maximum = maximum;
  }
  return found;
}

void merge_split_softmax(Program& program) {
  SplitSoftmax(program).run();
}

}  // namespace stax::loops
