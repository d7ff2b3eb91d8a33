#include "codegen/cpp/printer.h"

#include <map>

#include "codegen/cpp/prelude.h"
#include "codegen/cpp/spelling.h"
#include "support/check.h"
#include "support/code_writer.h"

namespace stax::codegen {

namespace {

std::string v(Var var) {
  return fmt::format("v{}", var);
}

class Printer {
 public:
  Printer(const Kernel& kernel, int lanes) : kernel_(kernel), lanes_(lanes) {}

  /// The function of one loop nest: the exported one, or one of several.
  std::string function(const std::vector<Statement>& body, const std::string& name, bool exported) {
    out_.braces(head(name, exported), [&] {
      for (size_t k = 0; k < kernel_.arguments.size(); ++k) {
        const auto type = token(kernel_.arguments[k]);
        const char* constness = kernel_.written[k] ? "" : "const ";
        out_.line("{1}{0}* const p{2} = ({1}{0}*)buffers[{2}];", type, constness, k);
      }
      print_symbols();
      print(body);
    });
    return out_.take();
  }

  /// The exported function of several loop nests, whose functions `names` are.
  std::string choice(const std::vector<std::string>& names) {
    out_.braces(head(kernel_.info.name, true), [&] {
      print_symbols();
      for (size_t k = 0; k < names.size(); ++k) {
        const Expr extent = k == 0 ? kernel_.info.parallel_extent : kernel_.info.later[k - 1].extent;
        const std::string call =
            fmt::format("return {}(buffers, sizes, scalars, status, begin, end);", names[k]);
        if (k + 1 == names.size()) return out_.raw(call);
        out_.raw(fmt::format("const long e{} = {};", k, spell(extent)));
        out_.raw(fmt::format("if (begin < e{}) {}", k, call));
        out_.raw(fmt::format("begin -= e{0}; end -= e{0};", k));
      }
    });
    return out_.take();
  }

 private:
  static std::string head(const std::string& name, bool exported) {
    return fmt::format(
        "{} void {}(void* const* buffers, const long* sizes, const void* scalars, long* status, "
        "long begin, long end)",
        exported ? "extern \"C\" __attribute__((visibility(\"default\")))" : "static", name);
  }

  void print_symbols() {
    for (size_t k = 0; k < kernel_.info.symbols.size(); ++k)
      out_.line("const long {} = sizes[{}];", spell(kernel_.info.symbols[k]), k);
  }

  void print(const std::vector<Statement>& list) {
    for (const Statement& s : list) print(s);
  }

  void define(const Statement& s, const std::string& value) {
    out_.line("const auto v{} = {};", s.out, value);
  }

  static std::string pointer(const Statement& s) {
    if (s.index.is(0)) return fmt::format("p{}", s.pointer);
    return fmt::format("p{} + {}", s.pointer, spell(s.index));
  }
  static std::string element(const Statement& s) { return fmt::format("p{}[{}]", s.pointer, spell(s.index)); }

  void print(const Statement& s) {
    switch (s.action) {
      case Action::compute:
        return print_compute(s);
      case Action::constant:
        return define(s, fmt::format("splat_{}({})", token(s.dtype), spell_constant(s.dtype, s.number)));
      case Action::scalar:
        return print_scalar(s);
      case Action::splat:
        return define(s, fmt::format("splat_i64({})", spell(s.index)));
      case Action::iota:
        return define(s, "iota_i64()");
      case Action::tail:
        return define(s, "tail_b8(n)");
      case Action::load:
        return define(s, load(s));
      case Action::horizontal:
        return print_horizontal(s);
      case Action::prefix:
        return define(s, fmt::format("{}_{}(v{}, v{})", lane_spelling(s.op).prefix, token(s.dtype), s.args[0],
                                     s.args[1]));
      case Action::last_lane:
        return define(s, fmt::format("last_{}(v{})", token(s.dtype), s.args[0]));
      case Action::arg_merge:
        return define(s, fmt::format("splat_i64({}_{}(v{}, v{}))", lane_spelling(s.op).positions,
                                     token(s.dtype), s.args[0], s.args[1]));
      case Action::check:
        return define(
            s, fmt::format("k_check(status, {}, {}, v{}, {}, {})", s.count, s.partial ? "true" : "false",
                           s.args[0], spell(s.index), s.args.size() > 1 ? v(s.args[1]) : "splat_b8(true)"));
      case Action::random:
        return define(s, fmt::format("k_philox(v{}, v{}, {})", s.args[0], s.args[1], s.count));
      case Action::assign:
        return out_.line("{}v{} = v{};", s.open ? "auto " : "", s.out, s.args[0]);
      case Action::store:
        return print_store(s);
      case Action::atomic_add:
        return print_atomic(s);
      case Action::fence:
        return out_.line("p_fence();");
      case Action::prefetch:
        return out_.line("prefetch({});", pointer(s));
      case Action::let:
        return out_.line("{} {} = {};", s.symbol == kTailCount ? "const int" : "long", spell(s.symbol),
                         spell(s.index));
      case Action::extract:
        return out_.line("const long {} = v{}[0];", spell(s.symbol), s.args[0]);
      case Action::set:
        return out_.line("{} = {};", spell(s.symbol), spell(s.index));
      case Action::room:
        return out_.line("const long {} = k_room({}, {}, {});", spell(s.symbol), pointer(s),
                         itemsize(s.dtype), lanes_);
      case Action::array:
        return print_array(s);
      case Action::block:
        return out_.braces("", [&] { print(s.body); });
      case Action::loop:
        return print_loop(s);
      case Action::when:
        out_.braces(fmt::format("if ({} < {})", spell(s.index), spell(s.end)), [&] { print(s.body); });
        if (!s.other.empty()) out_.braces("else", [&] { print(s.other); });
        return;
    }
  }

