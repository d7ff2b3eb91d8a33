#include "reference/node_plan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "loops/fold.h"
#include "reference/iteration.h"
#include "reference/plan_stages.h"
#include "support/check.h"

namespace stax::reference {

using loops::BufferId;
using loops::Inst;
using loops::OpCode;
using loops::OpKind;
using loops::ValueId;

namespace {

/// Sorts a row that one block holds.
void sort_row(void*, int64_t, const void* a, void* out, void*, int64_t n, int64_t, bool inner) {
  auto* sorted = static_cast<int64_t*>(out);
  std::copy_n(static_cast<const int64_t*>(a), n, sorted);
  if (inner) std::sort(sorted, sorted + n);  // otherwise these are rows of one element
}

constexpr ScanKernels kSort = {.init = [](void*, int64_t) {}, .scan = sort_row};

class Planner {
 public:
  Planner(const loops::Program& program, const loops::Node& node, const Iteration& it)
      : program_(program), node_(node), it_(it), body_(node.body) {}

  NodePlan plan() {
    choose_domains(it_, body_, plan_);
    if (plan_.empty) return std::move(plan_);
    loads_copy_ = may_overwrite_loads(program_, body_);
    const ValuesByPhase values = assign_phases(it_, body_);
    for (const Phase phase : kPhases) emit_phase(phase, values[static_cast<size_t>(phase)]);
    store_in_place(program_, body_, plan_);
    place_registers(plan_);
    return std::move(plan_);
  }

 private:
  // --- Registers ---

  int32_t new_register(DType dtype, bool uniform) {
    plan_.registers.push_back({.dtype = dtype, .uniform = uniform});
    return static_cast<int32_t>(plan_.registers.size()) - 1;
  }
  bool uniform(int32_t r) const { return plan_.registers[r].uniform; }

  int32_t constant(DType dtype, loops::Constant value) {
    const auto key = std::make_pair(dtype, value.bits);
    if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
    const int32_t r = new_register(dtype, true);
    Register& reg = plan_.registers[r];
    reg.kind = Register::Kind::constant;
    if (dtype == DType::float64) {
      std::memcpy(reg.constant, &value.bits, 8);
    } else if (dtype == DType::float32) {
      const auto f = static_cast<float>(value.as_double());
      std::memcpy(reg.constant, &f, 4);
    } else {  // little end first: the low bytes are the wrapped value
      const int64_t i = dtype == DType::boolean ? value.as_int() != 0 : value.as_int();
      std::memcpy(reg.constant, &i, 8);
    }
    return constants_[key] = r;
  }

  int32_t reg(ValueId v) const {
    const auto& own = values_[static_cast<int>(phase_)];
    if (const auto found = own.find(v); found != own.end()) return found->second;
    for (Phase p : {Phase::after, Phase::before}) {
      const auto& map = values_[static_cast<int>(p)];
      if (const auto found = map.find(v); found != map.end()) return found->second;
    }
    STAX_ASSERT(false, "value v{} of node {} has no register", v, node_.name);
  }

  Step& push(Step step) {
    std::vector<Step>& steps = steps_of(plan_, phase_);
    steps.push_back(std::move(step));
    return steps.back();
  }

  /// The register itself where it varies along the block, or the block has one element; otherwise a copy in
  /// every element.
  int32_t splat(int32_t r) {
    if (!uniform(r) || domain_of(plan_, phase_).dims.empty()) return r;
    auto& cache = splats_[static_cast<int>(phase_)];
    if (const auto found = cache.find(r); found != cache.end()) return found->second;
    const DType dtype = plan_.registers[r].dtype;
    const int32_t out = new_register(dtype, false);
    push({.kind = StepKind::splat, .dtype = dtype, .out = out, .a = r});
    return cache[r] = out;
  }

  // --- Index expressions ---

  Access access(const IndexForm& form, BufferId buffer) {
    Access a;
    a.buffer = buffer;
    a.base = form.base;
    const Domain& d = domain_of(plan_, phase_);
    std::vector<int64_t> along;
    for (size_t k = 0; k < form.strides.size(); ++k) {
      const auto dim = static_cast<int32_t>(k);
      if (std::find(d.dims.begin(), d.dims.end(), dim) != d.dims.end()) {
        along.push_back(form.strides[k]);
      } else if (form.strides[k] != 0) {
        a.scalar.emplace_back(dim, form.strides[k]);
      }
    }
    for (size_t k = 0; k + 1 < along.size(); ++k) {
      a.linear = a.linear && along[k] == along[k + 1] * d.extents[k + 1];
    }
    a.stride = along.empty() ? 0 : along.back();
    if (!a.linear) a.strides = std::move(along);
    return a;
  }

