#include "codegen/triton/printer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "codegen/triton/spelling.h"
#include "loops/fold.h"
#include "support/check.h"
#include "symbolic/ranges.h"

namespace stax::codegen {

using loops::OpCode;

namespace {

std::string_view hint_name(ReductionHint hint) {
  constexpr std::string_view kNames[] = {"DEFAULT", "INNER", "OUTER", "OUTER_TINY"};
  return kNames[static_cast<size_t>(hint)];
}

std::string_view signature_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return "i1";
    case DType::uint8:
      return "u8";
    case DType::int8:
      return "i8";
    case DType::int16:
      return "i16";
    case DType::int32:
      return "i32";
    case DType::int64:
      return "i64";
    case DType::float16:
      return "fp16";
    case DType::bfloat16:
      return "bf16";
    case DType::float32:
      return "fp32";
    case DType::float64:
      return "fp64";
  }
  return "";
}

class TritonPrinter {
 public:
  TritonPrinter(const TileKernel& kernel, bool folded, std::string_view facts)
      : kernel_(kernel), folded_(folded), facts_(facts) {
    for (const TileAxis& axis : kernel.axes)
      for (const TileVariable& v : axis.variables) {
        variables_[v.symbol] = v.name;
        ranges_.set_extent(v.symbol, v.extent);
      }
    for (size_t k = 0; k < kernel.symbols.size(); ++k) variables_[kernel.symbols[k]] = fmt::format("ks{}", k);
  }

