// What a traced program asks about sizes, and what it looks at: guards come of it.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "capture/functional_trace.h"
#include "support/check.h"

namespace stax::capture {

using graph::TensorMeta;

namespace {

/// The size symbols that a text names as words of their own, in order.
std::vector<Symbol> symbols_in(std::string_view text) {
  std::vector<Symbol> out;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    if (!is_word(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && is_word(text[at])) ++at;
    int32_t number = 0;
    const char *first = text.data() + begin + 1, *last = text.data() + at;
    const auto [end, error] = std::from_chars(first, last, number);
    if (text[begin] != 's' || first == last || end != last || error != std::errc()) continue;
    const Symbol symbol{SymbolKind::size, number};
    if (std::ranges::find(out, symbol) == out.end()) out.push_back(symbol);
  }
  return out;
}

}  // namespace

std::string FunctionalTrace::with_values(std::string message) const {
  std::string values;
  for (const Symbol symbol : symbols_in(message)) {
    if (const auto hint = env_->hint(symbol))
      values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", symbol.str(), *hint);
  }
  return values.empty() ? message : fmt::format("{} (in this call {})", message, values);
}

int64_t FunctionalTrace::fix(Expr value) {
  if (!running()) return settled(value);
  try {
    return env_->specialize(value);
  } catch (const UndeterminedError&) {
    if (options_.refuse_reads) throw;
  }
  read({}, fmt::format("the size {}, which only data determines and the program needs as a number,",
                       value.str()));
  return settled(value);
}

/// The value of a size after the trace was read.
int64_t FunctionalTrace::settled(Expr value) const {
  const std::optional<int64_t> known = env_->hint(value);
  STAX_CHECK(known,
             "the size {} is read after its trace ended; sizes of traced tensors may not leave the "
             "traced function",
             value.str());
  return *known;
}

std::vector<int64_t> FunctionalTrace::fix(const std::vector<Expr>& list) {
  std::vector<int64_t> out;
  for (const Expr e : list) out.push_back(env_->specialize(e));
  return out;
}

std::pair<int64_t, int64_t> FunctionalTrace::reach_of(const TensorMeta& meta, int64_t offset) {
  return reach(fix(meta.sizes), fix(meta.strides), offset);
}

bool FunctionalTrace::decide(const Condition& condition) {
  if (running()) {
    const bool late =
        condition.left.contains(SymbolKind::unbacked) || condition.right.contains(SymbolKind::unbacked);
    if (options_.decide && !late && operators == 0) return options_.decide(*env_, condition);
    if (late && operators > 0) return env_->surely(condition);  // "no" is right for every value
    if (const std::optional<bool> answer = env_->decided(condition)) return *answer;
    if (options_.refuse_reads) throw UndeterminedError(env_->undetermined_text(condition));
    read({}, fmt::format("the decision {}, which only data settles,", condition.str()));
  }
  const Condition numbers{condition.relation, settled(condition.left), settled(condition.right)};
  return *stax::decide(numbers, env_->ranges());
}

void FunctionalTrace::check(const Condition& condition, std::string_view words,
                            const std::source_location& where) {
  if (running()) return env_->check(condition, std::string(words), location_text(where));
  const Condition numbers{condition.relation, settled(condition.left), settled(condition.right)};
  if (*stax::decide(numbers, env_->ranges())) return;
  throw UserError(failure_text({condition, std::string(words), location_text(where), {}, {}},
                               [&](Symbol s) { return settled(Expr(s)); }));
}

SymInt FunctionalTrace::symbol_of(const TracedImpl& impl) {
  check_running();
  const graph::Value from = impl.item_of.value();
  const auto [known, fresh] = item_symbols_.emplace(std::pair(from.node, from.result), Expr());
  if (fresh) {
    const Interval values = impl.dtype() == DType::uint8 ? Interval::of(0, 255) : Interval{};
    const Expr symbol(env_->new_symbol(SymbolKind::unbacked, std::nullopt, values));
    builder_.call("bind_value", {builder_.call("to.dtype", {impl.value, DType::int64}), symbol});
    known->second = symbol;
  }
  return to_sym_int(known->second);
}

void FunctionalTrace::note_use(const TracedStorage& storage) {
  if (!storage.exists()) return;
  for (size_t k = 0; k < arguments_.size(); ++k) {
    if (arguments_[k].impl()->storage_id() == storage.memory.impl()->storage_id()) used_[k] = 1;
  }
}

void FunctionalTrace::fix_offset(const TracedStorage& storage) {
  if (!storage.exists()) return;
  for (size_t k = 0; k < arguments_.size(); ++k) {
    if (arguments_[k].impl()->storage_id() == storage.memory.impl()->storage_id()) offset_matters_[k] = 1;
  }
}

}  // namespace stax::capture
