#include "reference/node_plan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "device/cpu_info.h"
#include "device/thread_pool.h"
#include "loops/analysis.h"
#include "reference/iteration.h"
#include "support/check.h"

namespace stax::reference {

using loops::BufferId;
using loops::BufferRole;
using loops::Inst;
using loops::OpCode;
using loops::OpKind;
using loops::ValueId;

namespace {

enum class Phase : uint8_t { before, during, after, tail };
constexpr int64_t kWideEnough = 512;  // elements that a block's domain should have
constexpr int64_t kNarrowest = 256;   // columns of a block, where they are shared between threads
constexpr int64_t kWorthSharing =
    1 << 18;  // points of a reduction from which threads should share its columns

class Planner {
 public:
  Planner(const loops::Program& program, const loops::Node& node, const Iteration& it)
      : program_(program), node_(node), it_(it), body_(node.body) {}

  NodePlan plan() {
    choose_domains();
    if (plan_.empty) return std::move(plan_);
    find_hazards();
    place_values();
    for (Phase phase : {Phase::before, Phase::during, Phase::after, Phase::tail}) emit_phase(phase);
    redirect_stores();
    allocate();
    return std::move(plan_);
  }

 private:
  // --- Domains ---

  void choose_domains() {
    STAX_CHECK(it_.extents.size() <= kMaxDims, "[reference] expected at most {} loop dimensions, got {}",
               kMaxDims, it_.extents.size());
    plan_.extents = it_.extents;
    const auto dims = static_cast<int32_t>(it_.extents.size());
    plan_.work = 1;
    for (int64_t e : it_.extents) plan_.work *= std::max<int64_t>(e, 1);
    for (int32_t d = 0; d < it_.iteration_dims; ++d) plan_.empty = plan_.empty || it_.extents[d] == 0;
    if (plan_.empty) return;
    plan_.mode = !it_.collective ? Mode::pointwise : choose_mode();
    if (plan_.mode == Mode::inner) {
      plan_.reduction = suffix(it_.iteration_dims, dims);
    } else {
      plan_.iteration = suffix(0, it_.iteration_dims);
    }
    scalars(0, it_.iteration_dims, plan_.iteration, plan_.iteration_scalars, plan_.iteration_points);
    scalars(it_.iteration_dims, dims, plan_.reduction, plan_.reduction_scalars, plan_.reduction_points);
    if (it_.empty_reduction) plan_.reduction_points = 0;
    if (plan_.mode == Mode::outer) share_columns();
  }

  /// A long reduction of few columns: narrower blocks, so that every thread gets some.
  void share_columns() {
    const int64_t columns = plan_.iteration.size, wanted = 2 * device::ThreadPool::global().size();
    if (plan_.work < kWorthSharing || plan_.iteration_points * (columns / kBlock) >= wanted) return;
    const int64_t share = columns * plan_.iteration_points / wanted;
    plan_.block = std::clamp(share / kNarrowest * kNarrowest, kNarrowest, kBlock);
  }

  /// The innermost dimensions in [first, last) that together are wide enough.
  Domain suffix(int32_t first, int32_t last) const {
    Domain domain;
    for (int32_t d = last; d-- > first && (domain.size < kWideEnough || domain.dims.empty());) {
      domain.dims.insert(domain.dims.begin(), d);
      domain.extents.insert(domain.extents.begin(), it_.extents[d]);
      domain.size *= it_.extents[d];
    }
    return domain;
  }

  void scalars(int32_t first, int32_t last, const Domain& domain, std::vector<int32_t>& out,
               int64_t& points) const {
    for (int32_t d = first; d < last; ++d) {
      if (std::find(domain.dims.begin(), domain.dims.end(), d) != domain.dims.end()) continue;
      out.push_back(d);
      points *= it_.extents[d];
    }
  }

