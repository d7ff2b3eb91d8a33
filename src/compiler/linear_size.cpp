#include "compiler/linear_size.h"

#include <vector>

namespace stax::compiler {

std::optional<LinearSize> linear_size(Expr e) {
  const std::vector<Symbol> symbols = e.symbols();
  if (symbols.size() != 1) return std::nullopt;
  const std::optional<Expr> scale = stride_of(e, symbols[0]);
  if (!scale || !scale->is_constant() || scale->value() <= 0) return std::nullopt;
  const Expr rest = e - *scale * symbols[0];
  if (!rest.is_constant()) return std::nullopt;
  return LinearSize{symbols[0], scale->value(), rest.value()};
}

}  // namespace stax::compiler
