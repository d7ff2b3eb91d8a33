#include <algorithm>
#include <set>

#include "loops/analysis.h"
#include "loops/fold.h"
#include "loops/program.h"
#include "support/check.h"

namespace stax::loops {

namespace {

/// Checks one node; every failure names the node and the instruction.
class NodeVerifier {
 public:
  NodeVerifier(const Program& program, const Node& node) : program_(program), node_(node) {
    for (const auto& b : program.bindings) bound_.insert(b.symbol);
    for (const Node& earlier : program.nodes) {
      if (&earlier == &node) break;
      for (const ResultBinding& b : earlier.binds) bound_.insert(b.symbol);
    }
  }

  void run() {
    if (node_.kind == NodeKind::external) return external();
    for (Expr e : node_.ranges) symbols(e, false, 0, "a range");
    for (Expr e : node_.reduction_ranges) symbols(e, false, 0, "a reduction range");
    over_ = over_reduction(node_.body);
    for (at_ = 0; at_ < node_.body.size(); ++at_) instruction(node_.body[at_]);
  }

 private:
  [[noreturn]] void fail(const std::string& rule) const {
    std::string op;
    if (node_.kind == NodeKind::loops && at_ < node_.body.size()) {
      op = fmt::format(", v{} = {}", at_, info(node_.body[at_].op).name);
    }
    throw InternalError(
        fmt::format("[loops verifier] node {} ({}){}: {}", node_.name, node_.origin, op, rule));
  }
  void check(bool condition, const std::string& rule) const {
    if (!condition) fail(rule);
  }
  DType dtype(ValueId v) const { return node_.body[v].dtype; }

  void symbols(Expr e, bool loop_variables, size_t indirect, std::string_view what) const {
    for (Symbol s : e.symbols()) {
      bool known = false;
      switch (s.kind) {
        case SymbolKind::size:
        case SymbolKind::unbacked:
          known = bound_.count(s) != 0;
          break;
        case SymbolKind::index:
          known = loop_variables && s.number < static_cast<int32_t>(node_.ranges.size());
          break;
        case SymbolKind::reduction:
          known = loop_variables && s.number < static_cast<int32_t>(node_.reduction_ranges.size());
          break;
        case SymbolKind::indirect:
          known = s.number < static_cast<int32_t>(indirect);
          break;
        case SymbolKind::block:
          break;
      }
      check(known, fmt::format("symbol {} of {} ({}) is bound by nothing", s.str(), what, e.str()));
    }
  }

  void external() const {
    check(!node_.function.empty(), "an external node has no function");
    check(!node_.results.empty(), "an external node has no result");
    for (const Operand& r : node_.results) {
      check(r.buffer >= 0 && r.buffer < static_cast<BufferId>(program_.buffers.size()),
            "a result is no buffer of the program");
    }
  }

  void instruction(const Inst& inst) const {
    for (ValueId a : inst.args) operand(a);
    for (ValueId a : inst.indirect) {
      operand(a);
      check(dtype(a) == DType::int64, fmt::format("indirect index v{} is not int64", a));
    }
    check(!is_half(inst.dtype), "half types are no dtype of a value");
    const OpKind kind = info(inst.op).kind;
    const size_t plain = static_cast<size_t>(info(inst.op).operands);
    check(inst.args.size() == plain || (takes_mask(inst) && inst.args.size() == plain + 1),
          fmt::format("{} operands where {} are expected", inst.args.size(), plain));
    if (const ValueId mask = mask_of(inst); mask >= 0) {
      check(dtype(mask) == DType::boolean, fmt::format("mask v{} is not bool", mask));
    }
    symbols(inst.index, true, inst.indirect.size(), "the index");
    if (info(inst.op).result == OpResult::int64) check(inst.dtype == DType::int64, "the result is int64");
    if (is_predicate(inst.op)) check(inst.dtype == DType::boolean, "a predicate gives bool");
    switch (kind) {
      case OpKind::leaf:
        return leaf(inst);
      case OpKind::unary:
      case OpKind::binary:
        return arithmetic(inst);
      case OpKind::ternary:
        return ternary(inst);
      case OpKind::cast:
        return check(inst.op == OpCode::cast || itemsize(inst.dtype) == itemsize(dtype(inst.args[0])),
                     "bitcast between dtypes of different sizes");
      case OpKind::special:
        return special(inst);
      case OpKind::reduce:
      case OpKind::scan:
        return reduction(inst);
      case OpKind::store:
        return store(inst);
    }
  }

