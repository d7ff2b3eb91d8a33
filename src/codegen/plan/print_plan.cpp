#include <fmt/core.h>

#include "codegen/plan/plan.h"

namespace stax::codegen {

namespace {

/// "(64, 2)", "(64, )", "()".
std::string tuple(const std::vector<Expr>& items) {
  std::string out = "(";
  for (size_t k = 0; k < items.size(); ++k) out += (k ? ", " : "") + items[k].str();
  return out + (items.size() == 1 ? ", )" : ")");
}

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {}

  std::string print() {
    for (const PlanKernel& k : plan_.kernels) {
      out_ += fmt::format("{0} = async_compile.{1}('{0}', '''...''', device_str='{2}')\n", k.info.name,
                          on_gpu() ? "triton" : "cpp", device());
    }
    if (!plan_.kernels.empty()) out_ += "async_compile.wait(globals())\n\n";
    out_ += "def call(self, args):\n";
    std::string names;
    for (loops::BufferId b : plan_.inputs) names += name(b) + ", ";
    if (!names.empty()) line("{} = args", names.substr(0, names.size() - (plan_.inputs.size() > 1 ? 2 : 1)));
    line("args.clear()");
    for (const Instruction& i : plan_.instructions) {
      if (on_gpu()) enter_device(i);
      std::visit([&](const auto& instruction) { write(instruction); }, i);
    }
    return std::move(out_);
  }

 private:
  bool on_gpu() const { return plan_.device == Target::Kind::cuda; }
  std::string_view device() const { return on_gpu() ? "cuda" : "cpu"; }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(depth_ * 4, ' ');
    out_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  /// What comes after the checks of the inputs is done for one device; the first launch asks for its stream.
  void enter_device(const Instruction& next) {
    const bool outside = std::holds_alternative<BindSymbol>(next) || std::holds_alternative<CheckInput>(next);
    if (!outside && depth_ == 1) {
      line("with stax.cuda.device(0):");
      depth_ = 2;
      line("stax.cuda.set_device(0)");
    }
    if (std::holds_alternative<Launch>(next) && !has_stream_) {
      line("raw_stream0 = get_raw_stream(0)");
      has_stream_ = true;
    }
    if (std::holds_alternative<Return>(next)) depth_ = 1;
  }

  const std::string& name(loops::BufferId b) const { return plan_.buffers[b].name; }
  std::string empty_strided(loops::BufferId b) const {
    const loops::Buffer& buffer = plan_.buffers[b];
    return fmt::format("{} = empty_strided_{}({}, {}, stax.{})", buffer.name, device(), tuple(buffer.sizes),
                       tuple(buffer.strides), stax::name(buffer.dtype));
  }
  std::string operand(const loops::Operand& o) const;
  std::string argument(const Argument<loops::Operand>& a) const;

