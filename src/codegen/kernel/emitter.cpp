#include "codegen/kernel/emitter.h"

#include <algorithm>

#include "support/check.h"

namespace stax::codegen {

using loops::Constant;
using loops::Inst;
using loops::OpCode;
using loops::OpCost;
using loops::OpKind;
using loops::ValueId;

namespace {

/// How many vectors to compute alternately in a loop over `body`: what the registers hold, and 1 unless it is
/// a long chain of cheap instructions between loads and stores of vectors.
int32_t interleaved_copies(const std::vector<Statement>& body, int vector_bytes) {
  constexpr size_t kFewest = 8, kMost = 64;
  std::map<Var, size_t> last_use;
  size_t computed = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    const Statement& s = body[i];
    const bool regular = s.mask < 0 && s.access != Access::indexed;
    if (s.action == Action::compute) {
      if (++computed > kMost || loops::info(s.op).cost == OpCost::costly) return 1;
    } else if (s.action == Action::store ? !regular || s.access != Access::contiguous
                                         : s.action != Action::constant && s.action != Action::scalar &&
                                               !(s.action == Action::load && regular)) {
      return 1;
    }
    for (Var a : s.args) last_use[a] = i;
  }
  for (const Statement& s : body)
    if (s.action == Action::constant || s.action == Action::scalar) last_use.erase(s.out);
  if (computed < kFewest) return 1;
  size_t live = 0, most = 0, shared = 0;
  std::vector<int> ends(body.size());
  for (const auto& [var, at] : last_use) ++ends[at];
  for (size_t i = 0; i < body.size(); ++i) {
    const Statement& s = body[i];
    const bool same = s.action == Action::constant || s.action == Action::scalar ||
                      (s.action == Action::load && s.access == Access::uniform);
    if (same) {
      ++shared;
      continue;
    }
    live += s.out >= 0;
    most = std::max(most, live);
    live -= std::min(live, static_cast<size_t>(ends[i]));
  }
  const size_t registers = vector_bytes >= 64 ? 32 : 16;
  for (int32_t n : {4, 2})
    if (shared + n * most + 2 <= registers) return n;
  return 1;
}

}  // namespace

Emitter::Emitter(const loops::Program& program, const schedule::Group& group, const FlatGroup& flat,
                 const Layout& layout, Kernel& kernel, Numbering& numbering)
    : out_(&kernel.body),
      program_(program),
      group_(group),
      flat_(flat),
      layout_(layout),
      kernel_(kernel),
      numbering_(numbering) {
  env_.assign(flat.body.size(), -1);
  for (const Inst& inst : flat.body)
    if (inst.buffer >= 0) argument(inst.buffer, is_store(inst.op));
  varies_ = varying(flat, layout);
}

int32_t Emitter::argument(loops::BufferId buffer, bool written) {
  auto [it, is_new] = numbering_.arguments.emplace(buffer, static_cast<int32_t>(numbering_.arguments.size()));
  if (is_new) {
    kernel_.info.buffers.push_back(buffer);
    kernel_.arguments.push_back(program_.buffers[buffer].dtype);
    kernel_.written.push_back(false);
  }
  if (written) kernel_.written[it->second] = true;
  return it->second;
}

Statement& Emitter::add(Statement statement) {
  out_->push_back(std::move(statement));
  return out_->back();
}

void Emitter::in(std::vector<Statement>& list, const Body& body) {
  auto* outer = out_;
  auto env = env_;
  const Var tail = tail_;
  out_ = &list;
  body();
  out_ = outer;
  env_ = std::move(env);
  tail_ = tail;
}

namespace {

// Copies of a loop's body: so often, and so many statements in all. Nests of unrolled loops with long bodies
// take the host compiler minutes.
constexpr int64_t kMostCopies = 8, kMostUnrolled = 512;

/// Statements, those of unrolled loops once a copy.
int64_t unrolled_size(const std::vector<Statement>& list) {
  int64_t size = 0;
  for (const Statement& s : list) {
    size += 1 + unrolled_size(s.body) * std::max(1, s.unroll) + unrolled_size(s.other);
  }
  return size;
}

}  // namespace

