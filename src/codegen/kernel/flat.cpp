#include "codegen/kernel/flat.h"

#include <algorithm>
#include <limits>
#include <map>

#include "codegen/kernel/half_results.h"
#include "codegen/kernel/online_softmax.h"
#include "support/check.h"

namespace stax::codegen {

using loops::Body;
using loops::BodyBuilder;
using loops::BufferId;
using loops::Constant;
using loops::Inst;
using loops::OpCode;
using loops::OpKind;
using loops::ValueId;

namespace {

/// Appends the members' bodies to one list.
class Flattener {
 public:
  Flattener(const loops::Program& program, const schedule::Group& group, FlattenOptions options)
      : program_(program), group_(group), options_(options) {}

  FlatGroup run() {
    for (const schedule::Member& member : group_.members) append(member);
    FlatGroup flat;
    flat.body = builder_.take();
    flat.node.assign(flat.body.size(), -1);
    for (auto [id, node] : check_nodes_) flat.node[id] = node;
    return flat;
  }

 private:
  struct Stored {
    BufferId buffer;
    Expr index;
    ValueId value;
  };

  void append(const schedule::Member& member) {
    results_.assign(member.body.size(), {});
    for (size_t i = 0; i < member.body.size(); ++i) {
      Inst inst = member.body[i];
      if (inst.op == OpCode::result) {
        results_[i] = {results_[inst.args[0]].at(inst.number)};
        continue;
      }
      for (ValueId& a : inst.args) a = results_[a].at(0);
      for (ValueId& a : inst.indirect) a = results_[a].at(0);
      results_[i] = add(std::move(inst), member);
    }
  }

  std::vector<ValueId> add(Inst inst, const schedule::Member& member) {
    if (is_reduction(inst.op) || is_scan(inst.op)) return collective(std::move(inst));
    if (inst.op == OpCode::store) return store(std::move(inst));
    if (inst.op == OpCode::div_relaxed) return {divide(inst)};
    if (inst.op == OpCode::load)
      if (const ValueId value = forwarded(inst); value >= 0) return {value};
    const bool check = inst.op == OpCode::check_index;
    const ValueId id = builder_.add(std::move(inst));
    if (check) check_nodes_.emplace(id, member.node);
    return {id};
  }

  std::vector<ValueId> collective(Inst inst) {
    struct Composite {
      OpCode op;
      std::vector<ValueId> (Flattener::*parts)(const Inst&);
    };
    constexpr Composite kComposites[] = {{OpCode::reduce_welford, &Flattener::welford},
                                         {OpCode::reduce_welford_combine, &Flattener::welford_combine},
                                         {OpCode::reduce_softmax, &Flattener::softmax}};
    for (const Composite& composite : kComposites)
      if (options_.take_apart && composite.op == inst.op) return (this->*composite.parts)(inst);
    return whole(std::move(inst));
  }

  /// A reduction or scan as it is.
  std::vector<ValueId> whole(Inst inst) {
    const int32_t count = loops::result_count(inst.op);
    const DType operand = builder_.dtype(inst.args[0]);
    const OpCode op = inst.op;
    std::vector<ValueId> ids = {builder_.add(std::move(inst))};
    for (int32_t k = 1; k < count; ++k)
      ids.push_back(builder_.result(ids[0], k, loops::result_dtype(op, k, operand)));
    return ids;
  }

  ValueId forwarded(const Inst& load) const {
    if (!load.indirect.empty() || !load.args.empty()) return -1;
    for (auto it = stored_.rbegin(); it != stored_.rend(); ++it)
      if (it->buffer == load.buffer && it->index == load.index) return it->value;
    STAX_ASSERT(std::find(group_.local.begin(), group_.local.end(), load.buffer) == group_.local.end(),
                "group {} loads its local buffer {} at an index at which no member stored it", group_.name,
                program_.buffers[load.buffer].name);
    return -1;
  }