  /// Vectors go along the reduction where loads are contiguous there and it is long enough to be worth it.
  Mode choose_mode() const {
    const auto dims = static_cast<int32_t>(it_.extents.size());
    if (it_.iteration_dims == 0) return Mode::inner;
    if (it_.iteration_dims == dims) return Mode::outer;
    const int32_t i = it_.iteration_dims - 1, r = dims - 1;
    int64_t along_iteration = 0, along_reduction = 0, iterations = 1, reductions = 1;
    for (int32_t d = 0; d < dims; ++d) (d <= i ? iterations : reductions) *= it_.extents[d];
    for (size_t k = 0; k < body_.size(); ++k) {
      if (body_[k].op != OpCode::load) continue;
      const auto& strides = it_.indices[k].strides;
      if (strides[r] == 0) continue;  // loaded once an iteration either way
      along_reduction += std::abs(strides[r]) == 1;
      along_iteration += std::abs(strides[i]) <= 1;
    }
    if (reductions < 16 && iterations >= reductions) return Mode::outer;
    if (iterations < 16) return Mode::inner;
    if (along_reduction != along_iteration) {
      return along_reduction > along_iteration ? Mode::inner : Mode::outer;
    }
    return reductions >= iterations ? Mode::inner : Mode::outer;
  }

  const Domain& domain(Phase phase) const {
    const bool along_reduction =
        plan_.mode == Mode::inner && (phase == Phase::during || phase == Phase::tail);
    return along_reduction ? plan_.reduction : plan_.iteration;
  }

  // --- What runs in which phase ---

  /// A node that writes an input may write what it still has to read: its loads copy.
  void find_hazards() {
    size_t first_store = body_.size();
    for (size_t i = 0; i < body_.size(); ++i) {
      if (info(body_[i].op).kind != OpKind::store) continue;
      const Buffer& buffer = program_.buffers[body_[i].buffer];
      ++stores_[body_[i].buffer];
      if (buffer.role == BufferRole::input) first_store = std::min(first_store, i);
    }
    for (const Inst& inst : body_) {
      if (inst.op == OpCode::load) loaded_[inst.buffer] = true;
      if (inst.op == OpCode::load && stores_.count(inst.buffer)) loads_copy_ = true;
    }
    if (first_store + 1 < body_.size()) loads_copy_ = true;
  }
  using Buffer = loops::Buffer;

  void place_values() {
    const size_t n = body_.size();
    over_ = it_.collective ? loops::over_reduction(body_) : std::vector<bool>(n, false);
    after_reduce_.resize(n);
    std::vector<bool> reduce_needs(n), tail_needs(n), needed(n);
    for (size_t i = 0; i < n; ++i) {
      after_reduce_[i] = info(body_[i].op).kind == OpKind::reduce;
      for (ValueId a : operands(i)) after_reduce_[i] = after_reduce_[i] || after_reduce_[a];
    }
    for (size_t i = n; i-- > 0;) {
      const OpKind kind = info(body_[i].op).kind;
      if (kind == OpKind::store) (over_[i] ? tail_needs : needed)[i] = true;
      // A failing index is an error whether or not its value is used.
      if (body_[i].op == OpCode::check_index && !reduce_needs[i] && !needed[i]) {
        (over_[i] ? tail_needs : needed)[i] = true;
      }
      const bool used = needed[i] || tail_needs[i] || reduce_needs[i];
      for (ValueId a : operands(i)) {
        if (!over_[a]) needed[a] = needed[a] || used;
        if (over_[a] && kind == OpKind::reduce) reduce_needs[a] = reduce_needs[a] || used;
        if (over_[a] && kind != OpKind::reduce) {
          tail_needs[a] = tail_needs[a] || tail_needs[i];
          reduce_needs[a] = reduce_needs[a] || reduce_needs[i];
        }
      }
    }
    for (size_t i = 0; i < n; ++i) {
      const auto id = static_cast<ValueId>(i);
      if (info(body_[i].op).kind == OpKind::reduce) {
        if (needed[i]) lists_[1].push_back(id), lists_[2].push_back(id);
        continue;
      }
      if (reduce_needs[i]) lists_[1].push_back(id);
      if (tail_needs[i]) lists_[3].push_back(id);
      if (needed[i] && !over_[i]) lists_[after_reduce_[i] ? 2 : 0].push_back(id);
    }
  }

