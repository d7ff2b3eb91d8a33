#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "codegen/forms.h"
#include "codegen/tile/tiling.h"
#include "loops/analysis.h"
#include "loops/fold.h"
#include "schedule/forms.h"
#include "support/check.h"

namespace stax::codegen {

using loops::Inst;
using loops::OpCode;
using loops::OpKind;
using loops::ValueId;

namespace {

constexpr AxisSet kReduction = axis_bit(TileAxisKind::r0);
/// More axes than three would leave blocks too short.
constexpr int kMaxTiles = 3;

bool is_store(const Inst& inst) {
  return loops::info(inst.op).kind == OpKind::store;
}

class TileBuilder {
 public:
  TileBuilder(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
              TileKernel& kernel)
      : program_(program), group_(group), flat_(flat), kernel_(kernel), out_(&kernel.body) {
    env_.assign(flat.body.size(), -1);
    reduction_axis_ = kernel.axis(TileAxisKind::r0);
    for (const TileAxis& axis : kernel.axes) {
      if (axis.masked) masked_ |= axis_bit(axis.kind);
      all_ |= axis_bit(axis.kind);
      for (const TileVariable& v : axis.variables) axis_of_[v.symbol] = axis_bit(axis.kind);
    }
    find_along();
    declare_pointers();
  }

  void run() {
    if (kernel_.form != TileForm::looped) {
      for (ValueId id : needed_by(flat_.body, roots([](ValueId) { return true; }))) emit(id);
      return;
    }
    last_pass_.assign(flat_.body.size(), -1);
    std::vector<std::vector<ValueId>> needed;
    for (int32_t p = 0; p < flat_.passes; ++p) {
      needed.push_back(needed_by(flat_.body, pass_roots(p)));
      for (ValueId id : needed.back())
        if (flat_.over_reduction[id]) last_pass_[id] = p;
    }
    if (kernel_.keeps) find_kept(needed);
    for (int32_t p = 0; p < flat_.passes; ++p) pass(p, needed[static_cast<size_t>(p)]);
    for (ValueId id : needed_by(flat_.body, roots([&](ValueId i) { return !flat_.over_reduction[i]; })))
      if (!flat_.over_reduction[id]) emit(id);
  }

 private:
  // Facts about values

  AxisSet along_of(Expr e) const {
    AxisSet set = 0;
    for (Symbol s : e.symbols()) {
      const auto it = axis_of_.find(s);
      if (it != axis_of_.end()) set |= it->second;
    }
    return set;
  }

  void find_along() {
    for (const Inst& inst : flat_.body) {
      AxisSet set = inst.op == OpCode::check_index ? AxisSet{0} : along_of(inst.index);
      for (ValueId a : inst.args) set |= along_[a];
      for (ValueId a : inst.indirect) set |= along_[a];
      if (loops::info(inst.op).kind == OpKind::reduce) set &= static_cast<AxisSet>(~kReduction);
      if (loops::info(inst.op).kind == OpKind::scan) set |= kReduction;
      along_.push_back(set);
    }
  }

  template <class Keep>
  std::vector<ValueId> roots(Keep&& keep) const {
    std::vector<ValueId> found;
    for (size_t i = 0; i < flat_.body.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if ((is_store(flat_.body[i]) || flat_.body[i].op == OpCode::check_index) && keep(id))
        found.push_back(id);
    }
    return found;
  }