void Emitter::loop(Symbol symbol, Expr begin, Expr end, Expr step, const Body& body) {
  Statement loop{.action = Action::loop, .index = begin, .end = end, .step = step, .symbol = symbol};
  in(loop.body, body);
  const auto from = begin.constant(), to = end.constant();
  if (from && to && step.is(1)) {
    const int64_t copies = std::max<int64_t>(1, *to - *from);
    if (copies <= kMostCopies && copies * unrolled_size(loop.body) <= kMostUnrolled) {
      loop.unroll = static_cast<int32_t>(copies);
    }
  }
  add(std::move(loop));
}

void Emitter::vector_loop(Symbol symbol, Expr lo, Expr hi, const Body& body, const Statement* aligned) {
  const int64_t lanes = layout_.lanes;
  const auto extent = (hi - lo).constant();
  auto tail_part = [&](Expr count) {
    add({.action = Action::let, .index = count, .symbol = kTailCount});
    partial_ = true;
    tail_ = -1;
    body();
    partial_ = false;
  };
  if (extent && *extent <= 0) return;
  if (layout_.one_vector && symbol == layout_.vector) {
    Statement block{.action = Action::block};
    in(block.body, [&] {
      add({.action = Action::let, .index = lo, .symbol = symbol});
      tail_part(hi - lo);
    });
    return void(add(std::move(block)));
  }
  if (aligned != nullptr) {
    // A partial vector up to a boundary, full vectors while there are any, a partial vector.
    Statement outer{.action = Action::loop, .index = lo, .end = hi, .step = 0, .symbol = symbol};
    in(outer.body, [&] {
      Statement room = *aligned;
      room.action = Action::room;
      room.symbol = fresh();
      const Expr count = room.symbol;
      add(room);
      const Expr step = let(min(count, hi - Expr(symbol)));
      Statement when{.action = Action::when, .index = Expr(lanes - 1), .end = step};
      in(when.body, [&] {
        aligned_ = aligned;
        full_vectors(symbol, hi, body);
        aligned_ = nullptr;
      });
      in(when.other, [&] {
        tail_part(step);
        add({.action = Action::set, .index = Expr(symbol) + step, .symbol = symbol});
      });
      add(std::move(when));
    });
    add(std::move(outer));
    return;
  }
  if (extent && *extent % lanes == 0) {
    Statement even{.action = Action::loop, .index = lo, .end = hi, .step = lanes, .symbol = symbol};
    in(even.body, body);
    if (*extent < 8 * lanes || interleaved_copies(even.body, kernel_.vector_bytes) == 1)
      return void(add(std::move(even)));
  }
  Statement block{.action = Action::block};
  in(block.body, [&] {
    add({.action = Action::let, .index = lo, .symbol = symbol});
    if (!extent || *extent >= lanes) full_vectors(symbol, hi, body);
    if (extent && *extent % lanes == 0) return;
    Statement when{.action = Action::when, .index = symbol, .end = hi};
    in(when.body, [&] { tail_part(hi - Expr(symbol)); });
    add(std::move(when));
  });
  add(std::move(block));
}

/// The full vectors from `symbol` on. A chain of cheap instructions is written for several vectors at once,
/// an instruction of each in turn: then the processor finds independent work within its window.
void Emitter::full_vectors(Symbol symbol, Expr hi, const Body& body) {
  const int64_t lanes = layout_.lanes;
  auto open_loop = [&](int64_t copies) {
    return Statement{.action = Action::loop,
                     .end = hi - Expr(copies * lanes - 1),
                     .step = copies * lanes,
                     .symbol = symbol,
                     .open = true};
  };
  Statement one = open_loop(1);
  in(one.body, body);
  if (const int32_t n = interleaved_copies(one.body, kernel_.vector_bytes); n > 1) {
    std::vector<std::vector<Statement>> copies(static_cast<size_t>(n));
    for (int32_t k = 0; k < n; ++k) {
      shift(symbol, k * lanes);
      in(copies[k], body);
    }
    shift(symbol, 0);
    Statement several = open_loop(n);
    for (size_t i = 0; i < one.body.size(); ++i)
      for (auto& copy : copies) several.body.push_back(std::move(copy[i]));
    add(std::move(several));
  }
  add(std::move(one));
}