  void operand(ValueId a) const {
    check(a >= 0 && static_cast<size_t>(a) < at_, fmt::format("operand v{} is not defined before it", a));
    check(!is_store(node_.body[a].op), fmt::format("operand v{} is a store", a));
  }

  void leaf(const Inst& inst) const {
    if (inst.op == OpCode::load) {
      check(inst.buffer >= 0 && inst.buffer < static_cast<BufferId>(program_.buffers.size()),
            "load from no buffer of the program");
      const DType stored = program_.buffers[inst.buffer].dtype;
      check(inst.dtype == compute_dtype(stored),
            fmt::format("a {} buffer is loaded as {}", name(stored), name(inst.dtype)));
    }
    if (inst.op == OpCode::scalar) {
      check(inst.number >= 0 && inst.number < static_cast<int32_t>(program_.scalars.size()),
            fmt::format("scalar {} does not exist", inst.number));
      check(inst.dtype == compute_dtype(program_.scalars[inst.number]),
            fmt::format("scalar {} is {}", inst.number, name(program_.scalars[inst.number])));
    }
  }

  void arithmetic(const Inst& inst) const {
    for (ValueId a : inst.args) {
      check(dtype(a) == dtype(inst.args[0]), "operands differ in dtype");
      if (!is_predicate(inst.op)) {
        check(dtype(a) == inst.dtype, "the result's dtype is not that of the operands");
      }
    }
    if (inst.op == OpCode::to_float16 || inst.op == OpCode::to_bfloat16) {
      check(inst.dtype == DType::float32, "rounding to a half type takes float32");
    }
  }

  void ternary(const Inst& inst) const {
    const size_t first = inst.op == OpCode::where ? 1 : 0;
    if (first == 1) check(dtype(inst.args[0]) == DType::boolean, "the condition is not bool");
    for (size_t i = first; i < inst.args.size(); ++i) {
      check(dtype(inst.args[i]) == inst.dtype, "operands differ in dtype");
    }
  }

  void special(const Inst& inst) const {
    if (inst.op != OpCode::result) {
      for (size_t i = 0; i < static_cast<size_t>(info(inst.op).operands); ++i) {
        check(dtype(inst.args[i]) == DType::int64, "operands are int64");
      }
      if (inst.op == OpCode::random_bits)
        check(inst.number >= 0 && inst.number < 4, "Philox has words 0 to 3");
      return;
    }
    const Inst& source = node_.body[inst.args[0]];
    const OpKind kind = info(source.op).kind;
    check(kind == OpKind::reduce || kind == OpKind::scan,
          "result of something other than a reduction or scan");
    check(inst.number >= 0 && inst.number < result_count(source.op),
          fmt::format("{} has no result {}", info(source.op).name, inst.number));
    const DType expected = result_dtype(source.op, inst.number, dtype(source.args[0]));
    check(inst.dtype == expected, fmt::format("result {} is {}", inst.number, name(expected)));
  }

  void reduction(const Inst& inst) const {
    check(!node_.reduction_ranges.empty(), "a reduction or scan in a node without reduction ranges");
    for (ValueId a : inst.args) {
      check(dtype(a) == dtype(inst.args[0]), "operands differ in dtype");
      check(!depends_on_reduce(a), "operand depends on a reduce result of the same body");
    }
    if (inst.op == OpCode::scan_sort)
      check(dtype(inst.args[0]) == DType::int64, "what is sorted is not int64");
    const DType expected = result_dtype(inst.op, 0, dtype(inst.args[0]));
    check(inst.dtype == expected, fmt::format("the result is {}", name(expected)));
  }