  void declare_pointers() {
    std::map<loops::BufferId, std::pair<bool, bool>> use;  // read, written
    for (const Inst& inst : flat_.body) {
      if (inst.buffer < 0) continue;
      if (!use.contains(inst.buffer)) kernel_.pointers.push_back({.buffer = inst.buffer});
      auto& [read, written] = use[inst.buffer];
      (is_store(inst) ? written : read) = true;
      read = read || inst.op == OpCode::atomic_add;
    }
    int32_t numbers[3] = {0, 0, 0};
    constexpr std::string_view kNames[] = {"in_ptr", "out_ptr", "in_out_ptr"};
    for (TilePointer& p : kernel_.pointers) {
      const auto [read, written] = use[p.buffer];
      p.role = !written ? PointerRole::in : read ? PointerRole::in_out : PointerRole::out;
    }
    // Arguments that are updated come first, results last.
    auto place = [](const TilePointer& p) {
      return p.role == PointerRole::in_out ? 0 : p.role == PointerRole::in ? 1 : 2;
    };
    std::stable_sort(kernel_.pointers.begin(), kernel_.pointers.end(),
                     [&](const TilePointer& a, const TilePointer& b) { return place(a) < place(b); });
    for (TilePointer& p : kernel_.pointers) {
      const auto role = static_cast<size_t>(p.role);
      p.dtype = program_.buffers[p.buffer].dtype;
      p.name = fmt::format("{}{}", kNames[role], numbers[role]++);
    }
  }

  int32_t pointer(loops::BufferId buffer) const {
    for (size_t k = 0; k < kernel_.pointers.size(); ++k)
      if (kernel_.pointers[k].buffer == buffer) return static_cast<int32_t>(k);
    STAX_ASSERT(false, "kernel {} has no argument for buffer {}", kernel_.name,
                program_.buffers[buffer].name);
  }

  // Statements

  TileStatement& add(TileStatement statement) {
    out_->push_back(std::move(statement));
    return out_->back();
  }

  TileVar define(TileStatement statement, int32_t results = 1) {
    const TileVar out = next_var_;
    next_var_ += results;
    statement.out = out;
    add(std::move(statement));
    return out;
  }

  /// The block of an operand. Constants are written down where they are first used.
  TileVar operand(ValueId id) {
    if (env_[id] < 0 && flat_.body[id].op == OpCode::constant)
      env_[id] = define(
          {.action = TileAction::constant, .dtype = flat_.body[id].dtype, .number = flat_.body[id].constant});
    STAX_ASSERT(env_[id] >= 0, "kernel {}: value {} is used before it is computed", kernel_.name, id);
    return env_[id];
  }

  std::vector<TileVar> operands(const std::vector<ValueId>& ids) {
    std::vector<TileVar> vars;
    for (ValueId id : ids) vars.push_back(operand(id));
    return vars;
  }

  void emit(ValueId id) {
    if (env_[id] >= 0) return;
    const Inst& inst = flat_.body[id];
    switch (loops::info(inst.op).kind) {
      case OpKind::leaf:
        emit_leaf(id);
        return;
      case OpKind::store:
        emit_store(id);
        return;
      case OpKind::reduce:
        if (kernel_.form == TileForm::persistent) reduce_block(id);
        return;
      case OpKind::scan:
        emit_scan(id);
        return;
      case OpKind::special:
        emit_special(id);
        return;
      case OpKind::unary:
      case OpKind::binary:
      case OpKind::ternary:
      case OpKind::cast:
        break;
    }
    if (inst.op == OpCode::div && is_power_of_two(flat_.body[inst.args[1]])) {
      env_[id] = define(product_with_reciprocal(inst, along_[id]));
      return;
    }
    std::vector<TileVar> args = operands(inst.args);
    if (inst.op == OpCode::relu)
      args.insert(args.begin(), define({.action = TileAction::constant, .dtype = zero_of_relu(inst.dtype)}));
    env_[id] = define({.action = TileAction::compute,
                       .op = inst.op,
                       .dtype = inst.dtype,
                       .from = inst.op == OpCode::where ? inst.dtype : flat_.body[inst.args[0]].dtype,
                       .args = std::move(args),
                       .along = along_[id],
                       .relaxed = flat_.relaxed[id]});
  }

  /// Triton's maximum of blocks has the wider type of the two: a float's is its own beside any integer.
  static DType zero_of_relu(DType dtype) { return is_floating_point(dtype) ? DType::int32 : dtype; }

  /// A constant whose reciprocal is exact.
  static bool is_power_of_two(const Inst& inst) {
    if (inst.op != OpCode::constant || inst.dtype != DType::float32) return false;
    int exponent = 0;
    const double value = inst.constant.as_double();
    return std::abs(std::frexp(value, &exponent)) == 0.5 && std::abs(exponent) < 120;
  }

