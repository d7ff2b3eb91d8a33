#include "compiler/decisions.h"

#include <algorithm>
#include <array>
#include <optional>

#include "compiler/linear_size.h"
#include "support/check.h"
#include "support/environment.h"

namespace stax::compiler {

bool checks(std::string_view what) {
  static constexpr std::string_view kChecks[] = {"retrace", "decisions"};
  static const std::vector<std::string_view> named = environment_words("STAX_CHECK", kChecks);
  return std::ranges::find(named, what) != named.end();
}

DecisionCheck::DecisionCheck(const capture::Captured& captured, std::span<const StridedImpl* const> tensors,
                             std::span<const int64_t> integers)
    : captured_(captured) {
  const auto learn = [&](Expr e, int64_t value) {
    const std::optional<LinearSize> form = linear_size(e);
    if (!form || form->symbol.kind != SymbolKind::size) return;
    const auto at = static_cast<size_t>(form->symbol.number);
    if (at >= values_.size()) values_.resize(at + 1);
    if (!values_[at]) values_[at] = (value - form->offset) / form->scale;
  };
  for (size_t k = 0; k < integers.size(); ++k) learn(captured.symbols.integers[k], integers[k]);
  // Guards hold for what the program reads; a tensor that it does not read may have any sizes.
  for (const bool used : {true, false}) {
    for (size_t k = 0; k < tensors.size(); ++k) {
      if ((captured.used[k] != 0) != used) continue;
      const graph::TensorMeta& meta = captured.symbols.tensors[k];
      for (int64_t d = 0; d < meta.dim(); ++d) learn(meta.sizes[static_cast<size_t>(d)], tensors[k]->size(d));
    }
    for (size_t k = 0; k < tensors.size(); ++k) {
      if ((captured.used[k] != 0) != used) continue;
      const graph::TensorMeta& meta = captured.symbols.tensors[k];
      for (int64_t d = 0; d < meta.dim(); ++d)
        learn(meta.strides[static_cast<size_t>(d)], tensors[k]->stride(d));
    }
  }
}

void DecisionCheck::before() const {
  check({}, false);
}
void DecisionCheck::after(std::span<const int64_t> late) const {
  check(late, true);
}

void DecisionCheck::check(std::span<const int64_t> late, bool with_late) const {
  const auto value = [&](Symbol s) -> std::optional<int64_t> {
    const auto at = static_cast<size_t>(s.number);
    if (s.kind == SymbolKind::unbacked) return at < late.size() ? std::optional(late[at]) : std::nullopt;
    return s.kind == SymbolKind::size && at < values_.size() ? values_[at] : std::nullopt;
  };
  const auto number = [&](Expr e) -> std::optional<int64_t> {
    try {
      return evaluate(e, [&](Symbol s) { return *value(s); });
    } catch (const UserError&) {
      return std::nullopt;  // leaves 64 bits: nothing was proven of such sizes
    }
  };
  const auto known = [&](const Condition& c) {
    return std::ranges::all_of(std::array{c.left, c.right}, [&](Expr e) {
      return std::ranges::all_of(e.symbols(), [&](Symbol s) { return value(s).has_value(); });
    });
  };
  // A call that violates an assertion raises, and may then violate what follows from it.
  for (const Assertion& assertion : captured_.env->assertions()) {
    const Condition& c = assertion.condition;
    if (!known(c)) continue;
    const std::optional<int64_t> left = number(c.left), right = number(c.right);
    if (left && right && !holds(c.relation, *left, *right)) return;
  }
  for (const Decision& decision : captured_.env->decisions()) {
    const Condition& c = decision.condition;
    const bool is_late = c.left.contains(SymbolKind::unbacked) || c.right.contains(SymbolKind::unbacked);
    if (is_late != with_late || !known(c)) continue;
    const std::optional<int64_t> left = number(c.left), right = number(c.right);
    if (!left || !right || holds(c.relation, *left, *right) == decision.answer) continue;
    std::string values;
    for (const Expr e : {c.left, c.right}) {
      for (const Symbol s : e.symbols()) values += fmt::format(", {} = {}", s.str(), *value(s));
    }
    STAX_ASSERT(
        false,
        "[compile] an artifact was made for {} being {}, and is about to serve a call where it is not{}",
        c.str(), decision.answer, values);
  }
}

}  // namespace stax::compiler