  std::vector<ValueId> operands(size_t i) const {
    std::vector<ValueId> out = body_[i].args;
    out.insert(out.end(), body_[i].indirect.begin(), body_[i].indirect.end());
    return out;
  }

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

  std::vector<Step>& steps(Phase phase) {
    std::vector<Step>* lists[] = {&plan_.before, &plan_.during, &plan_.after, &plan_.tail};
    return *lists[static_cast<int>(phase)];
  }
  Step& push(Step step) {
    steps(phase_).push_back(std::move(step));
    return steps(phase_).back();
  }

  /// The register itself where it varies along the block, or the block has one element; otherwise a copy in
  /// every element.
  int32_t splat(int32_t r) {
    if (!uniform(r) || domain(phase_).dims.empty()) return r;
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
    const Domain& d = domain(phase_);
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

  void emit_phase(Phase phase) {
    phase_ = phase;
    for (ValueId v : lists_[static_cast<int>(phase)]) emit(v);
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
    if (info(body_[source].op).kind == OpKind::scan) {
      return inst.number == 0 ? reg(source) : second_[{phase_, source}];
    }
    return finish(source, inst.number, inst.dtype);
  }

  int32_t finish(ValueId source, int32_t number, DType dtype) {
    const bool is_uniform = domain(phase_).dims.empty();
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
    const ScanKernels& k = block_kernels().scan[static_cast<int>(inst.op)][static_cast<int>(dtype)];
    STAX_CHECK(k.init, "[reference] {} is not defined for {}", info(inst.op).name, name(dtype));
    Step step{.kind = StepKind::scan, .dtype = dtype, .a = splat(reg(inst.args[0]))};
    step.number = static_cast<int32_t>(plan_.scans.size());
    plan_.scans.push_back({.scan = k});
    step.out = new_register(inst.dtype, domain(phase_).dims.empty());
    if (loops::result_count(inst.op) == 2) {
      step.out2 = second_[{phase_, v}] = new_register(DType::int64, domain(phase_).dims.empty());
    }
    return push(std::move(step)).out;
  }

  void store(ValueId v, const Inst& inst) {
    Step step{.dtype = program_.buffers[inst.buffer].dtype};
    step.kind = inst.op == OpCode::store ? StepKind::store : StepKind::atomic_add;
    step.access = memory_access(v);
    step.a = splat(reg(inst.args[0]));
    if (inst.args.size() > 1) step.c = splat(reg(inst.args[1]));
    step.uniform = domain(phase_).dims.empty();
    push(std::move(step));
  }

  // --- After all steps are there ---

  /// A value that is stored contiguously is computed in place, unless a load could notice.
  void redirect_stores() {
    for (Phase phase : {Phase::before, Phase::during, Phase::after, Phase::tail}) {
      auto& list = steps(phase);
      for (size_t i = list.size(); i-- > 0;) {
        const Step& s = list[i];
        if (s.kind != StepKind::store || s.c >= 0 || is_half(s.dtype) || s.uniform) continue;
        const Access& a = s.access;
        if (!a.linear || a.stride != 1 || a.offsets >= 0 || a.offset >= 0) continue;
        if (stores_[a.buffer] != 1 || loaded_.count(a.buffer)) continue;
        if (program_.buffers[a.buffer].role == BufferRole::input) continue;
        if (domain_points(phase) * itemsize(s.dtype) > device::last_level_cache_bytes()) {
          list[i].stream = plan_.streams = true;
          continue;
        }
        const auto producer = std::find_if(list.begin(), list.begin() + static_cast<int64_t>(i),
                                           [&](const Step& p) { return p.out == s.a; });
        if (producer == list.begin() + static_cast<int64_t>(i) || producer->kind != StepKind::elementwise ||
            producer->direct || producer->uniform) {
          continue;
        }
        producer->direct = true;
        producer->access = a;
        list.erase(list.begin() + static_cast<int64_t>(i));
      }
    }
  }

  /// How often an element of the phase is computed: the points of the space that it runs in.
  int64_t domain_points(Phase phase) const {
    const bool both = phase == Phase::during || phase == Phase::tail;
    return plan_.iteration.size * plan_.iteration_points *
           (both ? plan_.reduction.size * plan_.reduction_points : 1);
  }

  int64_t take_bytes(int64_t bytes) {
    const int64_t at = plan_.workspace;
    plan_.workspace += (bytes + 63) / 64 * 64 + 64;
    return at;
  }

  /// Gives registers their places, all of one size, for only one domain of a node has vectors; within a
  /// phase, places of values that are no longer used come back.
  void allocate() {
    std::vector<std::pair<Phase, size_t>> last(plan_.registers.size(), {Phase::before, 0});
    std::vector<Phase> defined(plan_.registers.size(), Phase::before);
    const Phase phases[] = {Phase::before, Phase::during, Phase::after, Phase::tail};
    for (Phase phase : phases) {
      for (size_t i = 0; i < steps(phase).size(); ++i) {
        const Step& s = steps(phase)[i];
        for (int32_t r : {s.a, s.b, s.c, s.access.offset, s.access.offsets, s.out, s.out2}) {
          if (r >= 0) last[r] = {phase, i};
        }
        if (s.out >= 0) defined[s.out] = phase;
        if (s.out2 >= 0) defined[s.out2] = phase;
      }
    }
    std::vector<int64_t> free;
    for (Phase phase : phases) {
      for (size_t i = 0; i < steps(phase).size(); ++i) {
        const Step& s = steps(phase)[i];
        for (int32_t r : {s.out, s.out2}) {
          if (r < 0 || (r == s.out && s.direct)) continue;
          Register& reg = plan_.registers[r];
          if (reg.uniform) {
            reg.offset = take_bytes(8);
          } else if (!free.empty()) {
            reg.offset = free.back();
            free.pop_back();
          } else {
            reg.offset = take_bytes(8 * std::min(plan_.block, domain(phase).size));
          }
        }
        release(s, phase, i, last, defined, free);
      }
    }
    for (Register& reg : plan_.registers) {
      if (reg.kind == Register::Kind::scalar) reg.offset = take_bytes(8);
    }
    for (auto* list : {&plan_.reductions, &plan_.scans}) {
      for (Collective& c : *list) {
        const int64_t lanes = plan_.mode == Mode::outer ? plan_.block : kLanes;
        c.offset = take_bytes(lanes * std::max(c.reduce.bytes_per_lane, c.scan.bytes_per_lane) + 64);
      }
    }
  }

  void release(const Step& s, Phase phase, size_t i, const std::vector<std::pair<Phase, size_t>>& last,
               const std::vector<Phase>& defined, std::vector<int64_t>& free) {
    std::vector<int32_t> done;
    for (int32_t r : {s.a, s.b, s.c, s.access.offset, s.access.offsets, s.out, s.out2}) {
      if (r < 0 || std::find(done.begin(), done.end(), r) != done.end()) continue;
      done.push_back(r);
      const Register& reg = plan_.registers[r];
      if (reg.uniform || reg.kind != Register::Kind::slot || reg.offset < 0) continue;
      if (defined[r] == phase && last[r] == std::make_pair(phase, i)) free.push_back(reg.offset);
    }
  }

  const loops::Program& program_;
  const loops::Node& node_;
  const Iteration& it_;
  const loops::Body& body_;
  NodePlan plan_;
  Phase phase_ = Phase::before;
  std::vector<bool> over_, after_reduce_;
  std::vector<ValueId> lists_[4];
  std::map<ValueId, int32_t> values_[4];
  std::map<int32_t, int32_t> splats_[4];
  std::map<std::pair<DType, uint64_t>, int32_t> constants_;
  std::map<ValueId, int32_t> collectives_;
  std::map<std::pair<Phase, ValueId>, int32_t> second_;
  std::map<BufferId, int32_t> stores_;
  std::map<BufferId, bool> loaded_;
  bool loads_copy_ = false;
};

}  // namespace

NodePlan plan_node(const loops::Program& program, const loops::Node& node,
                   const std::function<int64_t(Symbol)>& value_of) {
  const Iteration it = make_iteration(program, node, value_of);
  return Planner(program, node, it).plan();
}

}  // namespace stax::reference