  int32_t iota(const IndexForm& form) {
    Access a = access(form, -1);
    if (a.linear && a.stride == 0 && a.scalar.empty()) {
      return constant(DType::int64, loops::Constant::of(a.base));
    }
    const bool is_uniform = a.linear && a.stride == 0;
    const int32_t out = new_register(DType::int64, is_uniform);
    push({.kind = StepKind::iota, .uniform = is_uniform, .dtype = DType::int64, .out = out, .access = a});
    return out;
  }

  /// An int64 register with the value of `e`, whose symbols t0, ... are `indirect`.
  int32_t expression(Expr e, const std::vector<ValueId>& indirect) {
    IndexForm form = it_.split(e);
    if (form.rest.is(0)) return iota(form);
    const bool plain = form.base == 0 && std::all_of(form.strides.begin(), form.strides.end(),
                                                     [](int64_t s) { return s == 0; });
    if (!plain) {
      const Expr rest = std::exchange(form.rest, Expr(0));
      const int32_t linear = iota(form);
      return arithmetic(OpCode::add, linear, expression(rest, indirect));
    }
    switch (e.kind()) {
      case ExprKind::symbol:
        return reg(indirect[e.symbol().number]);
      case ExprKind::add:
        return fold(OpCode::add, e, indirect);
      case ExprKind::mul:
        return fold(OpCode::mul, e, indirect);
      case ExprKind::floor_div:
        return fold(OpCode::floor_div, e, indirect);
      case ExprKind::mod:
        return fold(OpCode::remainder, e, indirect);
      case ExprKind::min:
        return fold(OpCode::minimum, e, indirect);
      case ExprKind::max:
        return fold(OpCode::maximum, e, indirect);
      case ExprKind::constant:
        break;
    }
    return constant(DType::int64, loops::Constant::of(e.value()));
  }

  int32_t fold(OpCode op, Expr e, const std::vector<ValueId>& indirect) {
    int32_t r = expression(e.args()[0], indirect);
    for (Expr next : e.args().subspan(1)) r = arithmetic(op, r, expression(next, indirect));
    return r;
  }

  int32_t arithmetic(OpCode op, int32_t a, int32_t b) { return elementwise(op, DType::int64, {a, b}); }

  /// The access of a load or store; what is not linear becomes a register of offsets.
  Access memory_access(size_t i) {
    IndexForm form = it_.indices[i];
    const Expr rest = std::exchange(form.rest, Expr(0));
    Access a = access(form, body_[i].buffer);
    if (rest.is(0)) return a;
    const int32_t r = expression(rest, body_[i].indirect);
    if (uniform(r)) {
      a.offset = r;
      return a;
    }
    if (a.linear) {
      a.offsets = r;
      return a;
    }
    a = access(IndexForm{.strides = std::vector<int64_t>(form.strides.size())}, body_[i].buffer);
    a.offsets = arithmetic(OpCode::add, iota(form), r);
    return a;
  }

  // --- Instructions ---

  void emit_phase(Phase phase, const std::vector<ValueId>& values) {
    phase_ = phase;
    for (const ValueId v : values) emit(v);
  }

  void emit(ValueId v) {
    const Inst& inst = body_[v];
    const int32_t out = emit_value(v, inst);
    if (out >= 0) values_[static_cast<int>(phase_)][v] = out;
  }

  int32_t emit_value(ValueId v, const Inst& inst) {
    switch (info(inst.op).kind) {
      case OpKind::leaf:
        return leaf(v, inst);
      case OpKind::unary:
      case OpKind::binary:
      case OpKind::ternary: {
        std::vector<int32_t> args;
        for (ValueId a : inst.args) args.push_back(reg(a));
        return elementwise(inst.op, body_[inst.args.back()].dtype, args, inst.dtype);
      }
      case OpKind::cast:
        return cast(inst);
      case OpKind::special:
        return special(inst);
      case OpKind::reduce:
        return reduction(v, inst);
      case OpKind::scan:
        return scan(v, inst);
      case OpKind::store:
        store(v, inst);
        return -1;
    }
    return -1;
  }

