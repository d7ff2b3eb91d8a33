#include "loops/program.h"

#include <fmt/core.h>

#include <algorithm>

#include "loops/analysis.h"
#include "loops/constant_text.h"

namespace stax::loops {

namespace {

void add_once(std::vector<BufferId>& list, BufferId buffer) {
  if (std::find(list.begin(), list.end(), buffer) == list.end()) list.push_back(buffer);
}

template <class T, class F>
std::string join(const std::vector<T>& items, std::string_view separator, F&& text) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += separator;
    out += text(items[i]);
  }
  return out;
}

std::string list(const std::vector<Expr>& items) {
  return "[" + join(items, ", ", [](Expr e) { return e.str(); }) + "]";
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

constexpr std::string_view kRoles[] = {"input", "output", "intermediate", "constant"};
constexpr std::string_view kParts[] = {"size", "stride", "value"};

std::string buffer_text(const Buffer& b) {
  std::string out = fmt::format("buffer {} {} {} strides {} {}", b.name, name(b.dtype), list(b.sizes),
                                list(b.strides), kRoles[static_cast<int>(b.role)]);
  if (b.mutated) out += " mutated";
  if (b.data) {
    out += " data ";
    for (std::byte byte : *b.data) out += fmt::format("{:02x}", static_cast<int>(byte));
  }
  return out + "\n";
}

std::string operand_text(const Program& p, const Operand& o) {
  return fmt::format("{} {} {} strides {} offset {}", p.buffers[o.buffer].name, name(o.dtype), list(o.sizes),
                     list(o.strides), o.offset.str());
}

struct ArgumentText {
  const Program& p;
  std::string operator()(NoneType) const { return "none"; }
  std::string operator()(const Operand& o) const { return "tensor " + operand_text(p, o); }
  std::string operator()(const Argument<Operand>::Tensors& list) const {
    return "tensors {" +
           join(list, "; ", [&](const auto& o) { return o ? operand_text(p, *o) : std::string("none"); }) +
           "}";
  }
  std::string operator()(const Number& n) const {
    if (n.is_float()) return "float " + constant_text(DType::float64, Constant::of(n.floating));
    return (n.kind == Number::Kind::boolean ? "bool " : "int ") + n.integer.str();
  }
  std::string operator()(const std::vector<Expr>& v) const { return "ints " + list(v); }
  std::string operator()(const std::vector<double>& v) const {
    return "floats [" +
           join(v, ", ", [](double d) { return constant_text(DType::float64, Constant::of(d)); }) + "]";
  }
  std::string operator()(DType d) const { return fmt::format("dtype {}", name(d)); }
  std::string operator()(const std::string& s) const { return "string " + in_quotes(s); }
};

std::string value_list(const std::vector<ValueId>& ids, std::string_view separator) {
  return join(ids, separator, [](ValueId v) { return fmt::format("v{}", v); });
}

std::string inst_text(const Program& p, const Inst& inst, size_t id) {
  const OpInfo& op = info(inst.op);
  const bool is_store = op.kind == OpKind::store;
  std::string out =
      is_store ? fmt::format("{}", op.name) : fmt::format("v{} = {} {}", id, op.name, name(inst.dtype));
  if (inst.buffer >= 0) out += fmt::format(" {}[{}]", p.buffers[inst.buffer].name, inst.index.str());
  if (inst.op == OpCode::index_value) out += " " + inst.index.str();
  if (inst.op == OpCode::constant) out += " " + constant_text(inst.dtype, inst.constant);
  if (inst.op == OpCode::scalar) out += fmt::format(" {}", inst.number);
  const ValueId mask = mask_of(inst);
  const size_t plain = inst.args.size() - (mask >= 0 ? 1 : 0);
  for (size_t i = 0; i < plain; ++i) out += fmt::format(" v{}", inst.args[i]);
  if (mask >= 0) out += fmt::format(" mask v{}", mask);
  if (!inst.indirect.empty()) out += " indirect " + value_list(inst.indirect, " ");
  if (inst.op == OpCode::check_index) out += " size " + inst.index.str();
  if (inst.op != OpCode::scalar && inst.number != 0) out += fmt::format(" number {}", inst.number);
  return out + "\n";
}

std::string ranges_text(const std::vector<Expr>& ranges, char letter) {
  std::string out = "[";
  for (size_t i = 0; i < ranges.size(); ++i) {
    out += fmt::format("{}{}{} < {}", i ? ", " : "", letter, i, ranges[i].str());
  }
  return out + "]";
}

std::string node_text(const Program& p, const Node& n) {
  if (n.kind == NodeKind::external) {
    std::string out = fmt::format("external {} {} {}\n", n.name, in_quotes(n.origin), in_quotes(n.function));
    for (const auto& a : n.arguments) out += "  argument " + std::visit(ArgumentText{p}, a.value) + "\n";
    for (const auto& r : n.results) out += "  result " + operand_text(p, r) + "\n";
    if (n.dynamic) out += "  dynamic\n";
    for (const ResultBinding& b : n.binds) {
      out += fmt::format("  binds {} {} {}\n", b.symbol.str(), b.result, b.dim);
    }
    return out;
  }
  std::string out = fmt::format("node {} {} {}", n.name, in_quotes(n.origin), ranges_text(n.ranges, 'i'));
  if (!n.reduction_ranges.empty()) out += " " + ranges_text(n.reduction_ranges, 'r');
  out += "\n";
  return out + body_text(p, n.body, 2);
}

void read_operands(const Argument<Operand>& argument, std::vector<BufferId>& out) {
  if (argument.is_tensor()) add_once(out, argument.tensor().buffer);
  if (const auto* list = std::get_if<Argument<Operand>::Tensors>(&argument.value)) {
    for (const auto& o : *list) {
      if (o) add_once(out, o->buffer);
    }
  }
}

}  // namespace