  std::vector<ValueId> store(Inst inst) {
    if (inst.indirect.empty() && inst.args.size() == 1) {
      ValueId value = inst.args[0];
      const DType dtype = program_.buffers[inst.buffer].dtype;
      const OpCode rounding = dtype == DType::float16 ? OpCode::to_float16 : OpCode::to_bfloat16;
      if (is_half(dtype)) {
        // What was rounded on purpose is rounded by the store, too.
        if (options_.relax_half && builder_[value].op == rounding) inst.args[0] = builder_[value].args[0];
        value = builder_.unary(rounding, inst.args[0]);
      }
      stored_.push_back({inst.buffer, inst.index, value});
    }
    // Other stores are forwarded to no load, so nobody reads what they would leave in a local buffer.
    if (std::find(group_.local.begin(), group_.local.end(), inst.buffer) != group_.local.end()) return {};
    return {builder_.add(std::move(inst))};
  }

  bool varies_over_reduction(ValueId id) const {
    const Inst& inst = builder_[id];
    const OpKind kind = loops::info(inst.op).kind;
    if (kind == OpKind::reduce) return false;
    if (kind == OpKind::scan || inst.index.contains(SymbolKind::reduction)) return true;
    auto varies = [&](ValueId a) { return varies_over_reduction(a); };
    return std::any_of(inst.args.begin(), inst.args.end(), varies) ||
           std::any_of(inst.indirect.begin(), inst.indirect.end(), varies);
  }

  /// A row over one divisor: with r = 1/b and q = a r, q + (a - q b) r is a / b rounded correctly but for
  /// rare last bits (Markstein, 1990), and costs a fraction of a division.
  ValueId divide(const Inst& inst) {
    const ValueId a = inst.args[0], b = inst.args[1];
    const bool wanted = options_.divide_by_reciprocal || options_.multiply_by_reciprocal;
    if (!wanted || !varies_over_reduction(a) || varies_over_reduction(b)) return builder_.add(inst);
    const ValueId r = builder_.unary(OpCode::reciprocal, b);
    const ValueId q = builder_.binary(OpCode::mul, a, r);
    if (options_.multiply_by_reciprocal) return q;
    auto fma = [&](ValueId x, ValueId y, ValueId z) {
      return builder_.add({.op = OpCode::fma, .dtype = inst.dtype, .args = {x, y, z}});
    };
    return fma(fma(builder_.unary(OpCode::neg, q), b, a), r, q);
  }

  ValueId reduce(OpCode op, ValueId a) { return builder_.reduce(op, builder_.dtype(a), {a}); }

  /// Number of points of the reduction range, as a value of `dtype`.
  ValueId extent(DType dtype) {
    Expr n = product(group_.reduction_ranges);
    if (auto value = n.constant()) return builder_.int_constant(dtype, *value);
    return builder_.cast(builder_.index_value(n), dtype);
  }

  /// Two passes, the second corrected for the rounding of the first: with d = x - mean', e = sum(d) / n, the
  /// mean is mean' + e and m2 = sum(d^2) - sum(d) e. (Chan, Golub, LeVeque 1983, equation 1.7.)
  std::vector<ValueId> welford(const Inst& inst) {
    const ValueId x = inst.args[0], n = extent(builder_.dtype(x));
    const ValueId rough = builder_.binary(OpCode::div, reduce(OpCode::reduce_sum, x), n);
    const ValueId d = builder_.binary(OpCode::sub, x, rough);
    const ValueId rest = reduce(OpCode::reduce_sum, d);
    const ValueId error = builder_.binary(OpCode::div, rest, n);
    const ValueId squares = reduce(OpCode::reduce_sum, builder_.binary(OpCode::mul, d, d));
    const ValueId zero = builder_.constant(builder_.dtype(x), 0.0);
    // An infinite mean stays one: there the differences are NaN.
    const ValueId undefined = builder_.unary(OpCode::isnan, error);
    const ValueId mean = builder_.binary(OpCode::add, rough, builder_.where(undefined, zero, error));
    const ValueId m2 = builder_.binary(OpCode::sub, squares, builder_.binary(OpCode::mul, rest, error));
    return {mean, builder_.binary(OpCode::maximum, m2, zero), n};
  }

