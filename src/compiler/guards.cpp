#include "compiler/guards.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "compiler/linear_size.h"
#include "symbolic/node.h"

namespace stax::compiler {

using capture::Captured;
using graph::TensorMeta;

namespace {

/// All symbols that the program or its guards use.
std::set<Symbol> needed_symbols(const Captured& captured) {
  std::set<Symbol> needed;
  const auto use = [&](Expr e) {
    for (const Symbol s : e.symbols()) needed.insert(s);
  };
  const auto use_meta = [&](const TensorMeta& meta) {
    for (const Expr e : meta.sizes) use(e);
    for (const Expr e : meta.strides) use(e);
    use(meta.offset);
  };
  for (const Guard& guard : captured.env->guards()) {
    use(guard.condition.left);
    use(guard.condition.right);
  }
  for (const Assertion& assertion : captured.env->assertions()) {
    use(assertion.condition.left);
    use(assertion.condition.right);
  }
  for (const graph::Node& node : captured.graph.nodes) {
    for (const TensorMeta& meta : node.results) use_meta(meta);
    for (const auto& argument : node.args) {
      if (argument.is_number()) use(argument.number().integer);
      if (const auto* list = std::get_if<std::vector<Expr>>(&argument.value)) {
        for (const Expr e : *list) use(e);
      }
    }
  }
  for (const capture::CapturedOutput& output : captured.outputs) use_meta(output.meta);
  for (const Expr e : captured.integers) use(e);
  use(captured.random_count);
  return needed;
}

}  // namespace

std::string Guards::Place::str() const {
  if (part == Part::value) return fmt::format("integer {}", input);
  return fmt::format("tensor {}: {}({})", input, part == Part::size ? "size" : "stride", dim);
}

Guards::Place Guards::place_of(const Captured& captured, Part part, size_t input, size_t dim) {
  Place place{part, static_cast<int32_t>(input), static_cast<int32_t>(dim)};
  size_t at = dim;
  const std::vector<TensorMeta>& tensors = captured.symbols.tensors;
  for (size_t k = 0; k < (part == Part::value ? tensors.size() : input); ++k)
    at += 2 * tensors[k].sizes.size();
  if (part == Part::stride) at += tensors[input].sizes.size();
  if (part == Part::value) at += input;
  place.at = static_cast<int32_t>(at);
  return place;
}

Guards::Guards(const Captured& captured) {
  find_sources(captured);
  add_checks(captured);
  add_conditions(captured);
}

void Guards::add_conditions(const Captured& captured) {
  for (const Guard& guard : captured.env->guards()) {
    const Condition& c = guard.condition;
    const auto is_plain = [&](Expr e) {
      return e.is_constant() ||
             (e.kind() == ExprKind::symbol &&
              std::ranges::any_of(sources_, [&](const Source& s) { return s.symbol == e.symbol(); }));
    };
    const auto at = static_cast<int32_t>(conditions_.size());
    (is_plain(c.left) && is_plain(c.right) ? plain_ : computed_).push_back(at);
    conditions_.push_back({c.relation, program_.add(c.left), program_.add(c.right), guard});
  }
}

void Guards::add_source(Place place, Expr e, const ShapeEnv& env) {
  const std::optional<LinearSize> form = linear_size(e);
  if (!form || form->symbol.kind != SymbolKind::size) return;
  if (std::any_of(sources_.begin(), sources_.end(),
                  [&](const Source& s) { return s.symbol == form->symbol; })) {
    return;
  }
  const Interval range = env.ranges().interval(form->symbol);
  sources_.push_back({place, form->symbol, program_.add(Expr(form->symbol)), form->scale, form->offset,
                      range.lower.value_or(INT64_MIN), range.upper.value_or(INT64_MAX)});
  symbol_count_ = std::max(symbol_count_, static_cast<size_t>(form->symbol.number) + 1);
}

/// Tensors that the program reads come first: one that it does not read is looked at only where nothing else
/// gives a symbol that is needed. Plain symbols come before sizes that are computed from them.
void Guards::find_sources(const Captured& captured) {
  const std::set<Symbol> needed = needed_symbols(captured);
  const auto add = [&](bool used, bool plain, Part part) {
    for (size_t k = 0; k < captured.symbols.tensors.size(); ++k) {
      if ((captured.used[k] != 0) != used) continue;
      const TensorMeta& meta = captured.symbols.tensors[k];
      const std::vector<Expr>& list = part == Part::size ? meta.sizes : meta.strides;
      for (size_t d = 0; d < list.size(); ++d) {
        if ((list[d].kind() == ExprKind::symbol) != plain) continue;
        if (!used && std::ranges::none_of(list[d].symbols(), [&](Symbol s) { return needed.contains(s); })) {
          continue;
        }
        add_source(place_of(captured, part, k, d), list[d], *captured.env);
      }
    }
  };
  for (size_t k = 0; k < captured.symbols.integers.size(); ++k) {
    add_source(place_of(captured, Part::value, k, 0), captured.symbols.integers[k], *captured.env);
  }
  for (const bool used : {true, false}) {
    for (const bool plain : {true, false}) {
      for (const Part part : {Part::size, Part::stride}) add(used, plain, part);
    }
  }
}

void Guards::add_checks(const Captured& captured) {
  const auto is_source = [&](const Place& place) {
    return std::any_of(sources_.begin(), sources_.end(), [&](const Source& s) {
      return s.place.part == place.part && s.place.input == place.input && s.place.dim == place.dim;
    });
  };
  const auto add = [&](Place place, Expr e) {
    if (is_source(place)) return;
    const bool early = e.is_constant() || e.kind() == ExprKind::symbol;
    (early ? early_ : checks_).push_back({place, program_.add(e), e});
    (early ? early_equal_ : equal_).push_back({place.at, program_.add(e)});
  };
  for (size_t k = 0; k < captured.symbols.tensors.size(); ++k) {
    if (captured.used[k] == 0) continue;
    const TensorMeta& meta = captured.symbols.tensors[k];
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      add(place_of(captured, Part::size, k, d), meta.sizes[d]);
      add(place_of(captured, Part::stride, k, d), meta.strides[d]);
    }
  }
}