  int32_t leaf(ValueId v, const Inst& inst) {
    if (inst.op == OpCode::constant) return constant(inst.dtype, inst.constant);
    if (inst.op == OpCode::scalar) {
      const int32_t r = new_register(inst.dtype, true);
      plan_.registers[r].kind = Register::Kind::scalar;
      plan_.registers[r].scalar = inst.number;
      return r;
    }
    if (inst.op == OpCode::index_value) {
      IndexForm form = it_.indices[v];
      const Expr rest = std::exchange(form.rest, Expr(0));
      const int32_t linear = iota(form);
      return rest.is(0) ? linear : arithmetic(OpCode::add, linear, expression(rest, inst.indirect));
    }
    Step step{.kind = StepKind::load, .dtype = program_.buffers[inst.buffer].dtype};
    step.access = memory_access(v);
    if (!inst.args.empty()) step.c = reg(inst.args[0]);
    step.uniform = step.access.linear && step.access.stride == 0 && step.access.offsets < 0 &&
                   (step.c < 0 || uniform(step.c));
    if (!step.uniform && step.c >= 0) step.c = splat(step.c);
    step.copies = loads_copy_;
    step.out = new_register(inst.dtype, step.uniform);
    return push(std::move(step)).out;
  }

  static ElementwiseKernel require(ElementwiseKernel kernel, OpCode op, DType dtype) {
    STAX_CHECK(kernel, "[reference] {} is not defined for {}; cast the operands first", info(op).name,
               name(dtype));
    return kernel;
  }

  int32_t elementwise(OpCode op, DType dtype, std::vector<int32_t> args) {
    return elementwise(op, dtype, std::move(args), dtype);
  }
  int32_t elementwise(OpCode op, DType dtype, std::vector<int32_t> args, DType result) {
    if (op == OpCode::where) std::rotate(args.begin(), args.begin() + 1, args.end());  // the condition is c
    const auto& row = block_kernels().elementwise[static_cast<int>(op)][static_cast<int>(dtype)];
    Step step{.uniform = std::all_of(args.begin(), args.end(), [&](int32_t r) { return uniform(r); })};
    auto form = Operands::vector_vector;
    if (!step.uniform) {
      if (args.size() > 2) args[2] = splat(args[2]);
      const bool a = uniform(args[0]), b = args.size() > 1 && uniform(args[1]);
      if (a != b && args.size() > 1) form = a ? Operands::uniform_vector : Operands::vector_uniform;
      if ((a && b) || !row[static_cast<int>(form)]) {
        for (int32_t& r : args) r = splat(r);
        form = Operands::vector_vector;
      }
    }
    step.kernel = require(row[static_cast<int>(form)], op, dtype);
    step.dtype = result;
    step.a = args[0];
    if (args.size() > 1) step.b = args[1];
    if (args.size() > 2) step.c = args[2];
    step.out = new_register(result, step.uniform);
    return push(std::move(step)).out;
  }

  int32_t cast(const Inst& inst) {
    const int32_t a = reg(inst.args[0]);
    Step step{.uniform = uniform(a), .dtype = inst.dtype, .a = a};
    step.out = new_register(inst.dtype, step.uniform);
    if (inst.op == OpCode::bitcast) {
      step.kind = StepKind::copy;
    } else {
      const DType from = body_[inst.args[0]].dtype;
      step.kernel = block_kernels().cast[static_cast<int>(from)][static_cast<int>(inst.dtype)];
    }
    return push(std::move(step)).out;
  }

  int32_t special(const Inst& inst) {
    if (inst.op == OpCode::result) return result(inst);
    Step step{.dtype = DType::int64, .a = reg(inst.args[0]), .number = inst.number};
    if (inst.op == OpCode::random_bits) {
      step.kind = StepKind::random_bits;
      step.b = reg(inst.args[1]);
      step.uniform = uniform(step.a) && uniform(step.b);
      if (!step.uniform) step.a = splat(step.a), step.b = splat(step.b);
    } else {
      step.kind = StepKind::check_index;
      const auto i = static_cast<size_t>(&inst - body_.data());
      IndexForm form = it_.indices[i];
      const Expr rest = std::exchange(form.rest, Expr(0));
      step.b = iota(form);
      if (!rest.is(0)) step.b = arithmetic(OpCode::add, step.b, expression(rest, inst.indirect));
      STAX_ASSERT(uniform(step.b), "the size {} of a checked index varies within a block", inst.index.str());
      if (inst.args.size() > 1) step.c = reg(inst.args[1]);
      step.uniform = uniform(step.a) && (step.c < 0 || uniform(step.c));
      if (!step.uniform) {
        step.a = splat(step.a);
        if (step.c >= 0) step.c = splat(step.c);
      }
    }
    step.out = new_register(DType::int64, step.uniform);
    return push(std::move(step)).out;
  }

