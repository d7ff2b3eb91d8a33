#include "codegen/plain/printer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "codegen/plain/spelling.h"
#include "loops/fold.h"
#include "support/check.h"

namespace stax::codegen {

using loops::BufferId;
using loops::Inst;
using loops::OpCode;
using loops::OpKind;
using loops::ValueId;

namespace {

/// Loops along which a value varies: bit k is the k-th of the ranges, those of the reduction last.
using Loops = uint64_t;

/// An instruction of a member, its operands numbered over all members.
struct Step {
  const Inst* inst = nullptr;
  std::vector<int32_t> args, indirect;
  int32_t same_as = -1;  // the value that a load of a local buffer stands for
  bool needed = false;
  Loops along = 0;
};

class PlainPrinter {
 public:
  PlainPrinter(const loops::Program& program, const schedule::Group& group,
               const std::vector<PlainArgument>& arguments)
      : program_(program), group_(group), arguments_(arguments) {
    STAX_ASSERT(group.later.empty(), "{} has several loop nests", group.name);
    link();
    mark();
  }

  std::string print(std::string_view name, const std::function<int64_t(Symbol)>& example) {
    for (size_t id = 0; id < steps_.size(); ++id)
      if (steps_[id].needed) step(static_cast<int32_t>(id));
    const std::string grid = index_grid(), shape = full_ ? "    space = " + tuple(extents()) + "\n" : "";
    std::string parameters;
    for (const PlainArgument& a : arguments_)
      parameters += fmt::format("{}: \"{}\", ", a.name, buffer(a.buffer).name);
    for (const int32_t s : scalars_) parameters += fmt::format("scalar{}, ", s);
    for (const Symbol s : sizes_) parameters += fmt::format("{}={}, ", s.str(), example(s));
    if (!parameters.empty()) parameters.resize(parameters.size() - 2);
    return fmt::format("def {}({}):\n{}{}{}", name, parameters, grid, shape, out_);
  }

 private:
  // Values

  const loops::Buffer& buffer(BufferId id) const { return program_.buffers[static_cast<size_t>(id)]; }
  bool is_local(BufferId id) const { return std::ranges::find(group_.local, id) != group_.local.end(); }
  size_t rank() const { return group_.ranges.size() + group_.reduction_ranges.size(); }
  Loops all_loops() const { return (Loops{1} << rank()) - 1; }
  Loops reduction_loops() const { return all_loops() & ~((Loops{1} << group_.ranges.size()) - 1); }

  Loops loops_of(Expr e) const {
    Loops loops = 0;
    for (const Symbol s : e.symbols()) {
      if (s.kind == SymbolKind::index) loops |= Loops{1} << s.number;
      if (s.kind == SymbolKind::reduction)
        loops |= Loops{1} << (group_.ranges.size() + static_cast<size_t>(s.number));
    }
    return loops;
  }

  /// What a load of a local buffer stands for: the value that was stored there last.
  int32_t forwarded(const Inst& load) const {
    for (size_t id = steps_.size(); id-- > 0;) {
      const Inst& store = *steps_[id].inst;
      if (store.op == OpCode::store && store.buffer == load.buffer && store.index == load.index)
        return static_cast<int32_t>(id);
    }
    STAX_ASSERT(false, "{} loads {}, which has no place in memory, where nothing was stored", group_.name,
                buffer(load.buffer).name);
  }

  void link() {
    for (const schedule::Member& member : group_.members) {
      const auto first = static_cast<int32_t>(steps_.size());
      for (const Inst& inst : member.body) {
        Step s{&inst, {}, {}, -1, false, 0};
        for (const ValueId a : inst.args) s.args.push_back(first + a);
        for (const ValueId a : inst.indirect) s.indirect.push_back(first + a);
        if (inst.op == OpCode::load && is_local(inst.buffer)) s.same_as = forwarded(inst);
        s.along = along(s);
        steps_.push_back(std::move(s));
      }
    }
  }