  /// A quotient by such a constant: the same value, without a division.
  TileStatement product_with_reciprocal(const Inst& inst, AxisSet along) {
    const double divisor = flat_.body[inst.args[1]].constant.as_double();
    const TileVar factor = define(
        {.action = TileAction::constant, .dtype = inst.dtype, .number = loops::Constant::of(1 / divisor)});
    return {.action = TileAction::compute,
            .op = OpCode::mul,
            .dtype = inst.dtype,
            .from = inst.dtype,
            .args = {operand(inst.args[0]), factor},
            .along = along};
  }

  void emit_leaf(ValueId id) {
    const Inst& inst = flat_.body[id];
    switch (inst.op) {
      case OpCode::load:
        if (in_kept_steps_ && kept_.contains(id))
          recall(id);
        else
          emit_load(id);
        return;
      case OpCode::index_value:
        env_[id] = define({.action = TileAction::index,
                           .dtype = DType::int64,
                           .indirect = operands(inst.indirect),
                           .along = along_[id],
                           .index = inst.index});
        return;
      case OpCode::scalar:
        env_[id] = define({.action = TileAction::scalar, .dtype = inst.dtype, .count = inst.number});
        return;
      default:  // constants: see operand()
        return;
    }
  }

  /// Numbers what several passes load along the rows.
  void find_kept(const std::vector<std::vector<ValueId>>& needed) {
    for (size_t i = 0; i < flat_.body.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const Inst& inst = flat_.body[i];
      const bool plain = inst.op == OpCode::load && inst.args.empty() && inst.indirect.empty();
      if (!plain || (along_[i] & kReduction) == 0) continue;
      const auto needs = [&](const std::vector<ValueId>& ids) {
        return std::ranges::find(ids, id) != ids.end();
      };
      if (std::ranges::count_if(needed, needs) < 2) continue;
      const auto first = std::ranges::find_if(needed, needs) - needed.begin();
      kept_.emplace(id, KeptLoad{static_cast<int32_t>(kept_.size()), static_cast<int32_t>(first)});
    }
    kernel_.keeps = !kept_.empty();
  }

  void recall(ValueId id) {
    env_[id] = define({.action = TileAction::recall,
                       .dtype = program_.buffers[flat_.body[id].buffer].dtype,
                       .along = along_[id],
                       .kept = kept_.at(id).number});
  }

  /// `keep`: for the passes that need it, in registers.
  void emit_load(ValueId id, bool keep = false) {
    const Inst& inst = flat_.body[id];
    TileStatement load{.action = TileAction::load,
                       .dtype = program_.buffers[inst.buffer].dtype,
                       .indirect = operands(inst.indirect),
                       .along = along_[id],
                       .index = inst.index,
                       .pointer = pointer(inst.buffer)};
    if (!inst.args.empty()) load.mask = operand(inst.args[0]);
    const AxisSet address = address_of(inst);
    load.spread = load.mask >= 0 && (address != load.along || address == 0);
    load.masks = load.along & masked_;
    load.has_other = load.mask >= 0 || (load.along & kReduction) != 0;
    if (filled_.contains(id)) load.number = loops::identity_of(OpCode::reduce_max, inst.dtype);
    load.aligned = is_aligned(inst);
    load.eviction = eviction(id, keep);
    if (keep) load.kept = kept_.at(id).number;
    const bool uniform = load.along == 0;
    if (uniform) load.eviction = Eviction::none;
    env_[id] = define(std::move(load));
    if (uniform && inst.args.empty() && inst.indirect.empty())
      env_[id] = define({.action = TileAction::broadcast,
                         .dtype = inst.dtype,
                         .args = {env_[id]},
                         .along = static_cast<AxisSet>(all_ & ~kReduction)});
  }

