#include "compiler/size_text.h"

#include <fmt/core.h>

#include <set>

namespace stax::compiler {
namespace {

std::string declaration(const capture::Captured& captured, Expr symbol) {
  for (const capture::DeclaredDim& dim : captured.symbols.dims) {
    if (dim.root != symbol) continue;
    const Interval range =
        dim.max == DimOptions::kNoLimit ? Interval::at_least(dim.min) : Interval::of(dim.min, dim.max);
    return fmt::format(", declared as {} within {}", dim.name, range.str());
  }
  return "";
}

}  // namespace

std::string size_text(const capture::Captured& captured, std::span<const int64_t> symbols) {
  std::string text;
  std::set<Symbol> seen;
  for (size_t k = 0; k < captured.symbols.tensors.size(); ++k) {
    const std::vector<Expr>& sizes = captured.symbols.tensors[k].sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d].kind() != ExprKind::symbol) continue;
      const Symbol s = sizes[d].symbol();
      const auto at = static_cast<size_t>(s.number);
      if (s.kind != SymbolKind::size || at >= symbols.size() || !seen.insert(s).second) continue;
      text += fmt::format("{}{} = {} is dimension {} of tensor {}{}", text.empty() ? "" : "; ", s.str(),
                          symbols[at], d, k, declaration(captured, sizes[d]));
    }
  }
  return text;
}

}  // namespace stax::compiler