  Loops along(const Step& s) const {
    if (s.same_as >= 0) return at(steps_[static_cast<size_t>(s.same_as)].args[0]).along;
    const OpKind kind = loops::info(s.inst->op).kind;
    Loops loops = s.inst->op == OpCode::check_index ? Loops{0} : loops_of(s.inst->index);
    for (const auto* list : {&s.args, &s.indirect})
      for (const int32_t a : *list) loops |= at(a).along;
    if (kind == OpKind::reduce) return loops & ~reduction_loops();
    return kind == OpKind::scan ? loops | reduction_loops() : loops;
  }

  const Step& at(int32_t id) const { return steps_[static_cast<size_t>(id)]; }

  /// What stores to memory, and checks, need.
  void mark() {
    for (size_t id = steps_.size(); id-- > 0;) {
      Step& s = steps_[id];
      const bool stores = loops::info(s.inst->op).kind == OpKind::store && !is_local(s.inst->buffer);
      s.needed = s.needed || stores || s.inst->op == OpCode::check_index;
      if (!s.needed) continue;
      if (s.same_as >= 0) steps_[static_cast<size_t>(s.same_as)].needed = true;
      for (const int32_t a : s.args) steps_[static_cast<size_t>(a)].needed = true;
      for (const int32_t a : s.indirect) steps_[static_cast<size_t>(a)].needed = true;
    }
  }

  bool is_constant(int32_t id) const { return at(id).inst->op == OpCode::constant; }

  /// Operands that are constants stand where they are used. `literal`: as numbers of Python, which take the
  /// dtype of what they meet.
  std::string value(int32_t id, bool literal = false) const {
    if (is_constant(id)) return numpy_constant(at(id).inst->dtype, at(id).inst->constant, !literal);
    return names_.at(id);
  }

  std::string name_of(int32_t id) {
    const std::string name = fmt::format("tmp{}", next_++);
    names_[id] = name;
    return name;
  }

  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    out_ += "    " + fmt::format(text, std::forward<Args>(args)...) + "\n";
  }

  void define(int32_t id, const std::string& expression) { line("{} = {}", name_of(id), expression); }

  // Integer expressions

  std::string index_name(Symbol s, const Step& step) {
    switch (s.kind) {
      case SymbolKind::size:
      case SymbolKind::unbacked:
        sizes_.insert(s);
        return s.str();
      case SymbolKind::index:
      case SymbolKind::reduction:
        used_ |= loops_of(s);
        return s.str();
      case SymbolKind::indirect:
        return value(step.indirect.at(static_cast<size_t>(s.number)));
      case SymbolKind::block:
        break;
    }
    return calls_.at(s);
  }

  std::string text(Expr e, const Step& step = {}) {
    return to_string(with_functions(e, step), [&](Symbol s) { return index_name(s, step); });
  }

  /// Symbols stand for minima and maxima, which are functions of NumPy.
  Expr with_functions(Expr e, const Step& step) {
    if (e.args().empty()) return e;
    std::vector<Expr> parts;
    for (const Expr a : e.args()) parts.push_back(with_functions(a, step));
    switch (e.kind()) {
      case ExprKind::constant:
      case ExprKind::symbol:
        return e;
      case ExprKind::add:
        return sum(parts);
      case ExprKind::mul:
        return stax::product(parts);
      case ExprKind::floor_div:
        return floor_div(parts[0], parts[1]);
      case ExprKind::mod:
        return mod(parts[0], parts[1]);
      case ExprKind::min:
      case ExprKind::max:
        break;
    }
    std::string words = text(parts[0], step);
    for (size_t k = 1; k < parts.size(); ++k)
      words = fmt::format("np.{}({}, {})", e.kind() == ExprKind::min ? "minimum" : "maximum", words,
                          text(parts[k], step));
    const Symbol stands{SymbolKind::block, static_cast<int32_t>(calls_.size())};
    calls_[stands] = words;
    return stands;
  }

  std::vector<std::string> extents() {
    std::vector<std::string> all;
    for (const auto* ranges : {&group_.ranges, &group_.reduction_ranges})
      for (const Expr e : *ranges) all.push_back(text(e));
    return all;
  }

  static std::string tuple(const std::vector<std::string>& parts) {
    return fmt::format("({}{})", fmt::join(parts, ", "), parts.size() == 1 ? "," : "");
  }

