#include "codegen/kernel/kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>

#include "codegen/forms.h"
#include "codegen/kernel/emitter.h"
#include "codegen/kernel/passes.h"
#include "schedule/forms.h"
#include "support/check.h"

namespace stax::codegen {

namespace {

/// Loops over the iteration range, around the passes of each cell.
class Nest {
 public:
  Nest(const schedule::Group& group, const FlatGroup& flat, const Layout& layout, Emitter& emitter,
       Passes& passes)
      : group_(group), flat_(flat), layout_(layout), e_(emitter), passes_(passes) {}

  void write() {
    passes_.prepare();
    const Expr begin = layout_.serial ? Expr(0) : Expr(kBegin);
    const Expr end = layout_.serial ? points() : Expr(kEnd);
    if (layout_.shares_vector) {
      shared_rows(begin, end);
    } else if (layout_.tile > 0 && layout_.order.size() == 2) {
      tiles(begin, end);
    } else if (layout_.domain == 1) {
      e_.loop(variable(0), begin, end, 1, [&] { inner(1); });
    } else {
      const Symbol point = e_.fresh();
      e_.loop(point, begin, end, 1, [&] {
        split(point, layout_.domain);
        inner(static_cast<size_t>(layout_.domain));
      });
    }
    if (layout_.stream) e_.add({.action = Action::fence});
  }

  /// Points of the parallel domain.
  Expr points() const {
    Expr n = 1;
    for (int32_t d = 0; d < layout_.domain; ++d) n *= extent(static_cast<size_t>(d));
    return n;
  }

 private:
  Symbol variable(size_t d) const { return {SymbolKind::index, layout_.order[d]}; }
  Expr extent(size_t d) const { return group_.ranges[layout_.order[d]]; }

  /// Defines the variables of the first `n` dimensions from their common number.
  void split(Expr point, int32_t n) {
    Expr inside = 1;
    for (int32_t d = n; d-- > 0;) {
      Expr value = floor_div(point, inside);
      if (d > 0) value = mod(value, extent(static_cast<size_t>(d)));
      e_.add({.action = Action::let, .index = value, .symbol = variable(static_cast<size_t>(d))});
      inside *= extent(static_cast<size_t>(d));
    }
  }

  /// The domain holds every dimension: part of a row, whole rows, part of a row.
  void shared_rows(Expr begin, Expr end) {
    const size_t last = layout_.order.size() - 1;
    if (last == 0) return row(begin, end);
    const Symbol point = e_.fresh();
    e_.add({.action = Action::let, .index = begin, .symbol = point});
    Statement loop{.action = Action::loop, .end = end, .step = 0, .symbol = point, .open = true};
    e_.in(loop.body, [&] {
      const Expr lo = e_.let(mod(point, extent(last)));
      const Expr hi = e_.let(min(extent(last), lo + end - Expr(point)));
      const Expr outer = e_.let(floor_div(point, extent(last)));
      split(outer, static_cast<int32_t>(last));
      row(lo, hi);
      e_.add({.action = Action::set, .index = Expr(point) + hi - lo, .symbol = point});
    });
    e_.add(std::move(loop));
  }

  void inner(size_t d) {
    if (layout_.tile > 0 && d + 2 == layout_.order.size()) return tiles(0, extent(d));
    if (d == layout_.order.size()) return passes_.cell();
    if (layout_.along == VectorAlong::iteration && d + 1 == layout_.order.size()) return row(0, extent(d));
    e_.loop(variable(d), 0, extent(d), 1, [&] { inner(d + 1); });
  }

  /// The last two dimensions: tiles of the vector dimension, each over [lo, hi) of the dimension before it.
  void tiles(Expr lo, Expr hi) {
    const size_t last = layout_.order.size() - 1;
    const Symbol x = e_.fresh();
    e_.loop(x, 0, extent(last), layout_.tile, [&] {
      const bool even = extent(last).constant() && *extent(last).constant() % layout_.tile == 0;
      const Expr stop =
          even ? Expr(x) + Expr(layout_.tile) : Expr(e_.let(min(Expr(x) + Expr(layout_.tile), extent(last))));
      e_.loop(variable(last - 1), lo, hi, 1,
              [&] { e_.vector_loop(layout_.vector, x, stop, [&] { passes_.cell(); }); });
    });
  }

  /// Vectors [lo, hi) of the last dimension.
  void row(Expr lo, Expr hi) {
    if (layout_.block > 0) return passes_.block(lo, hi);
    if (const loops::Inst* store = flat_.passes == 0 ? passes_.streamed(-1) : nullptr) {
      const Statement access = e_.access_of(*store);
      return e_.vector_loop(
          layout_.vector, lo, hi, [&] { passes_.cell(); }, &access);
    }
    e_.vector_loop(layout_.vector, lo, hi, [&] { passes_.cell(); });
  }