  int32_t result(const Inst& inst) {
    const ValueId source = inst.args[0];
    if (is_scan(body_[source].op)) {
      return inst.number == 0 ? reg(source) : second_[{phase_, source}];
    }
    return finish(source, inst.number, inst.dtype);
  }

  int32_t finish(ValueId source, int32_t number, DType dtype) {
    const bool is_uniform = domain_of(plan_, phase_).dims.empty();
    Step step{.kind = StepKind::finish, .uniform = is_uniform, .dtype = dtype};
    step.number = collectives_.at(source);
    step.number2 = number;
    step.out = new_register(dtype, is_uniform);
    return push(std::move(step)).out;
  }

  int32_t reduction(ValueId v, const Inst& inst) {
    if (phase_ == Phase::after) return finish(v, 0, inst.dtype);
    const DType dtype = body_[inst.args[0]].dtype;
    const ReduceKernels& k = block_kernels().reduce[static_cast<int>(inst.op)][static_cast<int>(dtype)];
    STAX_CHECK(k.init, "[reference] {} is not defined for {}", info(inst.op).name, name(dtype));
    Step step{.kind = StepKind::accumulate, .dtype = dtype};
    int32_t* args[] = {&step.a, &step.b, &step.c};
    for (size_t i = 0; i < inst.args.size(); ++i) *args[i] = splat(reg(inst.args[i]));
    step.number = static_cast<int32_t>(plan_.reductions.size());
    plan_.reductions.push_back({.reduce = k});
    collectives_[v] = step.number;
    push(std::move(step));
    return -1;
  }

  int32_t scan(ValueId v, const Inst& inst) {
    const DType dtype = body_[inst.args[0]].dtype;
    const ScanKernels& k = inst.op == OpCode::scan_sort
                               ? kSort
                               : block_kernels().scan[static_cast<int>(inst.op)][static_cast<int>(dtype)];
    STAX_CHECK(k.init, "[reference] {} is not defined for {}", info(inst.op).name, name(dtype));
    const bool one_block = plan_.reduction_points == 1 && plan_.reduction.size <= kBlock;
    STAX_CHECK(one_block || !loops::needs_whole_row(inst.op),
               "[reference] {}: expected rows of at most {} elements, got {}", info(inst.op).name, kBlock,
               plan_.reduction.size * plan_.reduction_points);
    Step step{.kind = StepKind::scan, .dtype = dtype, .a = splat(reg(inst.args[0]))};
    step.number = static_cast<int32_t>(plan_.scans.size());
    plan_.scans.push_back({.scan = k});
    step.out = new_register(inst.dtype, domain_of(plan_, phase_).dims.empty());
    if (loops::result_count(inst.op) == 2) {
      step.out2 = second_[{phase_, v}] = new_register(DType::int64, domain_of(plan_, phase_).dims.empty());
    }
    return push(std::move(step)).out;
  }

  void store(ValueId v, const Inst& inst) {
    Step step{.dtype = program_.buffers[inst.buffer].dtype};
    step.kind = inst.op == OpCode::store ? StepKind::store : StepKind::atomic_add;
    step.access = memory_access(v);
    step.a = splat(reg(inst.args[0]));
    if (inst.args.size() > 1) step.c = splat(reg(inst.args[1]));
    step.uniform = domain_of(plan_, phase_).dims.empty();
    push(std::move(step));
  }

  const loops::Program& program_;
  const loops::Node& node_;
  const Iteration& it_;
  const loops::Body& body_;
  NodePlan plan_;
  Phase phase_ = Phase::before;
  std::map<ValueId, int32_t> values_[4];
  std::map<int32_t, int32_t> splats_[4];
  std::map<std::pair<DType, uint64_t>, int32_t> constants_;
  std::map<ValueId, int32_t> collectives_;
  std::map<std::pair<Phase, ValueId>, int32_t> second_;
  bool loads_copy_ = false;
};

}  // namespace

NodePlan plan_node(const loops::Program& program, const loops::Node& node,
                   const std::function<int64_t(Symbol)>& value_of) {
  const Iteration it = make_iteration(program, node, value_of);
  return Planner(program, node, it).plan();
}

}  // namespace stax::reference