  /// Lines that other blocks, or a later pass, read again are kept; those of a reduction that are read once
  /// make room.
  Eviction eviction(ValueId id, bool keep) const {
    const Inst& inst = flat_.body[id];
    bool in_order = false, repeated = false;
    for (const TileAxis& axis : kernel_.axes) {
      if (axis.variables.empty() || axis.numel.is(1)) continue;
      const auto stride = stride_of(inst.index, axis.variables.back().symbol);
      in_order = in_order || (stride && stride->is(1) && inst.indirect.empty());
      repeated = repeated || (along_[id] & axis_bit(axis.kind)) == 0;
      // Rows may also be read again for every value of one of an axis' variables.
      if (kernel_.form != TileForm::pointwise)
        repeated = repeated || std::ranges::any_of(axis.variables, [&](const TileVariable& v) {
                     return !v.extent.is(1) && inst.indirect.empty() && !inst.index.contains(v.symbol);
                   });
    }
    if (repeated || !in_order) return Eviction::last;
    if (kernel_.form == TileForm::pointwise) return Eviction::none;
    const bool again = kernel_.form == TileForm::looped && last_pass_[id] > current_pass_;
    return again && !keep ? Eviction::last : Eviction::first;
  }

  bool is_aligned(const Inst& inst) const {
    return kernel_.peel && inst.indirect.empty() && aligned_by(*kernel_.peel, inst.index, *reduction_axis_);
  }

  /// Axes along which an address varies.
  AxisSet address_of(const Inst& inst) const {
    AxisSet address = along_of(inst.index);
    for (ValueId a : inst.indirect) address |= along_[a];
    return address;
  }

  void emit_store(ValueId id) {
    const Inst& inst = flat_.body[id];
    TileStatement store{.action = inst.op == OpCode::atomic_add ? TileAction::atomic_add : TileAction::store,
                        .dtype = program_.buffers[inst.buffer].dtype,
                        .from = flat_.body[inst.args[0]].dtype,
                        .args = {operand(inst.args[0])},
                        .indirect = operands(inst.indirect),
                        .along = flat_.over_reduction[id] ? all_ : static_cast<AxisSet>(all_ & ~kReduction),
                        .index = inst.index,
                        .pointer = pointer(inst.buffer)};
    if (inst.args.size() > 1) store.mask = operand(inst.args[1]);
    store.masks = store.along & masked_;
    store.spread = address_of(inst) != store.along;
    store.aligned = is_aligned(inst);
    // What the rows that are read again leave in the cache is worth more than results.
    if (store.action == TileAction::store && kernel_.form == TileForm::looped && flat_.passes > 1 &&
        flat_.over_reduction[id])
      store.eviction = Eviction::first;
    add(std::move(store));
  }

  void emit_special(ValueId id) {
    const Inst& inst = flat_.body[id];
    if (inst.op == OpCode::result) {
      env_[id] = operand(inst.args[0]) + inst.number;
      return;
    }
    const bool check = inst.op == OpCode::check_index;
    kernel_.checks = kernel_.checks || check;
    AxisSet lanes = flat_.over_reduction[id] ? all_ : static_cast<AxisSet>(all_ & ~kReduction);
    TileStatement statement{.action = check ? TileAction::check : TileAction::random,
                            .dtype = DType::int64,
                            .args = operands(inst.args),
                            .along = along_[id],
                            .masks = static_cast<AxisSet>(lanes & masked_ & along_[id]),
                            .index = inst.index,
                            .count = check ? flat_.node[id] : inst.number,
                            .wrap = check && inst.number == 1};
    if (check && inst.args.size() > 1) statement.mask = statement.args[1];
    env_[id] = define(std::move(statement));
  }

  // Reductions

  std::vector<TileVar> broadcast_operands(const Inst& inst) {
    std::vector<TileVar> blocks;
    for (ValueId a : inst.args)
      blocks.push_back(define({.action = TileAction::broadcast,
                               .dtype = flat_.body[a].dtype,
                               .args = {operand(a)},
                               .along = all_}));
    return blocks;
  }