Symbol Emitter::let(Expr value) {
  const Symbol symbol = fresh();
  add({.action = Action::let, .index = value, .symbol = symbol});
  return symbol;
}

int32_t Emitter::array(DType dtype, Expr elements, bool scratch) {
  const int32_t pointer = static_cast<int32_t>(kernel_.arguments.size()) + numbering_.arrays++;
  Statement s{
      .action = Action::array, .dtype = dtype, .pointer = pointer, .index = elements, .partial = scratch};
  if (scratch) {
    s.end = kernel_.info.scratch_bytes;
    kernel_.info.scratch_bytes += ceil_div(elements * std::max<int64_t>(itemsize(dtype), 1), 64) * 64;
  }
  add(std::move(s));
  return pointer;
}

Var Emitter::define(Statement statement) {
  statement.out = numbering_.next_var++;
  add(std::move(statement));
  return numbering_.next_var - 1;
}

Var Emitter::compute(OpCode op, DType dtype, std::vector<Var> args) {
  add({.action = Action::compute,
       .op = op,
       .dtype = dtype,
       .out = numbering_.next_var,
       .args = std::move(args)});
  return numbering_.next_var++;
}

Var Emitter::constant(DType dtype, Constant number) {
  add({.action = Action::constant, .dtype = dtype, .out = numbering_.next_var, .number = number});
  return numbering_.next_var++;
}

Var Emitter::load_array(int32_t pointer, DType dtype, Expr index) {
  add({.action = Action::load,
       .dtype = dtype,
       .out = numbering_.next_var,
       .pointer = pointer,
       .access = Access::contiguous,
       .index = at(index)});
  return numbering_.next_var++;
}

void Emitter::store_array(int32_t pointer, DType dtype, Expr index, Var value) {
  add({.action = Action::store,
       .dtype = dtype,
       .args = {value},
       .pointer = pointer,
       .access = Access::contiguous,
       .index = at(index)});
}

void Emitter::assign(Var to, Var value) {
  add({.action = Action::assign, .out = to, .args = {value}});
}

Var Emitter::copy(Var value, DType dtype) {
  add({.action = Action::assign, .dtype = dtype, .out = numbering_.next_var, .args = {value}, .open = true});
  return numbering_.next_var++;
}

Var Emitter::tail() {
  if (tail_ < 0) {
    add({.action = Action::tail, .dtype = DType::boolean, .out = numbering_.next_var});
    tail_ = numbering_.next_var++;
  }
  return tail_;
}

