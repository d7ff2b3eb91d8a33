#include "loops/parse.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "loops/analysis.h"
#include "loops/constant_text.h"
#include "loops/parse_expr.h"
#include "support/check.h"

namespace stax::loops {

namespace {

constexpr int64_t kMaxArgs = 64;

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t' || s.front() == '\r')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

/// The rest of one line, read token by token.
class Line {
 public:
  Line(std::string_view text, int number) : rest_(trim(text)), number_(number) {}

  [[noreturn]] void fail(std::string_view expected) const {
    throw_user_error(
        fmt::format("[loops text] line {}: expected {}, got \"{}\"", number_, expected, rest_.substr(0, 40)));
  }
  bool empty() const { return rest_.empty(); }
  std::string_view peek() const {
    const size_t end = rest_.find_first_of(" [{;}");
    return rest_.substr(0, end == std::string_view::npos ? rest_.size() : std::max<size_t>(end, 1));
  }
  std::string_view word(std::string_view expected) {
    if (rest_.empty()) fail(expected);
    const std::string_view w = peek();
    advance(w.size());
    return w;
  }
  bool take(std::string_view w) {
    if (peek() != w) return false;
    advance(w.size());
    return true;
  }
  void expect(std::string_view w) {
    if (!take(w)) fail(w);
  }
  /// The text between a pair of brackets, which is next.
  std::string_view bracketed(char open, char close) {
    if (rest_.empty() || rest_.front() != open) fail(std::string(1, open));
    const size_t end = rest_.find(close);
    if (end == std::string_view::npos) fail(std::string(1, close));
    const std::string_view inside = rest_.substr(1, end - 1);
    advance(end + 1);
    return trim(inside);
  }
  bool next_is(char c) const { return !rest_.empty() && rest_.front() == c; }
  std::string quoted() {
    if (!next_is('"')) fail("a quoted string");
    std::string out;
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        advance(i + 1);
        return out;
      }
      if (rest_[i] == '\\' && i + 1 < rest_.size()) {
        ++i;
        out += rest_[i] == 'n' ? '\n' : rest_[i];
      } else {
        out += rest_[i];
      }
    }
    fail("a closing quote");
  }
  /// An expression that ends the line or stands before one of the words that may follow it.
  Expr expression() {
    size_t end = rest_.size();
    for (std::string_view stop : {" indirect ", " number ", " size ", " mask "}) {
      end = std::min(end, rest_.find(stop));
    }
    const std::string_view text = rest_.substr(0, end);
    advance(end);
    return parse_expr(text);
  }
  template <class T>
  T integer(std::string_view expected) {
    const std::string_view w = word(expected);
    T value = 0;
    const auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), value);
    if (error != std::errc() || end != w.data() + w.size()) fail(expected);
    return value;
  }
  DType dtype() {
    const std::string_view w = word("a dtype");
    for (int i = 0; i < kDTypeCount; ++i) {
      if (name(static_cast<DType>(i)) == w) return static_cast<DType>(i);
    }
    fail(fmt::format("a dtype instead of {}", w));
  }

 private:
  void advance(size_t n) { rest_ = trim(rest_.substr(n)); }
  std::string_view rest_;
  int number_;
};

/// Splits at commas that are not inside parentheses.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t begin = 0;
  if (text.empty()) return out;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == separator && depth == 0)) {
      out.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return out;
}

std::vector<Expr> expressions(std::string_view text) {
  std::vector<Expr> out;
  for (std::string_view e : split(text, ',')) out.push_back(parse_expr(e));
  return out;
}