  void reduce_block(ValueId id) {
    const Inst& inst = flat_.body[id];
    const DType operand_dtype = flat_.body[inst.args[0]].dtype;
    std::vector<TileVar> blocks = broadcast_operands(inst);
    if (masked_ != 0) {
      for (TileVar& block : blocks)
        block = define({.action = TileAction::select,
                        .dtype = operand_dtype,
                        .args = {block},
                        .along = all_,
                        .masks = masked_,
                        .number = loops::identity_of(inst.op, operand_dtype)});
    }
    finish(id, std::move(blocks), {});
  }

  /// Reduces blocks, or accumulators, along r0.
  void finish(ValueId id, std::vector<TileVar> blocks, std::vector<TileVar> carried) {
    const Inst& inst = flat_.body[id];
    env_[id] = define({.action = TileAction::reduce,
                       .op = inst.op,
                       .dtype = inst.dtype,
                       .from = flat_.body[inst.args[0]].dtype,
                       .args = std::move(blocks),
                       .carried = std::move(carried),
                       .along = along_[id],
                       .of_rows = of_rows(inst.op)},
                      loops::result_count(inst.op));
  }

  /// Of rows in memory a block is folded at once, and then added to what was folded before: fewer operations
  /// an element than adding each to accumulators of its own.
  bool of_rows(OpCode op) const {
    if (op == OpCode::reduce_softmax) return true;
    return op == OpCode::reduce_welford && kernel_.form == TileForm::looped &&
           kernel_.hint == ReductionHint::inner;
  }

  void emit_scan(ValueId id) {
    const Inst& inst = flat_.body[id];
    std::vector<TileVar> blocks = broadcast_operands(inst);
    // Elsewhere what lies behind the end of a row reaches none of its results.
    if (const AxisSet masks = masked_ & kReduction; loops::needs_whole_row(inst.op) && masks != 0)
      blocks = {define({.action = TileAction::select,
                        .dtype = inst.dtype,
                        .args = {blocks[0]},
                        .along = all_,
                        .masks = masks,
                        .number = loops::identity_of(inst.op, inst.dtype)})};
    env_[id] = define({.action = TileAction::scan,
                       .op = inst.op,
                       .dtype = inst.dtype,
                       .from = flat_.body[inst.args[0]].dtype,
                       .args = std::move(blocks),
                       .carried = accumulators_[id],
                       .along = along_[id],
                       .number = loops::identity_of(inst.op, inst.dtype)},
                      loops::result_count(inst.op));
  }

  // Passes of a looped kernel

  std::vector<ValueId> pass_folds(int32_t p) const {
    std::vector<ValueId> found;
    for (size_t i = 0; i < flat_.body.size(); ++i)
      if (loops::info(flat_.body[i].op).kind == OpKind::reduce && flat_.ready[i] == p + 1)
        found.push_back(static_cast<ValueId>(i));
    return found;
  }

  std::vector<ValueId> pass_roots(int32_t p) const {
    std::vector<ValueId> found =
        roots([&](ValueId i) { return flat_.over_reduction[i] && flat_.ready[i] == p; });
    for (ValueId id : pass_folds(p)) found.push_back(id);
    std::sort(found.begin(), found.end());
    return found;
  }

  /// `ids`: what the pass needs.
  void pass(int32_t p, const std::vector<ValueId>& ids) {
    if (ids.empty()) return;
    current_pass_ = p;
    const std::vector<ValueId> folds = pass_folds(p);
    auto is_fold = [&](ValueId id) { return std::find(folds.begin(), folds.end(), id) != folds.end(); };
    for (ValueId id : ids)
      if (!flat_.over_reduction[id] && !is_fold(id)) emit(id);
    const std::map<ValueId, TileVar> partial =
        kernel_.peel ? edges(ids, folds) : std::map<ValueId, TileVar>();
    for (ValueId id : ids)
      if (is_fold(id) || loops::info(flat_.body[id].op).kind == OpKind::scan)
        start(id, partial.contains(id) ? partial.at(id) : -1);
    if (kernel_.keeps) kept_steps(ids, folds);
    TileStatement loop{.action = TileAction::loop, .backward = goes_backward(ids)};
    points(loop, ids, folds);
    add(std::move(loop));
    for (ValueId id : folds) finish(id, accumulators_[id], accumulators_[id]);
  }

