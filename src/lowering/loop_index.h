// The index variables of loops under construction.
#pragma once

#include "lowering/lowering.h"

namespace stax::lowering {

/// Variable k of the ranges, and of the reduction ranges.
inline Symbol index_symbol(size_t k) {
  return {SymbolKind::index, static_cast<int32_t>(k)};
}
inline Symbol reduction_symbol(size_t k) {
  return {SymbolKind::reduction, static_cast<int32_t>(k)};
}

/// The first `count` variables.
inline Index symbols(size_t count, Symbol (*symbol)(size_t)) {
  Index out;
  for (size_t k = 0; k < count; ++k) out.emplace_back(symbol(k));
  return out;
}

/// The element of t's buffer at `index`.
inline Expr flat_offset(const Lazy& t, const Index& index) {
  Expr e = t.offset;
  for (size_t k = 0; k < index.size(); ++k) e = e + index[k] * t.strides[k];
  return e;
}

}  // namespace stax::lowering