std::vector<Expr> row_major(const std::vector<Expr>& sizes) {
  std::vector<Expr> strides(sizes.size());
  Expr stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

class ProgramParser {
 public:
  Program parse(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view content = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      content = trim(content.substr(0, comment(content)));
      ++number;
      if (!content.empty()) line(Line(content, number));
    }
    default_lists();
    return std::move(program_);
  }

 private:
  static size_t comment(std::string_view content) {
    bool quoted = false;
    for (size_t i = 0; i < content.size(); ++i) {
      if (content[i] == '"' && (i == 0 || content[i - 1] != '\\')) quoted = !quoted;
      if (content[i] == '#' && !quoted) return i;
    }
    return content.size();
  }

  void line(Line l) {
    const std::string first(l.word("a declaration or an instruction"));
    if (first == "buffer") return buffer(l);
    if (first == "inputs" || first == "outputs") return buffer_list(l, first == "inputs");
    if (first == "scalars") return scalars(l);
    if (first == "bind") return binding(l);
    if (first == "assert") return assertion(l);
    if (first == "node") return node(l);
    if (first == "external") return external(l);
    if (program_.nodes.empty()) l.fail(fmt::format("a declaration instead of {}", first));
    if (first == "argument") return argument(l);
    if (first == "result") return program_.nodes.back().results.push_back(operand(l));
    if (first == "dynamic") return void(program_.nodes.back().dynamic = true);
    if (first == "binds") return result_binding(l);
    instruction(l, first);
  }

  void buffer(Line& l) {
    Buffer b;
    b.name = l.word("a buffer's name");
    b.dtype = l.dtype();
    b.sizes = expressions(l.bracketed('[', ']'));
    b.strides = l.take("strides") ? expressions(l.bracketed('[', ']')) : row_major(b.sizes);
    constexpr std::string_view roles[] = {"input", "output", "intermediate", "constant"};
    const std::string_view role = l.word("a role");
    const auto* found = std::find(std::begin(roles), std::end(roles), role);
    if (found == std::end(roles)) l.fail("input, output, intermediate or constant");
    b.role = static_cast<BufferRole>(found - roles);
    b.mutated = l.take("mutated");
    if (l.take("data")) b.data = bytes(l);
    if (!l.empty()) l.fail("the end of the line");
    if (!buffers_.emplace(b.name, static_cast<BufferId>(program_.buffers.size())).second) {
      l.fail(fmt::format("a name other than {}, which is taken", b.name));
    }
    program_.buffers.push_back(std::move(b));
  }

  static std::shared_ptr<const std::vector<std::byte>> bytes(Line& l) {
    auto out = std::make_shared<std::vector<std::byte>>();
    if (l.empty()) return out;
    const std::string_view hex = l.word("hexadecimal bytes");
    if (hex.size() % 2 != 0) l.fail("an even number of hexadecimal digits");
    for (size_t i = 0; i < hex.size(); i += 2) {
      unsigned value = 0;
      const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
      if (error != std::errc() || end != hex.data() + i + 2) l.fail("hexadecimal bytes");
      out->push_back(static_cast<std::byte>(value));
    }
    return out;
  }

  BufferId find_buffer(const Line& l, std::string_view name) const {
    const auto found = buffers_.find(std::string(name));
    if (found == buffers_.end()) l.fail(fmt::format("a declared buffer instead of {}", name));
    return found->second;
  }

  void buffer_list(Line& l, bool inputs) {
    auto& list = inputs ? program_.inputs : program_.outputs;
    (inputs ? have_inputs_ : have_outputs_) = true;
    for (std::string_view n : split(l.bracketed('[', ']'), ',')) list.push_back(find_buffer(l, n));
  }

  void default_lists() {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const BufferRole role = program_.buffers[i].role;
      if (role == BufferRole::input && !have_inputs_) program_.inputs.push_back(static_cast<BufferId>(i));
      if (role == BufferRole::output && !have_outputs_) program_.outputs.push_back(static_cast<BufferId>(i));
    }
  }

  void scalars(Line& l) {
    for (std::string_view d : split(l.bracketed('[', ']'), ',')) {
      program_.scalars.push_back(Line(d, 0).dtype());
    }
  }

  static Symbol symbol(Line& l) {
    const Expr e = parse_expr(l.word("a symbol"));
    if (e.kind() != ExprKind::symbol) l.fail(fmt::format("a symbol instead of {}", e.str()));
    return e.symbol();
  }

  void assertion(Line& l) {
    Assertion a;
    a.condition.left = parse_expr(l.bracketed('[', ']'));
    const std::optional<Relation> relation = relation_of(l.word("a comparison"));
    if (!relation) l.fail("==, !=, < or <=");
    a.condition.relation = *relation;
    a.condition.right = parse_expr(l.bracketed('[', ']'));
    a.words = l.quoted();
    a.where = l.quoted();
    program_.assertions.push_back(std::move(a));
  }

  void result_binding(Line& l) {
    ResultBinding b;
    b.symbol = symbol(l);
    b.result = l.integer<int32_t>("a result's position");
    b.dim = l.integer<int32_t>("a dim, or -1 for its value");
    program_.nodes.back().binds.push_back(b);
  }

  void binding(Line& l) {
    SymbolBinding b;
    b.symbol = symbol(l);
    constexpr std::string_view parts[] = {"size", "stride", "value"};
    const auto* found = std::find(std::begin(parts), std::end(parts), l.word("size, stride or value"));
    if (found == std::end(parts)) l.fail("size, stride or value");
    b.part = static_cast<SymbolBinding::Part>(found - parts);
    b.input = l.integer<int32_t>("an input's position");
    b.dim = l.empty() ? 0 : l.integer<int32_t>("a dim");
    program_.bindings.push_back(b);
  }

  std::vector<Expr> ranges(Line& l, char letter) {
    std::vector<Expr> out;
    for (std::string_view item : split(l.bracketed('[', ']'), ',')) {
      const std::string prefix = fmt::format("{}{} <", letter, out.size());
      if (item.substr(0, prefix.size()) != prefix) l.fail(fmt::format("\"{} ...\" as range", prefix));
      out.push_back(parse_expr(item.substr(prefix.size())));
    }
    return out;
  }

  Node& begin_node(Line& l) {
    Node n;
    n.name = l.word("a node's name");
    if (l.next_is('"')) n.origin = l.quoted();
    values_.clear();
    program_.nodes.push_back(std::move(n));
    return program_.nodes.back();
  }

  void node(Line& l) {
    Node& n = begin_node(l);
    n.ranges = ranges(l, 'i');
    if (!l.empty()) n.reduction_ranges = ranges(l, 'r');
  }

  void external(Line& l) {
    Node& n = begin_node(l);
    n.kind = NodeKind::external;
    n.function = l.quoted();
  }

  Operand operand(Line& l) const {
    Operand o;
    o.buffer = find_buffer(l, l.word("a buffer"));
    o.dtype = l.dtype();
    o.sizes = expressions(l.bracketed('[', ']'));
    o.strides = l.take("strides") ? expressions(l.bracketed('[', ']')) : row_major(o.sizes);
    if (l.take("offset")) o.offset = l.expression();
    return o;
  }

  void argument(Line& l) {
    auto& list = program_.nodes.back().arguments;
    const std::string kind(l.word("a kind of argument"));
    if (kind == "none") return void(list.emplace_back());
    if (kind == "tensor") return void(list.emplace_back(operand(l)));
    if (kind == "tensors") return tensors(l);
    if (kind == "bool" || kind == "int") {
      const auto number = kind == "bool" ? Number::Kind::boolean : Number::Kind::integer;
      return void(list.emplace_back(Number{number, l.expression(), 0}));
    }
    if (kind == "float") return void(list.emplace_back(Number::of(floating(l, l.word("a number")))));
    if (kind == "ints") return void(list.emplace_back(expressions(l.bracketed('[', ']'))));
    if (kind == "floats") {
      std::vector<double> values;
      for (std::string_view v : split(l.bracketed('[', ']'), ',')) values.push_back(floating(l, v));
      return void(list.emplace_back(std::move(values)));
    }
    if (kind == "dtype") return void(list.emplace_back(l.dtype()));
    if (kind == "string") return void(list.emplace_back(l.quoted()));
    l.fail(fmt::format("a kind of argument instead of {}", kind));
  }

  static double floating(const Line& l, std::string_view text) {
    const auto value = parse_constant(DType::float64, text);
    if (!value) l.fail(fmt::format("a number instead of {}", text));
    return value->as_double();
  }

  void tensors(Line& l) {
    Argument<Operand>::Tensors out;
    for (std::string_view item : split(l.bracketed('{', '}'), ';')) {
      Line inner(item, 0);
      if (inner.take("none")) {
        out.emplace_back();
      } else {
        out.emplace_back(operand(inner));
      }
    }
    program_.nodes.back().arguments.emplace_back(std::move(out));
  }

  ValueId value(const Line& l, std::string_view w) const {
    const auto found = values_.find(std::string(w));
    if (found == values_.end()) l.fail(fmt::format("a value defined before it instead of {}", w));
    return found->second;
  }

  void instruction(Line& l, const std::string& first) {
    Body& body = program_.nodes.back().body;
    Inst inst;
    std::string defined;
    std::string op_name = first;
    if (l.take("=")) {
      defined = first;
      op_name = l.word("an instruction");
    }
    const auto op = find_op(op_name);
    if (!op) l.fail(fmt::format("an instruction instead of {}", op_name));
    inst.op = *op;
    const bool stores = is_store(inst.op);
    if (stores != defined.empty()) l.fail(stores ? "no result of a store" : "\"v0 = ...\"");
    if (!stores) inst.dtype = l.dtype();
    operands(l, inst);
    if (stores) {
      if (inst.args.empty()) l.fail("the stored value");
      inst.dtype = body[inst.args[0]].dtype;
    }
    if (!defined.empty() && !values_.emplace(defined, static_cast<ValueId>(body.size())).second) {
      l.fail(fmt::format("a new name instead of {}", defined));
    }
    body.push_back(std::move(inst));
  }

  void operands(Line& l, Inst& inst) {
    if (accesses_memory(inst)) {
      inst.buffer = find_buffer(l, l.word("a buffer"));
      inst.index = parse_expr(l.bracketed('[', ']'));
    }
    if (inst.op == OpCode::index_value) inst.index = l.expression();
    if (inst.op == OpCode::scalar) inst.number = l.integer<int32_t>("a scalar's position");
    if (inst.op == OpCode::constant) {
      const std::string_view text = l.word("a number");
      const auto constant = parse_constant(inst.dtype, text);
      if (!constant) l.fail(fmt::format("a {} instead of {}", name(inst.dtype), text));
      inst.constant = *constant;
    }
    std::vector<ValueId>* list = &inst.args;
    while (!l.empty()) {
      if (l.take("mask")) {
        list = &inst.args;
      } else if (l.take("indirect")) {
        list = &inst.indirect;
      } else if (l.take("size")) {
        inst.index = l.expression();
      } else if (l.take("number")) {
        inst.number = l.integer<int32_t>("a number");
      } else {
        list->push_back(value(l, l.word("an operand")));
        if (list->size() > kMaxArgs) l.fail("fewer operands");
      }
    }
  }

  Program program_;
  std::map<std::string, BufferId> buffers_;
  std::map<std::string, ValueId> values_;
  bool have_inputs_ = false, have_outputs_ = false;
};

}  // namespace

Program parse_program(std::string_view text) {
  return ProgramParser().parse(text);
}

}  // namespace stax::loops