  /// Every other pass over rows that are read again: what the pass before read last is still in the cache.
  bool goes_backward(const std::vector<ValueId>& ids) const {
    return kernel_.keeps && current_pass_ % 2 == 1 && std::ranges::none_of(ids, [&](ValueId id) {
             return loops::info(flat_.body[id].op).kind == OpKind::scan;
           });
  }

  /// Blocks that stay in registers: what this pass is the first to need is loaded before any of it is used.
  void kept_steps(const std::vector<ValueId>& ids, const std::vector<ValueId>& folds) {
    TileStatement loads{.action = TileAction::kept_loads};
    auto* outer = std::exchange(out_, &loads.body);
    filled_ = fillable(ids, folds);
    for (const auto& [id, kept] : kept_) {
      if (kept.first_pass != current_pass_) continue;
      emit_load(id, true);
      env_[id] = -1;
    }
    out_ = outer;
    if (!loads.body.empty()) add(std::move(loads));
    TileStatement steps{.action = TileAction::kept_steps};
    in_kept_steps_ = true;
    points(steps, ids, folds);
    in_kept_steps_ = false;
    add(std::move(steps));
  }

  /// Loads that only a reduce_softmax of the pass reads: lanes that are off read its identity at once.
  std::set<ValueId> fillable(const std::vector<ValueId>& ids, const std::vector<ValueId>& folds) const {
    std::set<ValueId> found;
    for (ValueId fold : folds) {
      const ValueId read = flat_.body[fold].args[0];
      const Inst& inst = flat_.body[read];
      if (flat_.body[fold].op != OpCode::reduce_softmax || inst.op != OpCode::load || !inst.args.empty())
        continue;
      if (in_kept_steps_ && kept_.contains(read) && kept_.at(read).first_pass != current_pass_) continue;
      const auto users = std::count_if(ids.begin(), ids.end(), [&](ValueId id) {
        const Inst& user = flat_.body[id];
        return std::find(user.args.begin(), user.args.end(), read) != user.args.end() ||
               std::find(user.indirect.begin(), user.indirect.end(), read) != user.indirect.end();
      });
      if (users == 1) found.insert(read);
    }
    return found;
  }

  /// What a pass does for each point of the reduction, as the body of `statement`.
  void points(TileStatement& statement, const std::vector<ValueId>& ids, const std::vector<ValueId>& folds) {
    auto* outer = out_;
    const std::vector<TileVar> before = env_;
    out_ = &statement.body;
    filled_ = fillable(ids, folds);
    for (ValueId id : ids) {
      if (std::find(folds.begin(), folds.end(), id) != folds.end()) accumulate(id);
      if (flat_.over_reduction[id]) emit(id);
    }
    out_ = outer;
    env_ = before;
  }

  /// The pass over both ends of each row. Returns what it folds, by the first of its results.
  std::map<ValueId, TileVar> edges(const std::vector<ValueId>& ids, const std::vector<ValueId>& folds) {
    TileStatement edges{.action = TileAction::edges};
    auto* outer = out_;
    out_ = &edges.body;
    for (ValueId id : folds) start(id, -1);
    out_ = outer;
    TileStatement middle;
    points(middle, ids, folds);
    edges.body.insert(edges.body.end(), middle.body.begin(), middle.body.end());
    out_ = &edges.body;
    std::map<ValueId, TileVar> partial;
    for (ValueId id : folds) {
      finish(id, accumulators_[id], accumulators_[id]);
      partial[id] = env_[id];
      env_[id] = -1;
    }
    out_ = outer;
    add(std::move(edges));
    return partial;
  }