  void print_compute(const Statement& s) {
    std::vector<std::string> args;
    for (Var a : s.args) args.push_back(v(a));
    define(s, spell(s.op, s.dtype, static_cast<DType>(s.count), args));
  }

  void print_scalar(const Statement& s) {
    const bool is_float = is_floating_point(kernel_.scalars.at(static_cast<size_t>(s.count)));
    const std::string value = fmt::format("((const {}*)scalars)[{}]", is_float ? "double" : "long", s.count);
    const std::string cast =
        s.dtype == DType::boolean ? value + " != 0" : fmt::format("({}){}", token(s.dtype), value);
    define(s, fmt::format("splat_{}({})", token(s.dtype), cast));
  }

  std::string load(const Statement& s) const {
    const auto type = token(s.dtype);
    switch (s.access) {
      case Access::uniform: {
        std::string value = is_half(s.dtype) ? fmt::format("sload_{}({})", type, pointer(s)) : element(s);
        if (s.dtype == DType::boolean) value += " != 0";
        if (s.mask >= 0) value = fmt::format("v{}[0] ? {} : 0", s.mask, value);
        return fmt::format("splat_{}({})", type, value);
      }
      case Access::contiguous:
        if (s.mask >= 0) return fmt::format("loadm_{}({}, v{})", type, pointer(s), s.mask);
        return fmt::format("load{}_{}({}{})", s.partial ? "n" : "", type, pointer(s), s.partial ? ", n" : "");
      case Access::strided:
        return fmt::format("gather{}_{}({}, {}{})", s.partial ? "n" : "", type, pointer(s), spell(s.stride),
                           s.partial ? ", n" : "");
      case Access::indexed:
        if (s.mask >= 0)
          return fmt::format("gatherm_{}({}, v{}, v{})", type, pointer(s), s.lane_index, s.mask);
        return fmt::format("gatheri_{}({}, v{})", type, pointer(s), s.lane_index);
    }
    return {};
  }

  void print_store(const Statement& s) {
    const auto type = token(s.dtype);
    const Var value = s.args[0];
    switch (s.access) {
      case Access::uniform: {
        const std::string mask = s.mask >= 0 ? fmt::format("if (v{}[0]) ", s.mask) : "";
        if (is_half(s.dtype)) return out_.line("{}sstore_{}({}, v{}[0]);", mask, type, pointer(s), value);
        return out_.line("{}{} = v{}[0]{};", mask, element(s), value,
                         s.dtype == DType::boolean ? " != 0" : "");
      }
      case Access::contiguous:
        if (s.mask >= 0) return out_.line("storem_{}({}, v{}, v{});", type, pointer(s), value, s.mask);
        if (s.partial) return out_.line("storen_{}({}, v{}, n);", type, pointer(s), value);
        if (s.stream && s.aligned) return out_.line("stream_{}({}, v{});", type, pointer(s), value);
        if (!s.stream) return out_.line("store_{}({}, v{});", type, pointer(s), value);
        return out_.line(
            "if (k_room({0}, {1}, {2}) == {2}) stream_{3}({0}, v{4}); else store_{3}({0}, v{4});", pointer(s),
            itemsize(s.dtype), lanes_, type, value);
      case Access::strided:
        return out_.line("scatter{}_{}({}, {}, v{}{});", s.partial ? "n" : "", type, pointer(s),
                         spell(s.stride), value, s.partial ? ", n" : "");
      case Access::indexed:
        if (s.mask >= 0)
          return out_.line("scatterm_{}({}, v{}, v{}, v{});", type, pointer(s), s.lane_index, value, s.mask);
        return out_.line("scatteri_{}({}, v{}, v{});", type, pointer(s), s.lane_index, value);
    }
  }