  /// "i0, r0 = np.ogrid[:64, :128]": an axis for each loop.
  std::string index_grid() {
    if (used_ == 0) return "";
    std::vector<std::string> names, slices;
    for (size_t k = 0; k < rank(); ++k) {
      const size_t outer = group_.ranges.size();
      const auto number = static_cast<int32_t>(k < outer ? k : k - outer);
      const Symbol s{k < outer ? SymbolKind::index : SymbolKind::reduction, number};
      names.push_back((used_ >> k & 1) != 0 ? s.str() : "_");
    }
    for (const std::string& e : extents()) slices.push_back(":" + e);
    return fmt::format("    {} = np.ogrid[{}]\n", fmt::join(names, ", "), fmt::join(slices, ", "));
  }

  // Instructions

  void step(int32_t id) {
    const Step& s = at(id);
    switch (loops::info(s.inst->op).kind) {
      case OpKind::leaf:
        return leaf(id, s);
      case OpKind::special:
        return special(id, s);
      case OpKind::reduce:
      case OpKind::scan:
        return fold(id, s);
      case OpKind::store:
        return store(id, s);
      case OpKind::unary:
      case OpKind::binary:
      case OpKind::ternary:
      case OpKind::cast:
        break;
    }
    const bool literal =
        takes_literals(s.inst->op) && !std::ranges::all_of(s.args, [&](int32_t a) { return is_constant(a); });
    std::vector<std::string> args;
    for (const int32_t a : s.args) args.push_back(value(a, literal));
    const DType from = s.inst->op == OpCode::where ? s.inst->dtype : at(s.args[0]).inst->dtype;
    define(id, spell_numpy(s.inst->op, s.inst->dtype, from, args));
  }

  static bool takes_literals(OpCode op) {
    constexpr OpCode kOps[] = {OpCode::add,         OpCode::sub,        OpCode::mul,
                               OpCode::div,         OpCode::maximum,    OpCode::minimum,
                               OpCode::bitwise_and, OpCode::bitwise_or, OpCode::bitwise_xor};
    return std::ranges::find(kOps, op) != std::end(kOps) || (op >= OpCode::eq && op <= OpCode::ge);
  }

  const std::string& array(BufferId id) const {
    for (const PlainArgument& a : arguments_)
      if (a.buffer == id) return a.name;
    STAX_ASSERT(false, "{}: buffer {} is no argument", group_.name, buffer(id).name);
  }

  void leaf(int32_t id, const Step& s) {
    const Inst& inst = *s.inst;
    if (inst.op == OpCode::constant) return;
    if (inst.op == OpCode::scalar) {
      scalars_.insert(inst.number);
      return define(id, fmt::format("{}(scalar{})", numpy_dtype(inst.dtype), inst.number));
    }
    if (inst.op == OpCode::index_value)
      return define(id,
                    s.along == 0 ? fmt::format("np.int64({})", text(inst.index, s)) : text(inst.index, s));
    if (s.same_as >= 0) {
      names_[id] = names_.at(s.same_as);
      return;
    }
    const std::string index = text(inst.index, s);
    const std::string load = inst.args.empty() ? fmt::format("{}[{}]", array(inst.buffer), index)
                                               : fmt::format("plain.load({}, {}, {})", array(inst.buffer),
                                                             index, value(s.args[0]));
    const auto [known, added] = loaded_.try_emplace(load);
    if (added) {
      define(id, load);
      known->second = names_[id];
    }
    names_[id] = known->second;
  }

  /// The value as the buffer keeps it.
  std::string rounded(const Step& s) const {
    const DType dtype = buffer(s.inst->buffer).dtype;
    const std::string text = value(s.args[0]);
    if (!is_half(dtype)) return text;
    return fmt::format("plain.{}({})", dtype == DType::float16 ? "float16" : "bfloat16", text);
  }