  /// `partial`: the first result of what has been folded before; -1: nothing.
  void start(ValueId id, TileVar partial) {
    const Inst& inst = flat_.body[id];
    const DType dtype = flat_.body[inst.args[0]].dtype;
    const bool scan = loops::info(inst.op).kind == OpKind::scan;
    const int32_t count = loops::result_count(inst.op);
    std::vector<TileVar> begin;
    for (int32_t k = 0; k < count && partial >= 0; ++k) begin.push_back(partial + k);
    const TileVar first = define({.action = TileAction::start,
                                  .op = inst.op,
                                  .dtype = dtype,
                                  .args = std::move(begin),
                                  .along = scan ? static_cast<AxisSet>(all_ & ~kReduction) : all_,
                                  .number = loops::identity_of(inst.op, dtype),
                                  .count = count,
                                  .of_rows = of_rows(inst.op)},
                                 count);
    accumulators_[id].clear();
    for (int32_t k = 0; k < count; ++k) accumulators_[id].push_back(first + k);
  }

  void accumulate(ValueId id) {
    const Inst& inst = flat_.body[id];
    std::vector<TileVar> blocks = broadcast_operands(inst);
    define({.action = TileAction::accumulate,
            .op = inst.op,
            .dtype = flat_.body[inst.args[0]].dtype,
            .args = std::move(blocks),
            .carried = accumulators_[id],
            .along = all_,
            .masks = filled_.contains(inst.args[0]) ? AxisSet{0} : masked_,
            .of_rows = of_rows(inst.op)},
           loops::result_count(inst.op));
  }