Var Emitter::lane_index(Expr e, const std::vector<Var>& indirect) {
  auto splat = [&](Expr value) {
    add({.action = Action::splat, .dtype = DType::int64, .out = numbering_.next_var, .index = value});
    return numbering_.next_var++;
  };
  const bool along = layout_.along != VectorAlong::nothing && e.contains(layout_.vector);
  if (!along && !e.contains(SymbolKind::indirect)) return splat(e);
  if (e.kind() == ExprKind::symbol && e.symbol().kind == SymbolKind::indirect)
    return indirect.at(e.symbol().number);
  if (along && !e.contains(SymbolKind::indirect)) {
    if (auto stride = stride_of(e, layout_.vector)) {
      const Var base = splat(e);
      add({.action = Action::iota, .dtype = DType::int64, .out = numbering_.next_var});
      Var lanes = numbering_.next_var++;
      if (!stride->is(1)) lanes = compute(OpCode::mul, DType::int64, {lanes, splat(*stride)});
      return compute(OpCode::add, DType::int64, {base, lanes});
    }
  }
  auto fold = [&](OpCode op) {
    Var all = -1;
    Expr rest = op == OpCode::mul ? 1 : 0;  // what is the same in all lanes, together
    for (Expr a : e.args()) {
      if (!a.contains(layout_.vector) && !a.contains(SymbolKind::indirect) && op != OpCode::minimum &&
          op != OpCode::maximum) {
        rest = op == OpCode::mul ? rest * a : rest + a;
        continue;
      }
      const Var next = lane_index(a, indirect);
      all = all < 0 ? next : compute(op, DType::int64, {all, next});
    }
    const bool neutral = op == OpCode::mul ? rest.is(1) : rest.is(0);
    return neutral ? all : compute(op, DType::int64, {all, splat(rest)});
  };
  switch (e.kind()) {
    case ExprKind::add:
      return fold(OpCode::add);
    case ExprKind::mul:
      return fold(OpCode::mul);
    case ExprKind::min:
      return fold(OpCode::minimum);
    case ExprKind::max:
      return fold(OpCode::maximum);
    case ExprKind::floor_div:
      return compute(OpCode::floor_div, DType::int64,
                     {lane_index(e.args()[0], indirect), lane_index(e.args()[1], indirect)});
    case ExprKind::mod:
      return compute(OpCode::remainder, DType::int64,
                     {lane_index(e.args()[0], indirect), lane_index(e.args()[1], indirect)});
    case ExprKind::constant:
    case ExprKind::symbol:
      break;
  }
  STAX_ASSERT(false, "no lanes for the index {}", e.str());
}

Statement Emitter::access_of(const Inst& inst) {
  Statement s{.dtype = program_.buffers[inst.buffer].dtype, .pointer = numbering_.arguments.at(inst.buffer)};
  const size_t operands = inst.op == OpCode::load ? 0 : 1;
  const ValueId mask = inst.args.size() > operands ? inst.args[operands] : -1;
  Expr index = at(inst.index);
  std::vector<Var> indirect;
  bool scattered = false;  // an index that differs from lane to lane in no regular way
  for (size_t k = 0; k < inst.indirect.size(); ++k) {
    const Symbol t{SymbolKind::indirect, static_cast<int32_t>(k)};
    indirect.push_back(env_[inst.indirect[k]]);
    if (!index.contains(t)) continue;
    if (varies_[inst.indirect[k]]) {
      scattered = true;
      continue;
    }
    const Symbol x = fresh();
    add({.action = Action::extract, .args = {indirect.back()}, .symbol = x});
    index = substitute(index, t, x);
  }
  s.index = index;
  s.partial = partial_;
  if (mask >= 0) s.mask = env_[mask];
  const bool mask_varies = mask >= 0 && varies_[mask];
  std::optional<Expr> stride;
  if (!scattered) stride = layout_.along == VectorAlong::nothing ? Expr(0) : stride_of(index, layout_.vector);
  const auto with_tail = [&] {
    if (!partial_) return;
    s.mask = s.mask < 0 ? tail() : compute(OpCode::bitwise_and, DType::boolean, {s.mask, tail()});
  };
  if (stride && stride->is(1) && mask >= 0) {
    s.access = Access::contiguous;
    with_tail();
  } else if (!stride || (mask >= 0 && (mask_varies || !stride->is(0)))) {
    s.access = Access::indexed;
    s.lane_index = lane_index(index, indirect);
    s.index = 0;
    with_tail();
  } else if (stride->is(0)) {
    s.access = Access::uniform;
  } else if (stride->is(1)) {
    s.access = Access::contiguous;
  } else {
    s.access = Access::strided;
    s.stride = *stride;
  }
  return s;
}

void Emitter::emit_load(ValueId id, const Inst& inst) {
  Statement s = access_of(inst);
  s.action = Action::load;
  s.out = env_[id] = numbering_.next_var++;
  add(std::move(s));
}

