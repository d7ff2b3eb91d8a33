// C++ operators on tensors. Numbers may stand on either side and promote as numbers do.
#pragma once

#include "stax/tensor.h"

namespace stax {

#define STAX_DECLARE_OPERATOR(symbol)                                \
  STAX_API Tensor operator symbol(const Tensor& a, const Tensor& b); \
  STAX_API Tensor operator symbol(const Tensor& a, const Scalar& b); \
  STAX_API Tensor operator symbol(const Scalar& a, const Tensor& b);
STAX_DECLARE_OPERATOR(+)
STAX_DECLARE_OPERATOR(-)
STAX_DECLARE_OPERATOR(*)
STAX_DECLARE_OPERATOR(/)
STAX_DECLARE_OPERATOR(%)
STAX_DECLARE_OPERATOR(==)
STAX_DECLARE_OPERATOR(!=)
STAX_DECLARE_OPERATOR(<)
STAX_DECLARE_OPERATOR(<=)
STAX_DECLARE_OPERATOR(>)
STAX_DECLARE_OPERATOR(>=)
STAX_DECLARE_OPERATOR(&)
STAX_DECLARE_OPERATOR(|)
STAX_DECLARE_OPERATOR(^)
#undef STAX_DECLARE_OPERATOR

/// a.equal(b) and a.allclose(b, ...).
inline bool equal(const Tensor& a, const Tensor& b) {
  return a.equal(b);
}
inline bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-05, double atol = 1e-08,
                     bool equal_nan = false) {
  return a.allclose(b, rtol, atol, equal_nan);
}

}  // namespace stax