  const loops::Program& program_;
  const schedule::Group& group_;
  const FlatGroup& flat_;
  TileKernel& kernel_;
  std::vector<TileStatement>* out_;
  std::vector<TileVar> env_;
  std::vector<AxisSet> along_;
  std::map<Symbol, AxisSet> axis_of_;
  std::map<ValueId, std::vector<TileVar>> accumulators_;
  const TileAxis* reduction_axis_ = nullptr;
  std::set<ValueId> filled_;  // loads of the pass at hand whose lanes that are off read an identity
  struct KeptLoad {
    int32_t number = 0, first_pass = 0;
  };
  std::map<ValueId, KeptLoad> kept_;
  bool in_kept_steps_ = false;
  AxisSet masked_ = 0, all_ = 0;
  TileVar next_var_ = 0;
  int32_t current_pass_ = 0;
  std::vector<int32_t> last_pass_;  // of a looped kernel, in which a value over the reduction is computed
};

std::vector<Symbol> size_symbols(const TileKernel& kernel) {
  std::vector<Symbol> found;
  auto visit = [&](Expr e) {
    for (Symbol s : e.symbols()) {
      const bool size = s.kind == SymbolKind::size || s.kind == SymbolKind::unbacked;
      if (size && std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
    }
  };
  std::function<void(const std::vector<TileStatement>&)> walk = [&](const std::vector<TileStatement>& list) {
    for (const TileStatement& s : list) {
      visit(s.index);
      walk(s.body);
    }
  };
  for (const TileAxis& axis : kernel.axes)
    for (const TileVariable& v : axis.variables) visit(v.extent);
  walk(kernel.body);
  std::sort(found.begin(), found.end());
  return found;
}

std::string_view form_name(TileForm form) {
  constexpr std::string_view kNames[] = {"poi", "per", "red"};
  return kNames[static_cast<size_t>(form)];
}

}  // namespace

const TileAxis* TileKernel::axis(TileAxisKind kind) const {
  for (const TileAxis& a : axes)
    if (a.kind == kind) return &a;
  return nullptr;
}

KernelInfo info_of(const TileKernel& kernel) {
  KernelInfo info;
  info.name = kernel.name;
  info.symbols = kernel.symbols;
  for (const TilePointer& p : kernel.pointers) info.buffers.push_back(p.buffer);
  for (const TileAxis& axis : kernel.axes) info.extents.push_back(axis.numel);
  info.when = kernel.when;
  return info;
}

namespace {

/// Rows from this length on may be read again rather than kept.
constexpr int64_t kReadAgain = 512;

/// Of rows that are written too there may be so many that registers are better spent on more of them at a
/// time: more values than the threads of the device would hold with 32 each.
bool reads_rows_again(const schedule::Group& group, const FlatGroup& flat, ReductionHint hint,
                      const schedule::Target& target) {
  const auto values = (product(group.ranges) * product(group.reduction_ranges)).constant();
  if (!values || hint != ReductionHint::inner || flat.has_scan || flat.passes < 2) return false;
  const int64_t held = int64_t{32} * target.processors * target.threads_each;
  if (*values <= held) return false;
  for (size_t i = 0; i < flat.body.size(); ++i)
    if (flat.over_reduction[i] && is_store(flat.body[i])) return true;
  return false;
}

TileKernel make_tile_kernel(const loops::Program& program, const schedule::Group& group,
                            const schedule::Target& target, const std::string& number, Chooser& chooser) {
  // Rounding may not depend on what shares a kernel.
  const bool fixed = target.batch_invariant;
  FlattenOptions options{.divide_by_reciprocal = false, .relax_half = !fixed};
  FlatGroup flat = flatten(program, group, options);
  TileKernel kernel;
  kernel.wide_index = schedule::index_width(program, group, target, chooser).bits == 64;
  kernel.hint = reduction_hint(group, flat);
  kernel.batch_invariant = fixed && !group.reduction_ranges.empty();
  kernel.form = TileForm::pointwise;
  int64_t block = 0;
  if (!group.reduction_ranges.empty()) {
    // Few launches need wide indices where one may ask: they have one form.
    const bool asks = !kernel.wide_index || chooser.questions().empty();
    const bool whole = std::ranges::any_of(flat.body, loops::needs_whole_row, &Inst::op);
    block = whole   ? whole_row_block(group, asks && !fixed, chooser)
            : fixed ? fixed_row_block(group, kernel.hint)
                    : row_block(group, kernel.hint, asks, chooser);
    if (!fixed && block >= kReadAgain && reads_rows_again(group, flat, kernel.hint, target)) block = 0;
    kernel.form = block > 0 ? TileForm::persistent : TileForm::looped;
  }
  if (kernel.form == TileForm::looped) {
    // One pass over memory is worth a longer fold.
    options.take_apart = false;
    options.merge_softmax = !fixed;
    options.multiply_by_reciprocal = !fixed;
    flat = flatten(program, group, options);
  }
  kernel.name = fmt::format("triton_{}_fused_{}", form_name(kernel.form), number);
  kernel.origin = group.name;
  kernel.axes = choose_axes(program, group, flat, kMaxTiles, block, chooser.sizes());
  if (kernel.form == TileForm::looped) {
    TileAxis& reduction = kernel.axes.back();
    // Where a row starts may not change the order of its sums.
    if (!fixed) kernel.peel = choose_peel(program, flat, reduction, chooser);
    reduction.masked = reduction.masked || kernel.peel;
  }
  // Rows along memory are read by wide blocks, which leave enough under way.
  kernel.staged = kernel.form == TileForm::looped && kernel.hint != ReductionHint::inner;
  kernel.keeps =
      kernel.form == TileForm::looped && kernel.hint == ReductionHint::inner && flat.passes > 1 && !fixed;
  kernel.scalars = program.scalars;
  TileBuilder(program, group, flat, kernel).run();
  kernel.symbols = size_symbols(kernel);
  kernel.choices = chooser.choices();
  for (Choice& c : kernel.choices) c.subject = kernel.name;
  return kernel;
}

}  // namespace

std::vector<TileKernel> make_tile_kernels(const loops::Program& program, const schedule::Group& group,
                                          const schedule::Target& target, int32_t number, const Sizes& sizes,
                                          size_t most) {
  const auto make = [&](size_t form, Chooser& chooser) {
    const std::string suffix = form == 0 ? std::string() : fmt::format("_form{}", form);
    return make_tile_kernel(program, group, target, fmt::format("{}{}", number, suffix), chooser);
  };
  return make_forms<TileKernel>(
      sizes, most, make, [](TileKernel & kernel) -> auto& { return kernel.when; });
}

}  // namespace stax::codegen