  /// Merged mean = sum(n mean) / sum(n); m2 = sum(m2 + n (mean_i - mean)^2). Empty parts (n = 0) add nothing.
  std::vector<ValueId> welford_combine(const Inst& inst) {
    const ValueId mean = inst.args[0], m2 = inst.args[1], n = inst.args[2];
    const DType dtype = builder_.dtype(n);
    const ValueId zero = builder_.constant(dtype, 0.0);
    const ValueId empty = builder_.binary(OpCode::eq, n, zero);
    const ValueId total = reduce(OpCode::reduce_sum, n);
    ValueId weighted = builder_.where(empty, zero, builder_.binary(OpCode::mul, n, mean));
    const ValueId merged = builder_.binary(OpCode::div, reduce(OpCode::reduce_sum, weighted), total);
    const ValueId d = builder_.binary(OpCode::sub, mean, merged);
    ValueId part = builder_.binary(OpCode::mul, n, builder_.binary(OpCode::mul, d, d));
    part = builder_.where(empty, zero, builder_.binary(OpCode::add, m2, part));
    return {merged, reduce(OpCode::reduce_sum, part), total};
  }

  /// m = max(x); sum of exp(x - m), 0 where m is -inf.
  std::vector<ValueId> softmax(const Inst& inst) {
    const ValueId x = inst.args[0];
    const ValueId m = reduce(OpCode::reduce_max, x);
    const ValueId none = builder_.constant(builder_.dtype(x), -std::numeric_limits<double>::infinity());
    const ValueId is_none = builder_.binary(OpCode::eq, m, none);
    const ValueId zero = builder_.constant(builder_.dtype(x), 0.0);
    const ValueId shift = builder_.where(is_none, zero, m);
    const ValueId e = builder_.unary(OpCode::exp, builder_.binary(OpCode::sub, x, shift));
    return {m, builder_.where(is_none, zero, reduce(OpCode::reduce_sum, e))};
  }

  const loops::Program& program_;
  const schedule::Group& group_;
  FlattenOptions options_;
  BodyBuilder builder_;
  std::vector<Stored> stored_;
  std::map<ValueId, int32_t> check_nodes_;
  std::vector<std::vector<ValueId>> results_;
};

/// Fills in over_reduction, ready and passes.
void analyse(FlatGroup& flat) {
  const size_t n = flat.body.size();
  flat.over_reduction.assign(n, false);
  flat.ready.assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const Inst& inst = flat.body[i];
    const OpKind kind = loops::info(inst.op).kind;
    bool over = inst.index.contains(SymbolKind::reduction) || kind == OpKind::scan;
    int32_t ready = 0;
    auto visit = [&](ValueId a) {
      over = over || flat.over_reduction[a];
      ready = std::max(ready, flat.ready[a]);
    };
    for (ValueId a : inst.args) visit(a);
    for (ValueId a : inst.indirect) visit(a);
    flat.over_reduction[i] = over;
    if (kind == OpKind::reduce) {
      flat.over_reduction[i] = false;
      flat.passes = std::max(flat.passes, ++ready);
    }
    flat.ready[i] = ready;
    if (flat.over_reduction[i] && kind == OpKind::store) flat.passes = std::max(flat.passes, ready + 1);
    flat.has_scan = flat.has_scan || kind == OpKind::scan;
    flat.has_atomic = flat.has_atomic || inst.op == OpCode::atomic_add;
  }
  // What is loaded and stored in one kernel is stored last, so that no later pass loads the new value. A
  // check_index without users still runs.
  for (Inst& inst : flat.body) {
    const size_t i = &inst - flat.body.data();
    if (!is_store(inst.op) || !flat.over_reduction[i]) continue;
    const bool loaded = std::any_of(flat.body.begin(), flat.body.end(), [&](const Inst& other) {
      return other.op == OpCode::load && other.buffer == inst.buffer;
    });
    if (loaded) flat.ready[i] = flat.passes - 1;
  }
}

}  // namespace

FlatGroup flatten(const loops::Program& program, const schedule::Group& group, FlattenOptions options) {
  FlatGroup flat = Flattener(program, group, options).run();
  if (options.merge_softmax) merge_softmax(flat);
  flat.relaxed.assign(flat.body.size(), false);
  if (options.relax_half) relax_half_results(flat, program);
  analyse(flat);
  return flat;
}

void rebuild(FlatGroup& flat, const loops::Rebuild& rebuilt) {
  BodyBuilder builder;
  const std::vector<ValueId> moved = loops::rebuild(flat.body, builder, rebuilt);
  std::vector<int32_t> node(builder.body().size(), -1);
  for (size_t i = 0; i < moved.size(); ++i) {
    int32_t& of = node[static_cast<size_t>(moved[i])];
    of = std::max(of, flat.node[i]);
  }
  flat.body = builder.take();
  flat.node = std::move(node);
}

}  // namespace stax::codegen