  const schedule::Group& group_;
  const FlatGroup& flat_;
  const Layout& layout_;
  Emitter& e_;
  Passes& passes_;
};

void collect_symbols(Expr e, std::set<Symbol>& symbols) {
  for (Symbol symbol : e.symbols())
    if (symbol.kind == SymbolKind::size || symbol.kind == SymbolKind::unbacked) symbols.insert(symbol);
}

void collect_symbols(const std::vector<Statement>& list, std::set<Symbol>& symbols) {
  for (const Statement& s : list) {
    for (Expr e : {s.index, s.end, s.stride, s.step}) collect_symbols(e, symbols);
    collect_symbols(s.body, symbols);
    collect_symbols(s.other, symbols);
  }
}

Expr grain_of(const schedule::Group& group, const Layout& layout, Expr points, int32_t processors) {
  Expr each = product(group.reduction_ranges);  // points of the group for each of the domain
  for (size_t d = static_cast<size_t>(layout.domain); d < layout.order.size(); ++d)
    each *= group.ranges[static_cast<size_t>(layout.order[d])];
  Expr grain = max(1, floor_div(kGrainPoints, max(1, each)));
  // Threads that share a row take whole runs of it.
  if (!layout.shares_vector) return grain;
  Expr least = 64;
  if (layout.block > 0) {
    // Memory gives long runs of a row faster: no more parts than threads, up to a block.
    least = max(512, min(ceil_div(points, std::max(1, processors)), layout.block_step));
  }
  return ceil_div(max(grain, least), 64) * 64;
}

/// A loop nest of a kernel, decided up to its statements.
struct Planned {
  const schedule::Group& group;
  FlatGroup flat;
  Layout layout;
  std::unique_ptr<Emitter> emitter;
};

/// Writes its statements to `body`; returns the points of its parallel domain.
Expr write(Planned& n, const schedule::Target& target, Chooser& chooser, std::vector<Statement>& body) {
  Passes passes(n.group, n.flat, n.layout, target, chooser, *n.emitter);
  Nest nest(n.group, n.flat, n.layout, *n.emitter, passes);
  n.emitter->in(body, [&] { nest.write(); });
  return nest.points();
}

Kernel make_kernel(const loops::Program& program, const schedule::Group& group,
                   const schedule::Target& target, Chooser& chooser) {
  STAX_ASSERT(!group.external, "group {} is an external call, not a kernel", group.name);
  Kernel kernel;
  kernel.info.name = group.name;
  kernel.vector_bytes = target.vector_bytes;
  kernel.scalars = program.scalars;
  std::vector<Planned> nests;
  nests.reserve(1 + group.later.size());
  for (size_t k = 0; k <= group.later.size(); ++k) {
    const schedule::Group& nest = k == 0 ? group : group.later[k - 1];
    // A quotient is the same whether or not it shares a kernel with the reduction that it divides by.
    FlatGroup flat = flatten(program, nest, {.divide_by_reciprocal = !target.batch_invariant});
    Layout layout = make_layout(program, nest, flat, target, chooser);
    nests.push_back({nest, std::move(flat), std::move(layout), nullptr});
  }
  kernel.index_bits = schedule::index_width(program, group, target, chooser).bits;
  Numbering numbering;
  for (Planned& n : nests) {
    n.emitter = std::make_unique<Emitter>(program, n.group, n.flat, n.layout, kernel, numbering);
  }
  for (size_t k = 0; k < nests.size(); ++k) {
    Planned& n = nests[k];
    std::vector<Statement> body;
    const Expr points = write(n, target, chooser, body);
    const KernelPhase phase{n.layout.serial ? Expr(1) : points,
                            grain_of(n.group, n.layout, points, target.processors),
                            product(n.group.ranges) * product(n.group.reduction_ranges)};
    if (k > 0) {
      kernel.later.push_back({n.layout.lanes, std::move(body)});
      kernel.info.later.push_back(phase);
      continue;
    }
    kernel.lanes = n.layout.lanes;
    kernel.body = std::move(body);
    kernel.info.parallel_extent = phase.extent;
    kernel.info.grain = phase.grain;
    kernel.info.points = phase.points;
  }
  std::set<Symbol> symbols;
  collect_symbols(kernel.body, symbols);
  for (const LaterNest& n : kernel.later) collect_symbols(n.body, symbols);
  if (!kernel.later.empty()) {  // the sizes of phases tell which one a call is for
    collect_symbols(kernel.info.parallel_extent, symbols);
    for (const KernelPhase& p : kernel.info.later) collect_symbols(p.extent, symbols);
  }
  kernel.info.symbols.assign(symbols.begin(), symbols.end());
  kernel.choices = chooser.choices();
  for (Choice& c : kernel.choices) c.subject = kernel.info.name;
  return kernel;
}

}  // namespace

Kernel make_kernel(const loops::Program& program, const schedule::Group& group,
                   const schedule::Target& target, const Sizes& sizes) {
  Chooser chooser(sizes);
  return make_kernel(program, group, target, chooser);
}

std::vector<Kernel> make_kernels(const loops::Program& program, const schedule::Group& group,
                                 const schedule::Target& target, const Sizes& sizes, size_t most) {
  const auto make = [&](size_t form, Chooser& chooser) {
    schedule::Group named = group;
    if (form > 0) named.name += fmt::format("_form{}", form);
    return make_kernel(program, named, target, chooser);
  };
  return make_forms<Kernel>(
      sizes, most, make, [](Kernel & kernel) -> auto& { return kernel.info.when; });
}

}  // namespace stax::codegen
