#include "schedule/forms.h"

#include <fmt/core.h>

#include <algorithm>

#include "loops/analysis.h"
#include "schedule/memory_plan.h"

namespace stax::schedule {

using loops::Inst;

RowForm row_form(Expr bytes, const Target& target, Chooser& chooser) {
  const bool held =
      chooser.likely(le(bytes, target.row_bytes), "rows are held between passes", "rows are recomputed");
  return held ? RowForm::held : RowForm::recomputed;
}

namespace {

/// The largest value of `e` over all points of a group, as an expression of sizes.
class Largest {
 public:
  Largest(const Group& group, const Sizes& sizes) : group_(group), ranges_(sizes.ranges()) {
    for (size_t k = 0; k < group.ranges.size(); ++k)
      set({SymbolKind::index, static_cast<int32_t>(k)}, group.ranges[k]);
    for (size_t k = 0; k < group.reduction_ranges.size(); ++k) {
      set({SymbolKind::reduction, static_cast<int32_t>(k)}, group.reduction_ranges[k]);
    }
  }

  /// Nothing where none is known.
  std::optional<Expr> operator()(Expr e) const {
    if (const auto by_form = of(e)) return by_form;
    const auto upper = ranges_.interval(e).upper;
    return upper ? std::optional(Expr(*upper)) : std::nullopt;
  }

 private:
  std::optional<Expr> of(Expr e) const {
    switch (e.kind()) {
      case ExprKind::constant:
        return e;
      case ExprKind::symbol:
        return of_symbol(e.symbol());
      case ExprKind::mul:
        return of_product(e);
      case ExprKind::mod:
        return is_size(e.args()[1]) ? std::optional(e.args()[1] - 1) : std::nullopt;
      case ExprKind::floor_div: {
        const auto left = of(e.args()[0]);
        if (!left || !is_size(e.args()[1]) || !nonnegative(e.args()[1])) return std::nullopt;
        return floor_div(*left, e.args()[1]);
      }
      case ExprKind::add:
      case ExprKind::min:
      case ExprKind::max:
        break;
    }
    std::optional<Expr> out = of(e.args()[0]);
    for (const Expr a : e.args().subspan(1)) {
      const auto next = of(a);
      if (!out || !next) return std::nullopt;
      out = e.kind() == ExprKind::add   ? *out + *next
            : e.kind() == ExprKind::min ? min(*out, *next)
                                        : max(*out, *next);
    }
    return out;
  }
  void set(Symbol symbol, Expr extent) { ranges_.set_extent(symbol, extent); }
  bool nonnegative(Expr e) const { return decide(ge(e, 0), ranges_).value_or(false); }
  static bool is_size(Expr e) {
    return !e.contains(SymbolKind::index) && !e.contains(SymbolKind::reduction) &&
           !e.contains(SymbolKind::indirect);
  }
  std::optional<Expr> of_symbol(Symbol s) const {
    if (s.kind == SymbolKind::index) return group_.ranges[static_cast<size_t>(s.number)] - 1;
    if (s.kind == SymbolKind::reduction) return group_.reduction_ranges[static_cast<size_t>(s.number)] - 1;
    if (s.kind == SymbolKind::indirect) return std::nullopt;
    return Expr(s);
  }
  std::optional<Expr> of_product(Expr e) const {
    Expr out = 1, rest = 1;
    int64_t sign = 1;
    for (const Expr factor : e.args()) {
      if (factor.is_constant() && factor.value() < 0) {
        sign = -1;
        out *= -factor;
        continue;
      }
      const auto next = of(factor);
      if (!next || !nonnegative(factor)) return std::nullopt;
      out *= *next;
      rest *= factor;
    }
    if (sign > 0) return out;
    return is_size(rest) ? e : Expr(0);
  }

  const Group& group_;
  Ranges ranges_;
};

std::optional<Expr> largest_number(const loops::Program& program, const Group& group, const Sizes& sizes) {
  const Largest largest(group, sizes);
  Expr out = max(product(group.ranges), product(group.reduction_ranges));
  for (const Member& m : group.members) {
    for (const Inst& inst : m.body) {
      if (!loops::accesses_memory(inst)) {  // sizes among the values
        for (const Symbol s : inst.index.symbols()) {
          if (s.kind != SymbolKind::size && s.kind != SymbolKind::unbacked) continue;
          const bool positive = sizes.proves(ge(Expr(s), 0));
          out = max(out, positive ? Expr(s) : max(Expr(s), -Expr(s)));
        }
      }
      if (!loops::accesses_memory(inst)) continue;
      // An index that was computed lies within the buffer.
      const bool computed = inst.index.contains(SymbolKind::indirect);
      const loops::Buffer& buffer = program.buffers[inst.buffer];
      const auto offset =
          computed
              ? std::optional(ceil_div(storage_bytes(buffer), std::max<int64_t>(1, itemsize(buffer.dtype))))
              : largest(inst.index);
      if (!offset) return std::nullopt;
      out = max(out, *offset);
    }
  }
  return simplify(out, sizes.ranges());
}

}  // namespace

IndexWidth index_width(const loops::Program& program, const Group& group, const Target& target,
                       Chooser& chooser) {
  // Less than 2^31, so that a counter does not overflow behind the last block of a loop.
  constexpr int64_t kEnd = (int64_t{1} << 31) - (int64_t{1} << 16);
  constexpr const char *kNarrow = "indices of 32 bits", *kWide = "indices of 64 bits";
  IndexWidth out;
  out.largest = largest_number(program, group, chooser.sizes());
  for (const Group& later : group.later) {
    const auto more = largest_number(program, later, chooser.sizes());
    out.largest = out.largest && more ? std::optional(max(*out.largest, *more)) : std::nullopt;
  }
  if (!out.largest) {
    chooser.note(kWide, "no bound of the offsets is known");
    return out;
  }
  const Condition fits = lt(*out.largest, kEnd);
  if (target.narrow_indices) {
    if (chooser.required(fits, kNarrow, kWide)) out.bits = 32;
    return out;
  }
  if (out.largest->is_constant()) return out;
  const std::string why = chooser.sizes().proves(fits) ? "for all sizes"
                          : chooser.sizes().hint(*out.largest)
                              ? fmt::format("is {} by the hint", *chooser.sizes().hint(*out.largest))
                              : "has no hint";
  chooser.note(kWide, fmt::format("the target has no others; {}, {}", fits.str(), why));
  return out;
}

}  // namespace stax::schedule
