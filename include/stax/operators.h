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

}  // namespace stax