  void print_atomic(const Statement& s) {
    const std::string mask = s.mask >= 0 ? v(s.mask) : "splat_b8(true)";
    if (s.access == Access::indexed)
      return out_.line("k_atomic_{}({}, v{}, v{}, {});", token(s.dtype), pointer(s), s.lane_index, s.args[0],
                       mask);
    out_.line("k_atomic_{}({}, splat_i64(0), v{}, and_b8(tail_b8(1), {}));", token(s.dtype), pointer(s),
              s.args[0], mask);
  }

  void print_horizontal(const Statement& s) {
    const LaneSpelling& lanes = lane_spelling(s.op);
    const char* name = s.dtype == DType::boolean ? lanes.merged_bools : lanes.merged;
    define(s, fmt::format("splat_{0}({1}_{0}(v{2}))", token(s.dtype), name, s.args[0]));
  }

  void print_array(const Statement& s) {
    const auto type = token(s.dtype);
    if (!s.partial)
      return out_.line("{} p{}[{}] __attribute__((aligned(64)));", type, s.pointer, s.index.value());
    out_.line("{0}* const p{1} = ({0}*)((char*)buffers[{2}] + {3});", type, s.pointer,
              kernel_.arguments.size(), spell(s.end));
  }

  void print_loop(const Statement& s) {
    if (s.unroll > 1) out_.line("#pragma GCC unroll {}", s.unroll);
    const std::string symbol = spell(s.symbol);
    const std::string start = s.open ? "" : fmt::format("long {} = {}", symbol, spell(s.index));
    const std::string step = s.step.is(0)   ? ""
                             : s.step.is(1) ? fmt::format(" ++{}", symbol)
                                            : fmt::format(" {} += {}", symbol, spell(s.step));
    out_.braces(fmt::format("for ({}; {} < {};{})", start, symbol, spell(s.end), step),
                [&] { print(s.body); });
  }

  const Kernel& kernel_;
  const int lanes_;
  CodeWriter out_;
};

}  // namespace

Module print_module(std::span<const Kernel> kernels) {
  struct Part {
    std::string text, choices;
    int vector_bytes = 0;
  };
  std::map<int, Part> parts;  // by number of lanes
  const auto add = [&](const Kernel& kernel, int lanes, const std::vector<Statement>& body,
                       const std::string& name, bool exported) {
    Part& part = parts[lanes];
    part.vector_bytes = kernel.vector_bytes;
    part.text += Printer(kernel, lanes).function(body, name, exported);
  };
  Module module;
  for (const Kernel& kernel : kernels) {
    module.kernels.push_back(kernel.info);
    if (kernel.later.empty()) {
      add(kernel, kernel.lanes, kernel.body, kernel.info.name, true);
      continue;
    }
    std::vector<std::string> names;
    const auto add_nest = [&](int lanes, const std::vector<Statement>& body) {
      const std::string name = fmt::format("{}_phase{}", kernel.info.name, names.size());
      add(kernel, lanes, body, name, false);
      names.push_back(fmt::format("n{}::{}", lanes, name));
    };
    add_nest(kernel.lanes, kernel.body);
    for (const LaterNest& nest : kernel.later) add_nest(nest.lanes, nest.body);
    parts[kernel.lanes].choices += Printer(kernel, kernel.lanes).choice(names);
  }
  for (const auto& [lanes, part] : parts) {
    const std::string text = helpers_for(part.text + part.choices) + part.text;
    module.source += fmt::format("namespace n{} {{\n", lanes);
    module.source +=
        prelude({.vector_bytes = part.vector_bytes, .lanes = lanes, .names = prelude_names(text)});
    module.source += text;
    module.source += "}\n";
  }
  for (const auto& [lanes, part] : parts) {
    if (!part.choices.empty()) module.source += fmt::format("namespace n{} {{\n{}}}\n", lanes, part.choices);
  }
  return module;
}

Module emit_module(const loops::Program& program, std::span<const schedule::Group> groups,
                   const schedule::Target& target) {
  std::vector<Kernel> kernels;
  for (const schedule::Group& group : groups) kernels.push_back(make_kernel(program, group, target));
  return print_module(kernels);
}

}  // namespace stax::codegen