  void store(int32_t id, const Step& s) {
    const Inst& inst = *s.inst;
    if (is_local(inst.buffer)) {
      // Loads of it stand for this value.
      if (is_half(buffer(inst.buffer).dtype)) return define(id, rounded(s));
      names_[id] = value(s.args[0]);
      return;
    }
    const std::string index = text(inst.index, s);
    forget(array(inst.buffer));
    const Loops of_index = loops_of(inst.index) | indirect_loops(s);
    if (inst.op == OpCode::store && inst.args.size() == 1 && inst.indirect.empty() && of_index != 0)
      return line("{}[{}] = {}", array(inst.buffer), index, rounded(s));
    const std::string mask = inst.args.size() > 1 ? ", " + value(s.args[1]) : "";
    if (inst.op == OpCode::atomic_add)
      return line("plain.add_at({}, {}, {}{})", array(inst.buffer), index, each_time(s), mask);
    line("plain.store({}, {}, {}{})", array(inst.buffer), index, rounded(s), mask);
  }

  /// What is added, once for each point of the loops.
  std::string each_time(const Step& s) {
    const Loops inner = (s.along & reduction_loops()) != 0 ? reduction_loops() : Loops{0};
    const Loops wanted = (all_loops() & ~reduction_loops()) | inner;
    if ((s.along & wanted) == wanted) return value(s.args[0]);
    std::vector<std::string> shape = extents();
    for (size_t k = group_.ranges.size(); k < rank() && inner == 0; ++k) shape[k] = "1";
    return fmt::format("np.broadcast_to({}, {})", value(s.args[0]), tuple(shape));
  }

  void forget(const std::string& array) {
    std::erase_if(loaded_, [&](const auto& known) {
      return known.first.starts_with(array + "[") || known.first.starts_with("plain.load(" + array + ",");
    });
  }

  Loops indirect_loops(const Step& s) const {
    Loops loops = 0;
    for (const int32_t a : s.indirect) loops |= at(a).along;
    return loops;
  }

  void special(int32_t id, const Step& s) {
    const Inst& inst = *s.inst;
    if (inst.op == OpCode::result) {
      names_[id] = results_.at(s.args[0]).at(static_cast<size_t>(inst.number));
      return;
    }
    if (inst.op == OpCode::random_bits)
      return define(
          id, fmt::format("plain.random_bits({}, {}, {})", value(s.args[0]), value(s.args[1]), inst.number));
    const std::string wrap = inst.number == 1 ? ", wrap=True" : "";
    const std::string mask = inst.args.size() > 1 ? ", mask=" + value(s.args[1]) : "";
    define(id,
           fmt::format("plain.check_index({}, {}{}{})", value(s.args[0]), text(inst.index, s), wrap, mask));
  }

  /// Folds and scans go over the last axes, of arrays that have all of them.
  void fold(int32_t id, const Step& s) {
    const size_t over = group_.reduction_ranges.size();
    std::string args;
    for (const int32_t a : s.args) {
      const bool whole = (at(a).along & reduction_loops()) == reduction_loops();
      full_ = full_ || !whole;
      args += (args.empty() ? "" : ", ") +
              (whole ? value(a) : fmt::format("np.broadcast_to({}, space)", value(a)));
    }
    if (over != 1) args += fmt::format(", axes={}", over);
    std::vector<std::string> results = {name_of(id)};
    for (int32_t k = 1; k < loops::result_count(s.inst->op); ++k)
      results.push_back(fmt::format("tmp{}", next_++));
    line("{} = plain.{}({})", fmt::join(results, ", "), numpy_fold(s.inst->op), args);
    results_[id] = std::move(results);
  }

  const loops::Program& program_;
  const schedule::Group& group_;
  const std::vector<PlainArgument>& arguments_;
  std::vector<Step> steps_;
  std::map<int32_t, std::string> names_;
  std::map<int32_t, std::vector<std::string>> results_;
  std::map<std::string, std::string> loaded_;  // name by text, until a store to the array
  std::unordered_map<Symbol, std::string> calls_;
  std::set<Symbol> sizes_;
  std::set<int32_t> scalars_;
  Loops used_ = 0;
  bool full_ = false;  // an operand is spread to all loops
  int32_t next_ = 0;
  std::string out_;
};

}  // namespace

std::string print_plain(const loops::Program& program, const schedule::Group& group, std::string_view name,
                        const std::vector<PlainArgument>& arguments,
                        const std::function<int64_t(Symbol)>& example) {
  return PlainPrinter(program, group, arguments).print(name, example);
}

}  // namespace stax::codegen