  void write(const BindSymbol& i) {
    const loops::SymbolBinding& b = i.binding;
    switch (b.part) {
      case loops::SymbolBinding::Part::size:
        return line("{} = {}.size({})", b.symbol.str(), name(plan_.inputs[b.input]), b.dim);
      case loops::SymbolBinding::Part::stride:
        return line("{} = {}.stride({})", b.symbol.str(), name(plan_.inputs[b.input]), b.dim);
      case loops::SymbolBinding::Part::value:
        return line("{} = integers[{}]", b.symbol.str(), b.input);
    }
  }
  void write(const CheckInput& i) {
    const loops::Buffer& b = plan_.buffers[plan_.inputs[i.input]];
    line("assert_size_stride({}, {}, {}, 'input')", b.name, tuple(b.sizes), tuple(b.strides));
  }
  void write(const AllocateArena&) {}  // the slots show it
  void write(const AllocateSlot& i) {
    const schedule::Slot& s = plan_.slots[i.slot];
    line("{}  # arena[{}:{}]", empty_strided(s.buffer), s.offset.str(), (s.offset + s.size).str());
  }
  void write(const AllocateOutput& i) { line("{}", empty_strided(i.buffer)); }
  void write(const Launch& i) {
    for (size_t k = static_cast<size_t>(i.kernel);; ++k) {
      const PlanKernel& kernel = plan_.kernels[k];
      std::string when;
      for (const Condition& c : kernel.info.when) when += (when.empty() ? "" : " and ") + c.str();
      const bool only = kernel.last && static_cast<size_t>(i.kernel) == k;
      if (!only)
        line("{}:", kernel.last ? "else" : (static_cast<size_t>(i.kernel) == k ? "if " : "elif ") + when);
      launch(kernel.info, only ? "" : "    ");
      if (kernel.last) return;
    }
  }
  void launch(const KernelInfo& k, std::string_view indent) {
    std::string args;
    for (loops::BufferId b : k.buffers) args += name(b) + ", ";
    for (Symbol s : k.symbols) args += s.str() + ", ";
    for (const Expr& extent : k.extents) args += extent.str() + ", ";
    line("{}{}.run({}{})", indent, k.name, args, on_gpu() ? "stream=raw_stream0" : k.parallel_extent.str());
  }
  void write(const CallExternal& i) {
    const PlanExternal& call = plan_.externals[i.call];
    std::string args;
    for (const auto& a : call.arguments) args += argument(a) + ", ";
    std::string results;
    for (size_t k = 0; k < call.results.size(); ++k) results += (k ? ", " : "") + operand(call.results[k]);
    if (call.dynamic) return write_dynamic(call, args);
    if (call.results.size() != 1) results = "(" + results + ")";
    line("extern_kernels.{}({}out={})", call.function, args, results);
  }
  void write_dynamic(const PlanExternal& call, const std::string& args) {
    std::string results;
    for (const loops::Operand& o : call.results) results += (results.empty() ? "" : ", ") + name(o.buffer);
    line("{} = dynamic_kernels.{}({})", results, call.function,
         args.empty() ? args : args.substr(0, args.size() - 2));
    for (const loops::ResultBinding& b : call.binds) {
      const std::string& from = name(call.results[b.result].buffer);
      if (b.dim < 0) {
        line("{} = {}.item()", b.symbol.str(), from);
      } else {
        line("{} = {}.size({})", b.symbol.str(), from, b.dim);
      }
    }
  }
  void write(const AllocateLate& i) { line("{}", empty_strided(i.buffer)); }
  void write(const CheckAssertion& i) {
    const Assertion& a = plan_.assertions[i.assertion];
    line("assert {}{}", a.condition.str(), a.words.empty() ? "" : ", '" + a.words + "'");
  }
  void write(const Free& i) { line("del {}", name(i.buffer)); }
  void write(const Return&) {
    std::string names;
    for (loops::BufferId b : plan_.outputs) names += name(b) + ", ";
    line("return ({})", plan_.outputs.size() > 1 ? names.substr(0, names.size() - 2) : names);
  }

  const Plan& plan_;
  std::string out_;
  size_t depth_ = 1;
  bool has_stream_ = false;  // on a GPU: it has a name
};

std::string Printer::operand(const loops::Operand& o) const {
  const loops::Buffer& b = plan_.buffers[o.buffer];
  if (o.offset.is(0) && o.sizes == b.sizes && o.strides == b.strides && o.dtype == b.dtype) return b.name;
  return fmt::format("as_strided({}, {}, {}, {})", b.name, tuple(o.sizes), tuple(o.strides), o.offset.str());
}

struct ArgumentWords {
  std::string operator()(NoneType) const { return "None"; }
  std::string operator()(const Number& n) const {
    if (n.is_float()) return fmt::format("{}", n.floating);
    if (n.kind == Number::Kind::boolean) return n.integer.is(0) ? "False" : "True";
    return n.integer.str();
  }
  std::string operator()(const std::vector<Expr>& v) const { return tuple(v); }
  std::string operator()(const std::vector<double>& v) const {
    std::string out;
    for (double d : v) out += fmt::format("{}{}", out.empty() ? "" : ", ", d);
    return "[" + out + "]";
  }
  std::string operator()(DType d) const { return fmt::format("stax.{}", name(d)); }
  std::string operator()(const std::string& s) const { return "'" + s + "'"; }
};

std::string Printer::argument(const Argument<loops::Operand>& a) const {
  return std::visit(
      [&](const auto& v) -> std::string {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, loops::Operand>) {
          return operand(v);
        } else if constexpr (std::is_same_v<V, Argument<loops::Operand>::Tensors>) {
          std::string out;
          for (const auto& o : v) out += (out.empty() ? "" : ", ") + (o ? operand(*o) : std::string("None"));
          return "[" + out + "]";
        } else {
          return ArgumentWords()(v);
        }
      },
      a.value);
}

}  // namespace

std::string Plan::str() const {
  return Printer(*this).print();
}

}  // namespace stax::codegen
