// Names for the symbols that the tests use.
#pragma once

#include "symbolic/shape_env.h"

namespace stax::testing {

inline const Expr s0 = Symbol{SymbolKind::size, 0}, s1 = Symbol{SymbolKind::size, 1},
                  s2 = Symbol{SymbolKind::size, 2};
inline const Expr i0 = Symbol{SymbolKind::index, 0}, i1 = Symbol{SymbolKind::index, 1},
                  i2 = Symbol{SymbolKind::index, 2};
inline const Expr r0 = Symbol{SymbolKind::reduction, 0}, u0 = Symbol{SymbolKind::unbacked, 0};

}  // namespace stax::testing