std::vector<BufferId> Node::reads() const {
  std::vector<BufferId> out;
  for (const auto& a : arguments) read_operands(a, out);
  for (const Inst& inst : body) {
    if (inst.op == OpCode::load || inst.op == OpCode::atomic_add) add_once(out, inst.buffer);
  }
  return out;
}

std::vector<BufferId> Node::writes() const {
  std::vector<BufferId> out;
  for (const auto& r : results) add_once(out, r.buffer);
  for (const Inst& inst : body) {
    if (is_store(inst.op)) add_once(out, inst.buffer);
  }
  return out;
}

std::string body_text(const Program& program, const Body& body, int indent) {
  std::string out;
  for (size_t i = 0; i < body.size(); ++i) {
    out += std::string(static_cast<size_t>(indent), ' ') + inst_text(program, body[i], i);
  }
  return out;
}

std::string Program::str() const {
  std::string out;
  for (const Buffer& b : buffers) out += buffer_text(b);
  const auto buffer_name = [&](BufferId b) { return buffers[b].name; };
  out += "inputs [" + join(inputs, ", ", buffer_name) + "]\n";
  out += "outputs [" + join(outputs, ", ", buffer_name) + "]\n";
  if (!scalars.empty()) {
    out += "scalars [" + join(scalars, ", ", [](DType d) { return std::string(stax::name(d)); }) + "]\n";
  }
  for (const SymbolBinding& b : bindings) {
    out +=
        fmt::format("bind {} {} {} {}\n", b.symbol.str(), kParts[static_cast<int>(b.part)], b.input, b.dim);
  }
  for (const Assertion& a : assertions) {
    out += fmt::format("assert [{}] {} [{}] {} {}\n", a.condition.left.str(), sign_of(a.condition.relation),
                       a.condition.right.str(), in_quotes(a.words), in_quotes(a.where));
  }
  for (const Node& n : nodes) out += node_text(*this, n);
  return out;
}

}  // namespace stax::loops