  std::string run() {
    decorator();
    signature();
    depth_ = 1;
    sizes();
    for (const TileAxis& axis : kernel_.axes)
      if (facts_of(axis.kind).grid_dimension >= 0) instance_axis(axis);
    reduction_header();
    iteration_variables();
    if (kernel_.peel) peel_header(*kernel_.peel);
    statements(kernel_.body);
    return std::move(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    out_.append(static_cast<size_t>(depth_) * 4, ' ');
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
    out_ += '\n';
  }

  const TileAxis* reduction() const { return kernel_.axis(TileAxisKind::r0); }
  bool one_dimensional() const { return kernel_.axes.size() == 1; }

  // Head

  void decorator() {
    constexpr std::string_view kForms[] = {"pointwise", "persistent_reduction", "reduction"};
    std::vector<std::string> hints, types;
    for (const TileAxis& axis : kernel_.axes)
      hints.push_back(fmt::format("'{}': {}", facts_of(axis.kind).prefix, axis.size_hint));
    std::string more;
    if (kernel_.form == TileForm::pointwise && kernel_.axes.size() == 2)
      more = fmt::format("tile_hint=TileHint.{}, ", kernel_.pointers.size() == 2 ? "SQUARE" : "DEFAULT");
    if (kernel_.form != TileForm::pointwise)
      more = fmt::format("reduction_hint=ReductionHint.{}, ", hint_name(kernel_.hint));
    for (const TilePointer& p : kernel_.pointers)
      types.push_back(fmt::format("'{}': '*{}'", p.name, signature_type(p.dtype)));
    if (kernel_.checks) types.push_back("'status': '*i64'");
    for (size_t k = 0; k < kernel_.scalars.size(); ++k)
      types.push_back(
          fmt::format("'scalar{}': '{}'", k, is_floating_point(kernel_.scalars[k]) ? "fp64" : "i64"));
    line("@triton_heuristics.{}(size_hints={{{}}}, {}signature={{{}}}, grid='Grid{}D'{})",
         kForms[static_cast<size_t>(kernel_.form)], fmt::join(hints, ", "), more, fmt::join(types, ", "),
         kernel_.axes.size() - (reduction() != nullptr ? 1 : 0), facts_);
    line("@triton.jit");
  }

  void signature() {
    std::vector<std::string> parameters;
    for (const TilePointer& p : kernel_.pointers) parameters.push_back(p.name);
    if (kernel_.checks) parameters.push_back("status");
    for (size_t k = 0; k < kernel_.scalars.size(); ++k) parameters.push_back(fmt::format("scalar{}", k));
    for (size_t k = 0; k < kernel_.symbols.size(); ++k) parameters.push_back(fmt::format("ks{}", k));
    for (const TileAxis& axis : kernel_.axes)
      parameters.push_back(fmt::format("{}numel", facts_of(axis.kind).prefix));
    for (const TileAxis& axis : kernel_.axes)
      if (axis.block == 0) parameters.push_back(fmt::format("{} : tl.constexpr", facts_of(axis.kind).block));
    if (kernel_.staged) parameters.push_back("NUM_STAGES : tl.constexpr = 1");
    if (kernel_.keeps) parameters.push_back(fmt::format("{} : tl.constexpr = 0", kKeptBlocks));
    line("def {}({}):", kernel_.name, fmt::join(parameters, ", "));
  }

  void sizes() {
    for (const TileAxis& axis : kernel_.axes)
      if (axis.numel.is_constant()) line("{}numel = {}", facts_of(axis.kind).prefix, axis.numel.value());
    const TileAxis* r = reduction();
    if (r == nullptr) return;
    if (r->block > 0) line("R0_BLOCK: tl.constexpr = {}", r->block);
    line("rnumel = r0_numel");
    line("RBLOCK: tl.constexpr = R0_BLOCK");
  }

  /// "[:, None]": a vector along `kind` as a block.
  std::string spread(TileAxisKind kind) const {
    if (one_dimensional()) return "[:]";
    std::vector<std::string_view> parts;
    for (const TileAxis& axis : kernel_.axes) parts.push_back(axis.kind == kind ? ":" : "None");
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }

  /// The number of a block along an axis. Where the grid is folded: of x, y and z, x innermost.
  std::string instance(const TileAxis& axis) const {
    if (!folded_) return fmt::format("tl.program_id({})", facts_of(axis.kind).grid_dimension);
    std::string number = "tl.program_id(0)";
    for (size_t k = kernel_.axes.size(); k-- > 0;) {
      const TileAxis& inner = kernel_.axes[k];
      const TileAxisFacts& n = facts_of(inner.kind);
      if (n.grid_dimension < 0) continue;
      const std::string blocks = fmt::format("tl.cdiv({}numel, {})", n.prefix, n.block);
      if (inner.kind == axis.kind) return k == 0 ? number : fmt::format("({} % {})", number, blocks);
      number = fmt::format("({} // {})", number, blocks);
    }
    STAX_ASSERT(false, "{}: no instances along {}", kernel_.name, facts_of(axis.kind).prefix);
  }

  void instance_axis(const TileAxis& axis) {
    const TileAxisFacts& n = facts_of(axis.kind);
    const std::string_view wide = kernel_.wide_index ? ".to(tl.int64)" : "";
    line("{}offset = {}{} * {}", n.prefix, instance(axis), wide, n.block);
    line("{0}index = {0}offset + tl.arange(0, {1}){2}{3}", n.prefix, n.block, spread(axis.kind), wide);
    if (axis.masked)
      line("{0}mask = {0}index < {0}numel", n.prefix);
    else
      line("{} = tl.full([{}], True, tl.int1){}", n.mask, n.block, spread(axis.kind));
  }

  void reduction_header() {
    const TileAxis* r = reduction();
    if (r == nullptr) return;
    const std::string_view wide = kernel_.wide_index ? ".to(tl.int64)" : "";
    const std::string dims = spread(TileAxisKind::r0);
    if (kernel_.form == TileForm::looped) {
      line("r0_base = tl.arange(0, R0_BLOCK){}{}", dims, wide);
      line("rbase = r0_base");
      return;
    }
    line("r0_index = tl.arange(0, R0_BLOCK){}{}", dims, wide);
    line("r0_offset = 0");
    if (r->masked)
      line("r0_mask = r0_index < r0_numel");
    else
      line("r0_mask = tl.full([R0_BLOCK], True, tl.int1){}", dims);
    line("roffset = r0_offset");
    line("rindex = r0_index");
    variables(*r);
  }

  /// Where the aligned middle of a row starts, how long it is, and the block that takes both ends.
  void peel_header(const TilePeel& peel) {
    const auto v = peel.vector;
    line("R0_EDGES: tl.constexpr = {}", 2 * v);
    const std::string row = text(peel.start);
    line("r0_row = {}",
         peel.start.is_constant() ? fmt::format("tl.full({}, {}, tl.int32)", shape(0), row) : row);
    // Triton sees that this is a multiple; a hint would not survive the folding of blocks of one row.
    line("r0_start = (r0_row + {}) // {} * {}", v - 1, v, v);
    line("r0_head = r0_start - r0_row");
    line("r0_limit = tl.maximum(r0_numel - r0_head, 0) // {0} * {0}", v);
    line("r0_edge = tl.arange(0, R0_EDGES){}", spread(TileAxisKind::r0));
  }

  void edges(const TileStatement& s) {
    const int64_t v = kernel_.peel->vector;
    const TileVariable& row = reduction()->variables[0];
    const std::string inside = std::exchange(variables_[row.symbol], "r0_edge_index");
    line("r0_edge_index = tl.where(r0_edge < {0}, r0_edge, r0_head + r0_limit + r0_edge - {0})", v);
    line("r0_edge_mask = ((r0_edge < r0_head) | (r0_edge >= {})) & (r0_edge_index < r0_numel)", v);
    in_edges_ = true;
    statements(s.body);
    in_edges_ = false;
    variables_[row.symbol] = inside;
  }

  void iteration_variables() {
    for (size_t k = kernel_.axes.size(); k-- > 0;)
      if (facts_of(kernel_.axes[k].kind).grid_dimension >= 0) variables(kernel_.axes[k]);
  }

  /// The loop variables of an axis, innermost first.
  void variables(const TileAxis& axis) {
    for (size_t k = axis.variables.size(); k-- > 0;) {
      const TileVariable& v = axis.variables[k];
      std::string value = fmt::format("{}index", facts_of(axis.kind).prefix);
      if (axis.numel.is(0)) {  // no position, and lengths that nothing can be divided by
        line("{} = {}", v.name, value);
        continue;
      }
      if (!v.divisor.is(1)) value = fmt::format("{} // {}", value, factor(v.divisor));
      if (!v.outermost) value = fmt::format("({}) % {}", value, factor(v.extent));
      line("{} = {}", v.name, value);
    }
  }

  // Expressions

  std::string text(Expr e, const std::vector<TileVar>& indirect = {}) const {
    Calls calls;
    const Expr plain = with_calls(e, indirect, calls);
    return to_string(plain, [&](Symbol s) { return name_of(s, indirect, calls); });
  }

  /// Parts of an expression that are spelled as calls, and the symbols that stand for them.
  using Calls = std::unordered_map<Symbol, std::string>;

  std::string name_of(Symbol s, const std::vector<TileVar>& indirect, const Calls& calls) const {
    if (s.kind == SymbolKind::indirect) return var(indirect.at(static_cast<size_t>(s.number)));
    if (const auto call = calls.find(s); call != calls.end()) return call->second;
    const auto it = variables_.find(s);
    STAX_ASSERT(it != variables_.end(), "{}: no name for {}", kernel_.name, s.str());
    return widens_ ? it->second + ".to(tl.int64)" : it->second;
  }

  /// Triton's // and % truncate, and min and max of blocks are functions.
  Expr with_calls(Expr e, const std::vector<TileVar>& indirect, Calls& calls) const {
    std::vector<Expr> parts;
    for (Expr a : e.args()) parts.push_back(with_calls(a, indirect, calls));
    const auto spelled = [&](Expr a) {
      return to_string(a, [&](Symbol s) { return name_of(s, indirect, calls); });
    };
    const auto call = [&](std::string words) {
      const Symbol stands{SymbolKind::block, static_cast<int32_t>(calls.size())};
      calls.emplace(stands, std::move(words));
      return Expr(stands);
    };
    switch (e.kind()) {
      case ExprKind::constant:
      case ExprKind::symbol:
        return e;
      case ExprKind::add:
        return sum(parts);
      case ExprKind::mul:
        return product(parts);
      case ExprKind::floor_div:
      case ExprKind::mod: {
        const bool division = e.kind() == ExprKind::floor_div;
        const auto lower = ranges_.interval(e.args()[0]).lower;
        if (lower && *lower >= 0) return division ? floor_div(parts[0], parts[1]) : mod(parts[0], parts[1]);
        return call(fmt::format("triton_helpers.{}({}, {})", division ? "index_div" : "index_mod",
                                spelled(parts[0]), spelled(parts[1])));
      }
      case ExprKind::min:
      case ExprKind::max: {
        std::string words = spelled(parts[0]);
        for (size_t k = 1; k < parts.size(); ++k)
          words = fmt::format("tl.{}({}, {})", e.kind() == ExprKind::min ? "minimum" : "maximum", words,
                              spelled(parts[k]));
        return call(words);
      }
    }
    return e;
  }
  std::string factor(Expr e) const { return e.is_constant() ? text(e) : fmt::format("({})", text(e)); }

  std::string var(TileVar v) const {
    const auto it = std::find(accumulators_.begin(), accumulators_.end(), v);
    return fmt::format("{}tmp{}", it != accumulators_.end() ? "_" : "", v);
  }
  std::vector<std::string> vars(const std::vector<TileVar>& list) const {
    std::vector<std::string> found;
    for (TileVar v : list) found.push_back(var(v));
    return found;
  }

  /// "[XBLOCK, 1]": the shape of a block that varies along `along`.
  std::string shape(AxisSet along) const {
    std::vector<std::string_view> parts;
    for (const TileAxis& axis : kernel_.axes)
      parts.push_back((along & axis_bit(axis.kind)) == 0           ? "1"
                      : in_edges_ && axis.kind == TileAxisKind::r0 ? "R0_EDGES"
                                                                   : facts_of(axis.kind).block);
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }

  /// "r0_mask & xmask"; empty where nothing is masked.
  std::string mask(const TileStatement& s) const {
    std::vector<std::string> parts;
    for (const TileAxis& axis : kernel_.axes)
      if ((s.masks & axis_bit(axis.kind)) != 0)
        parts.emplace_back(in_edges_ && axis.kind == TileAxisKind::r0 ? "r0_edge_mask"
                                                                      : facts_of(axis.kind).mask);
    if (s.mask >= 0) parts.push_back(var(s.mask));
    std::sort(parts.begin(), parts.end());
    return fmt::format("{}", fmt::join(parts, " & "));
  }

  // Statements

  void statements(const std::vector<TileStatement>& list) {
    for (const TileStatement& s : list) statement(s);
  }

  void statement(const TileStatement& s) {
    switch (s.action) {
      case TileAction::constant:
        line("{} = {}", var(s.out), constant(s));
        return;
      case TileAction::index:
        line("{} = {}", var(s.out), index_value(s));
        return;
      case TileAction::scalar:
        line("{} = scalar{}.to({})", var(s.out), s.count, triton_dtype(s.dtype));
        return;
      case TileAction::load:
        load(s);
        return;
      case TileAction::recall:
        line("{} = kept{}[r0_step]{}", var(s.out), s.kept, widened(s.dtype));
        return;
      case TileAction::compute:
        line("{} = {}", var(s.out), spell_triton(s.op, s.dtype, s.from, vars(s.args), s.relaxed));
        return;
      case TileAction::check:
        check(s);
        return;
      case TileAction::random:
        line("{} = triton_helpers.random_bits({}, {})", var(s.out), fmt::join(vars(s.args), ", "), s.count);
        return;
      case TileAction::broadcast:
        line("{} = tl.broadcast_to({}, {})", var(s.out), var(s.args[0]), shape(s.along));
        return;
      case TileAction::select:
        line("{} = tl.where({}, {}, {})", var(s.out), mask(s), var(s.args[0]), identity(s));
        return;
      case TileAction::reduce:
        reduce(s);
        return;
      case TileAction::scan:
        scan(s);
        return;
      case TileAction::start:
        start(s);
        return;
      case TileAction::accumulate:
        accumulate(s);
        return;
      case TileAction::store:
      case TileAction::atomic_add:
        store(s);
        return;
      case TileAction::loop:
        loop(s);
        return;
      case TileAction::kept_loads:
        for (const TileStatement& load : s.body) line("kept{} = ()", load.kept);
        [[fallthrough]];
      case TileAction::kept_steps:
        kept_steps(s);
        return;
      case TileAction::edges:
        edges(s);
        return;
    }
  }

  std::string constant(const TileStatement& s) const {
    const auto full = [&](const std::string& value) {
      return fmt::format("tl.full({}, {}, {})", shape(0), value, triton_dtype(s.dtype));
    };
    // Triton makes every zero a positive one.
    const bool zero = is_floating_point(s.dtype) && s.number.as_double() == 0;
    if (zero && std::signbit(s.number.as_double())) return full("0.0") + " * -1.0";
    return full(triton_constant(s.dtype, s.number));
  }

  /// Whether the expression and all its parts stay within 32 bits.
  bool is_narrow(Expr e) const {
    const Interval range = ranges_.interval(e);
    const bool fits = range.lower && range.upper && *range.lower >= INT32_MIN && *range.upper <= INT32_MAX;
    return fits && std::ranges::all_of(e.args(), [&](Expr a) { return is_narrow(a); });
  }

  std::string index_value(const TileStatement& s) {
    widens_ = !kernel_.wide_index && !is_narrow(s.index);
    std::string value = value_of_index(s);
    widens_ = false;
    return value;
  }

  std::string value_of_index(const TileStatement& s) const {
    if (s.index.is_constant()) return fmt::format("tl.full({}, {}, tl.int64)", shape(0), text(s.index));
    const std::string value = text(s.index, s.indirect);
    const bool block = s.along != 0 || !s.indirect.empty();
    return block ? fmt::format("({}).to(tl.int64)", value)
                 : fmt::format("tl.full({}, {}, tl.int64)", shape(0), value);
  }

  /// "in_ptr0 + (x0)"; an address that varies less than its block is spread out over it.
  std::string address(const TileStatement& s) const {
    const std::string& pointer = kernel_.pointers[static_cast<size_t>(s.pointer)].name;
    const std::string index = text(s.index, s.indirect);
    if (s.aligned && !in_edges_) {
      const Expr rest = s.index - Expr(reduction()->variables[0].symbol) - kernel_.peel->start;
      return fmt::format("{} + (r0_start + r0_lane{})", pointer, rest.is(0) ? "" : " + " + factor(rest));
    }
    if (!s.spread) return fmt::format("{} + ({})", pointer, index);
    const bool number = s.index.is_constant() && s.indirect.empty();
    return fmt::format("{} + tl.broadcast_to({}, {})", pointer,
                       number ? fmt::format("tl.full({}, {}, tl.int32)", shape(0), index) : index,
                       shape(s.along));
  }

  static std::string_view policy(Eviction eviction) {
    constexpr std::string_view kPolicies[] = {"", ", eviction_policy='evict_first'",
                                              ", eviction_policy='evict_last'"};
    return kPolicies[static_cast<size_t>(eviction)];
  }

  void load(const TileStatement& s) {
    std::string call = "tl.load(" + address(s);
    const std::string on = mask(s);
    if (!on.empty()) call += ", " + on;
    call += policy(s.eviction);
    if (s.has_other && !on.empty()) {
      const bool zero = s.number.bits == 0;
      call += ", other=" + (zero && !is_floating_point(s.dtype) ? "0" : triton_constant(s.dtype, s.number));
    }
    if (s.kept >= 0) {
      line("kept{0} = kept{0} + ({1}),)", s.kept, call);
      return;
    }
    line("{} = {}){}", var(s.out), call, widened(s.dtype));
  }

  /// Halves are computed with as float32.
  static const char* widened(DType dtype) { return is_half(dtype) ? ".to(tl.float32)" : ""; }

  void store(const TileStatement& s) {
    const std::string on = mask(s);
    const std::string to = address(s);
    const bool add = s.action == TileAction::atomic_add;
    std::string value = var(s.args[0]);
    if (add) value = fmt::format("tl.broadcast_to({}, {})", value, shape(s.along));
    if (add && is_half(s.dtype)) value += fmt::format(".to({})", triton_dtype(s.dtype));
    line("{}({}, {}{}{}{})", add ? "triton_helpers.atomic_add" : "tl.store", to, value,
         on.empty() ? add ? ", None" : "" : ", ", on, policy(s.eviction));
  }

  void check(const TileStatement& s) {
    const std::string on = mask(s);
    line("{} = triton_helpers.check_index({}, {}, {}, {}, {}, status)", var(s.out), var(s.args[0]),
         text(s.index), s.wrap ? "True" : "False", on.empty() ? "None" : on, s.count);
  }

  std::string identity(const TileStatement& s) const {
    const bool zero = s.number.as_int() == 0;
    return zero && s.dtype != DType::boolean ? "0" : triton_constant(s.dtype, s.number);
  }

  /// The position along the reduction.
  const char* rindex() const { return in_edges_ ? "r0_edge_index" : "rindex"; }

  std::string spell(const char* pattern, const std::vector<std::string>& args,
                    const std::vector<std::string>& carried = {}) const {
    return spell_fold(pattern, args, carried, {dimension(), rindex(), {}});
  }

  /// Dimension of a block that r0 runs along.
  int dimension() const { return static_cast<int>(kernel_.axes.size()) - 1; }

  std::string results(TileVar first, int32_t count) const {
    std::vector<std::string> list;
    for (int32_t k = 0; k < count; ++k) list.push_back(var(first + k));
    return fmt::format("{}", fmt::join(list, ", "));
  }

  /// A reduced block keeps its dimension.
  std::string kept() const {
    std::vector<std::string_view> parts(kernel_.axes.size(), ":");
    parts.back() = "None";
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }

  void reduce(const TileStatement& s) {
    const TritonFold& fold = triton_fold(s.op);
    std::vector<std::string> args = vars(s.args);
    const bool position = s.op == OpCode::reduce_argmax || s.op == OpCode::reduce_argmin;
    if (position && s.carried.empty())
      args.push_back(fmt::format("tl.broadcast_to({}, {})", rindex(), shape(all())));
    if (position && !s.carried.empty()) std::swap(args[0], args[1]);
    const int32_t count = loops::result_count(s.op);
    if (s.of_rows) {
      for (int32_t k = 0; k < count; ++k) line("{} = {}", var(s.out + k), args[static_cast<size_t>(k)]);
      return;
    }
    const std::string call = spell(fold.reduce, args);
    if (count == 1) {
      const bool rounds = s.carried.empty() || s.dtype == DType::boolean;
      line("{} = {}{}{}", var(s.out), call, kept(),
           rounds ? fmt::format(".to({})", triton_dtype(s.dtype)) : std::string());
      return;
    }
    line("{} = {}", results(s.out, count), call);
    for (int32_t k = 0; k < count; ++k) line("{0} = {0}{1}", var(s.out + k), kept());
    if (position) line("{0} = {0}.to(tl.int64)", var(s.out));
  }

  AxisSet all() const {
    AxisSet set = 0;
    for (const TileAxis& axis : kernel_.axes) set |= axis_bit(axis.kind);
    return set;
  }

  void start(const TileStatement& s) {
    for (int32_t k = 0; k < s.count; ++k) {
      accumulators_.push_back(s.out + k);
      const std::string value = start_value(s, k);
      const DType dtype = loops::result_dtype(s.op, k, s.dtype);
      const auto along = s.of_rows ? static_cast<AxisSet>(s.along & ~axis_bit(TileAxisKind::r0)) : s.along;
      const std::string full = fmt::format("tl.full({}, {}, {})", shape(along), value, triton_dtype(dtype));
      if (s.args.empty())
        line("{} = {}", var(s.out + k), full);
      else if (s.of_rows)
        line("{} = {}", var(s.out + k), var(s.args[static_cast<size_t>(k)]));
      else
        line("{} = tl.where(r0_base == 0, {}, {})", var(s.out + k), var(s.args[static_cast<size_t>(k)]),
             full);
    }
  }

  /// The identity of accumulator k.
  std::string start_value(const TileStatement& s, int32_t k) const {
    switch (s.op) {
      case OpCode::reduce_argmax:
      case OpCode::reduce_argmin:
        return k == 0 ? "9223372036854775807" : identity(s);
      case OpCode::scan_max:
      case OpCode::scan_min:
        return k == 0 ? identity(s) : "0";
      case OpCode::reduce_softmax:
        return k == 0 ? "float(\"-inf\")" : "0";
      default:
        return identity(s);
    }
  }

  void accumulate(const TileStatement& s) {
    const std::vector<std::string> carried = vars(s.carried);
    const std::string on = mask(s);
    if (s.of_rows) {
      std::string value = var(s.args[0]);
      if (s.op == OpCode::reduce_softmax && !on.empty())
        value = fmt::format("tl.where({}, {}, float(\"-inf\"))", on, value);
      const FoldAlong along = {dimension(), rindex(), on.empty() ? "None" : std::string_view(on)};
      line("{} = {}", fmt::join(carried, ", "), spell_fold(triton_fold(s.op).rows, {value}, carried, along));
      return;
    }
    std::string call = spell(triton_fold(s.op).combine, vars(s.args), carried);
    const auto count = static_cast<int32_t>(carried.size());
    line("{} = {}", results(s.out, count), call);
    for (int32_t k = 0; k < count; ++k) {
      const std::string& a = carried[static_cast<size_t>(k)];
      if (on.empty())
        line("{} = {}", a, var(s.out + k));
      else
        line("{} = tl.where({}, {}, {})", a, on, var(s.out + k), a);
    }
  }

  void scan(const TileStatement& s) {
    std::vector<std::string> args = vars(s.args);
    const int32_t count = loops::result_count(s.op);
    if (count == 2) args.push_back(fmt::format("tl.broadcast_to(rindex, {}).to(tl.int64)", shape(all())));
    const TritonFold& fold = triton_fold(s.op);
    line("{} = {}", results(s.out, count), spell(fold.reduce, args));
    if (s.carried.empty()) return;
    line("{} = {}", results(s.out, count),
         spell(fold.combine, vars({s.out, s.out + count - 1}), vars(s.carried)));
    for (int32_t k = 0; k < count; ++k)
      line("{} = triton_helpers.last({}, {})", var(s.carried[static_cast<size_t>(k)]), var(s.out + k),
           dimension());
  }

  void loop(const TileStatement& s) {
    const std::string first = kernel_.keeps ? fmt::format("{} * R0_BLOCK", kKeptBlocks) : "0";
    line("for {} in tl.range({}, r0_numel, R0_BLOCK{}):", s.backward ? "r0_done" : "r0_offset", first,
         kernel_.staged ? ", num_stages=NUM_STAGES" : "");
    ++depth_;
    if (s.backward) line("r0_offset = (r0_numel - 1) // R0_BLOCK * R0_BLOCK + {} - r0_done", first);
    block_of_row(s);
    --depth_;
  }

  void kept_steps(const TileStatement& s) {
    line("for r0_step in tl.static_range({}):", kKeptBlocks);
    ++depth_;
    // As wide as in the loop that follows, where the variables of a step are carried on.
    if (kernel_.wide_index)
      line("r0_offset = tl.full([], r0_step * R0_BLOCK, tl.int64)");
    else
      line("r0_offset = r0_step * R0_BLOCK");
    block_of_row(s);
    --depth_;
  }

  void block_of_row(const TileStatement& s) {
    const TileAxis* r = reduction();
    if (kernel_.peel) line("r0_lane = r0_offset + r0_base");
    line("r0_index = {}", kernel_.peel ? "r0_head + r0_lane" : "r0_offset + r0_base");
    if (kernel_.peel)
      line("r0_mask = r0_lane < r0_limit");
    else if (r->masked)
      line("r0_mask = r0_index < r0_numel");
    else
      line("r0_mask = tl.full([R0_BLOCK], True, tl.int1){}", spread(TileAxisKind::r0));
    line("roffset = r0_offset");
    line("rindex = r0_index");
    variables(*r);
    statements(s.body);
  }

  const TileKernel& kernel_;
  const bool folded_;
  const std::string_view facts_;
  std::string out_;
  int depth_ = 0;
  bool in_edges_ = false;
  bool widens_ = false;  // loop variables and sizes are spelled as 64-bit integers
  std::unordered_map<Symbol, std::string> variables_;
  Ranges ranges_;
  std::vector<TileVar> accumulators_;
};

}  // namespace

std::string print_triton(const TileKernel& kernel, bool folded, std::string_view facts) {
  return fmt::format(
      "import triton\nimport triton.language as tl\n"
      "from stax_triton.runtime import ReductionHint, TileHint, libdevice, triton_helpers, "
      "triton_heuristics\n"
      "\n# {}\n{}",
      kernel.origin, TritonPrinter(kernel, folded, facts).run());
}

TritonSources print_sources(const TileKernel& kernel) {
  return {print_triton(kernel), may_fold(kernel) ? print_triton(kernel, true) : std::string()};
}

const std::string& TritonSources::of(LaunchVariant variant) const {
  STAX_ASSERT(!variant.folded || !folded.empty(), "a kernel is launched in a folded grid that needs none");
  return variant.folded ? folded : plain;
}

}  // namespace stax::codegen