  bool depends_on_reduce(ValueId root) const {
    std::vector<bool> seen(node_.body.size());
    std::vector<ValueId> stack{root};
    while (!stack.empty()) {
      const ValueId v = stack.back();
      stack.pop_back();
      if (seen[v]) continue;
      seen[v] = true;
      const Inst& inst = node_.body[v];
      if (is_reduction(inst.op)) return true;
      stack.insert(stack.end(), inst.args.begin(), inst.args.end());
      stack.insert(stack.end(), inst.indirect.begin(), inst.indirect.end());
    }
    return false;
  }

  void store(const Inst& inst) const {
    check(inst.buffer >= 0 && inst.buffer < static_cast<BufferId>(program_.buffers.size()),
          "store to no buffer of the program");
    const Buffer& buffer = program_.buffers[inst.buffer];
    check(inst.dtype == dtype(inst.args[0]), "the store's dtype is not the value's");
    check(
        inst.dtype == compute_dtype(buffer.dtype),
        fmt::format("a {} value is stored into {} of {}", name(inst.dtype), buffer.name, name(buffer.dtype)));
    check(buffer.role != BufferRole::constant, fmt::format("store to constant {}", buffer.name));
    check(buffer.role != BufferRole::input || buffer.mutated,
          fmt::format("store to {}, an input that is not marked mutated", buffer.name));
    if (inst.op != OpCode::store || !over_[inst.args[0]]) return;
    bool varies = inst.index.contains(SymbolKind::reduction);
    for (ValueId a : inst.indirect) varies = varies || over_[a];
    check(varies, fmt::format("a value of reduction space is stored to {}[{}], an index without reduction "
                              "variables",
                              buffer.name, inst.index.str()));
  }

  const Program& program_;
  const Node& node_;
  std::set<Symbol> bound_;
  std::vector<bool> over_;
  size_t at_ = 0;
};

void verify_lists(const Program& p) {
  const auto count = static_cast<BufferId>(p.buffers.size());
  for (const Buffer& b : p.buffers) {
    STAX_ASSERT(b.sizes.size() == b.strides.size(), "[loops verifier] buffer {} has {} sizes and {} strides",
                b.name, b.sizes.size(), b.strides.size());
    STAX_ASSERT(b.role != BufferRole::constant || b.data, "[loops verifier] constant {} has no data", b.name);
  }
  for (BufferId b : p.inputs) {
    STAX_ASSERT(b >= 0 && b < count && p.buffers[b].role == BufferRole::input,
                "[loops verifier] input {} is no buffer of role input", b);
  }
  std::set<BufferId> seen;
  for (BufferId b : p.outputs) {
    STAX_ASSERT(b >= 0 && b < count && p.buffers[b].role == BufferRole::output && seen.insert(b).second,
                "[loops verifier] output {} is no distinct buffer of role output", b);
  }
}

}  // namespace

void verify(const Program& program) {
  verify_lists(program);
  std::set<BufferId> written;
  const auto needs_write = [&](BufferId b) {
    const BufferRole role = program.buffers[b].role;
    return role == BufferRole::intermediate || role == BufferRole::output;
  };
  for (const Node& node : program.nodes) {
    NodeVerifier(program, node).run();
    const auto writes = node.writes();
    for (BufferId b : node.reads()) {
      const bool own = node.kind == NodeKind::loops && std::count(writes.begin(), writes.end(), b) != 0;
      STAX_ASSERT(!needs_write(b) || written.count(b) || own,
                  "[loops verifier] node {} ({}): {} is read before it is written", node.name, node.origin,
                  program.buffers[b].name);
    }
    written.insert(writes.begin(), writes.end());
  }
  for (BufferId b : program.outputs) {
    const Buffer& buffer = program.buffers[b];
    const bool empty = std::any_of(buffer.sizes.begin(), buffer.sizes.end(), [](Expr e) { return e.is(0); });
    STAX_ASSERT(written.count(b) || empty, "[loops verifier] output {} is never written", buffer.name);
  }
}

}  // namespace stax::loops