void Emitter::emit_store(ValueId id, const Inst& inst) {
  Statement s = access_of(inst);
  s.action = inst.op == OpCode::atomic_add ? Action::atomic_add : Action::store;
  s.args = {env_[inst.args[0]]};
  if (s.action == Action::atomic_add && s.access != Access::indexed) {
    // Lanes add one by one where each is a point of its own. Where all hold the one value of an iteration, it
    // is added once.
    const bool once = layout_.along == VectorAlong::nothing ||
                      (layout_.along == VectorAlong::reduction && !flat_.over_reduction[id]);
    STAX_ASSERT(!once || s.access == Access::uniform, "atomic_add of one value to several places");
    if (!once) {
      s.access = Access::indexed;
      s.lane_index = lane_index(s.index, {});
      s.index = 0;
      if (partial_)
        s.mask = s.mask < 0 ? tail() : compute(OpCode::bitwise_and, DType::boolean, {s.mask, tail()});
    }
  }
  s.stream = s.action == Action::store && layout_.stream && s.access == Access::contiguous && !partial_ &&
             s.mask < 0;
  if (s.stream && aligned_ != nullptr && aligned_->pointer == s.pointer) {
    const auto apart = (s.index - aligned_->index).constant();
    s.aligned = apart && *apart % layout_.lanes == 0;
  }
  add(std::move(s));
}

void Emitter::emit_unmasked(ValueId id) {
  Inst inst = flat_.body[id];
  inst.args.resize(inst.op == OpCode::load ? 0 : 1);
  inst.op == OpCode::load ? emit_load(id, inst) : emit_store(id, inst);
}

void Emitter::emit(ValueId id) {
  const Inst& inst = flat_.body[id];
  switch (loops::info(inst.op).kind) {
    case OpKind::leaf:
      return emit_leaf(id, inst);
    case OpKind::store:
      return emit_store(id, inst);
    case OpKind::special:
      return emit_special(id, inst);
    case OpKind::cast:
      env_[id] = define({.action = Action::compute,
                         .op = inst.op,
                         .dtype = inst.dtype,
                         .args = vars(inst.args),
                         .count = static_cast<int64_t>(flat_.body[inst.args[0]].dtype)});
      return;
    case OpKind::unary:
    case OpKind::binary:
    case OpKind::ternary: {
      // Predicates compute in the dtype of their operands.
      const DType dtype = inst.op == OpCode::where ? inst.dtype : flat_.body[inst.args[0]].dtype;
      env_[id] = compute(inst.op, dtype, vars(inst.args));
      return;
    }
    case OpKind::reduce:
    case OpKind::scan:
      break;
  }
  STAX_ASSERT(false, "{} is a matter of the passes", loops::info(inst.op).name);
}

std::vector<Var> Emitter::vars(const std::vector<ValueId>& ids) const {
  std::vector<Var> out;
  for (ValueId id : ids) out.push_back(env_[id]);
  return out;
}

void Emitter::emit_leaf(ValueId id, const Inst& inst) {
  if (inst.op == OpCode::load) return emit_load(id, inst);
  if (inst.op == OpCode::constant)
    env_[id] = constant(inst.dtype, inst.constant);
  else if (inst.op == OpCode::scalar)
    env_[id] = define({.action = Action::scalar, .dtype = inst.dtype, .count = inst.number});
  else
    env_[id] = lane_index(at(inst.index), vars(inst.indirect));
}

void Emitter::emit_special(ValueId id, const Inst& inst) {
  Statement s{.dtype = DType::int64, .args = vars(inst.args)};
  if (inst.op == OpCode::check_index) {
    if (partial_ && varies_[id]) {
      if (s.args.size() > 1)
        s.args[1] = compute(OpCode::bitwise_and, DType::boolean, {s.args[1], tail()});
      else
        s.args.push_back(tail());
    }
    s.action = Action::check;
    s.count = flat_.node[id];
    s.index = at(inst.index);
    s.partial = inst.number == 1;
  } else {
    STAX_ASSERT(inst.op == OpCode::random_bits, "{} is a matter of the passes", loops::info(inst.op).name);
    s.action = Action::random;
    s.count = inst.number;
  }
  env_[id] = define(std::move(s));
}

}  // namespace stax::codegen