int32_t Guards::first_failed(const int64_t* numbers, int64_t* registers, int64_t* symbols) const {
  std::copy(program_.initial().begin(), program_.initial().end(), registers);
  for (size_t k = 0; k < sources_.size(); ++k) {
    const Source& source = sources_[k];
    int64_t value = numbers[source.place.at] - source.offset;
    if (source.scale != 1) {
      if (value % source.scale != 0) return static_cast<int32_t>(k);
      value /= source.scale;
    }
    if (value < source.lower || value > source.upper) return static_cast<int32_t>(k);
    registers[source.at] = value;
    symbols[source.symbol.number] = value;
  }
  const size_t checks = sources_.size() + early_.size(), conditions = checks + checks_.size();
  const auto fails = [&](int32_t at) {
    const Comparison& c = conditions_[static_cast<size_t>(at)];
    return !holds(c.relation, registers[c.left], registers[c.right]);
  };
  for (const int32_t at : plain_) {
    if (fails(at)) return static_cast<int32_t>(conditions) + at;
  }
  const auto unequal = [&](const std::vector<Equality>& list) {
    size_t k = 0;
    while (k < list.size() && numbers[list[k].at] == registers[list[k].reg]) ++k;
    return k;
  };
  if (const size_t k = unequal(early_equal_); k < early_equal_.size())
    return static_cast<int32_t>(sources_.size() + k);
  if (!program_.run(registers)) return kOverflow;
  if (const size_t k = unequal(equal_); k < equal_.size()) return static_cast<int32_t>(checks + k);
  for (const int32_t at : computed_) {
    if (fails(at)) return static_cast<int32_t>(conditions) + at;
  }
  return kNone;
}

std::string Guards::source_text(const Source& source) const {
  std::string text = source.symbol.str();
  if (source.scale != 1) text = fmt::format("{}*{}", source.scale, text);
  if (source.offset != 0) text += fmt::format(" + {}", source.offset);
  Interval range;
  if (source.lower != INT64_MIN) range.lower = source.lower;
  if (source.upper != INT64_MAX) range.upper = source.upper;
  text = fmt::format("{} is {}", source.place.str(), text);
  return range == Interval{} ? text : text + fmt::format(", {} within {}", source.symbol.str(), range.str());
}

std::vector<std::string> Guards::conditions() const {
  std::vector<std::string> out;
  for (const Source& source : sources_) out.push_back(source_text(source));
  for (const auto* list : {&early_, &checks_}) {
    for (const Check& check : *list) {
      out.push_back(fmt::format("{} == {}", check.place.str(), check.expr.str()));
    }
  }
  for (const Comparison& c : conditions_) {
    out.push_back(c.guard.str());
  }
  return out;
}

std::string Guards::misfit(const CallTensors& call) const {
  const int64_t* numbers = call.numbers.data();
  std::vector<int64_t> registers(std::max<size_t>(1, program_.size())), symbols(symbol_count_ + 1);
  const int32_t failed = first_failed(numbers, registers.data(), symbols.data());
  if (failed == kNone) return {};
  if (failed == kOverflow) return "sizes whose products leave 64 bits";
  const auto at = static_cast<size_t>(failed);
  std::string text = conditions()[at];
  if (at < sources_.size()) {
    return fmt::format("{}, got {}", text, numbers[sources_[at].place.at]);
  }
  const size_t check = at - sources_.size();
  if (check < early_.size() + checks_.size()) {
    const Check& c = check < early_.size() ? early_[check] : checks_[check - early_.size()];
    if (!c.expr.is_constant()) text += fmt::format(" = {}", registers[static_cast<size_t>(c.at)]);
    return fmt::format("{}, got {}", text, numbers[c.place.at]);
  }
  const Comparison& c = conditions_[check - early_.size() - checks_.size()];
  text += ", with ";
  bool first = true;
  for (const Source& source : sources_) {
    if (!c.guard.condition.left.contains(source.symbol) && !c.guard.condition.right.contains(source.symbol)) {
      continue;
    }
    text += fmt::format("{}{} = {} ({})", first ? "" : ", ", source.symbol.str(),
                        symbols[static_cast<size_t>(source.symbol.number)], source.place.str());
    first = false;
  }
  return text;
}

}  // namespace stax::compiler
