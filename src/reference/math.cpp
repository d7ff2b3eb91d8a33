// Transcendental functions over blocks: each element through libm, float32 by way of float64 where libm's own
// float32 function is not within 0.51 units of the last place.

#include <cmath>
#include <limits>

#include "reference/block_kernels.h"
#include "reference/special_functions.h"

namespace stax::reference {

namespace {

using loops::OpCode;

template <class T, T (*function)(T)>
void unary_loop(void* out, const void* a, const void*, const void*, int64_t n) {
  auto* o = static_cast<T*>(out);
  const auto* x = static_cast<const T*>(a);
  for (int64_t k = 0; k < n; ++k) o[k] = function(x[k]);
}

template <double (*function)(double)>
float narrow(float x) {
  return static_cast<float>(function(x));
}

template <class T, T (*function)(T, T)>
void binary_loop(void* out, const void* a, const void* b, const void*, int64_t n) {
  auto* o = static_cast<T*>(out);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  for (int64_t k = 0; k < n; ++k) o[k] = function(x[k], y[k]);
}

template <double (*function)(double, double)>
float narrow(float x, float y) {
  return static_cast<float>(function(x, y));
}

double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

constexpr int kF32 = static_cast<int>(DType::float32), kF64 = static_cast<int>(DType::float64);

}  // namespace

void fill_math(BlockKernels& kernels) {
  const auto set = [&](OpCode op, ElementwiseKernel f32, ElementwiseKernel f64) {
    kernels.elementwise[static_cast<int>(op)][kF32][0] = f32;
    kernels.elementwise[static_cast<int>(op)][kF64][0] = f64;
  };
  // libm computes these float32 functions in float64 itself, faster than a call of the float64 function.
#define STAX_MATH_DIRECT(name) set(OpCode::name, unary_loop<float, ::name##f>, unary_loop<double, ::name>);
#define STAX_MATH(name, function) \
  set(OpCode::name, unary_loop<float, narrow<function>>, unary_loop<double, function>);
#define STAX_MATH_BINARY(name, function) \
  set(OpCode::name, binary_loop<float, narrow<function>>, binary_loop<double, function>);
  STAX_MATH_DIRECT(exp)
  STAX_MATH_DIRECT(exp2)
  STAX_MATH_DIRECT(log)
  STAX_MATH_DIRECT(log2)
  STAX_MATH_DIRECT(sin)
  STAX_MATH_DIRECT(cos)
  STAX_MATH(expm1, ::expm1)
  STAX_MATH(log10, ::log10)
  STAX_MATH(log1p, ::log1p)
  STAX_MATH(tan, ::tan)
  STAX_MATH(asin, ::asin)
  STAX_MATH(acos, ::acos)
  STAX_MATH(atan, ::atan)
  STAX_MATH(sinh, ::sinh)
  STAX_MATH(cosh, ::cosh)
  STAX_MATH(tanh, ::tanh)
  STAX_MATH(asinh, ::asinh)
  STAX_MATH(acosh, ::acosh)
  STAX_MATH(atanh, ::atanh)
  STAX_MATH(erf, ::erf)
  STAX_MATH(erfc, ::erfc)
  STAX_MATH(sigmoid, sigmoid)
  STAX_MATH(erfinv, inverse_erf)
  STAX_MATH(lgamma, log_gamma)
  STAX_MATH(digamma, digamma)
  STAX_MATH(i0, bessel_i0)
  STAX_MATH_BINARY(pow, ::pow)
  STAX_MATH_BINARY(atan2, ::atan2)
  STAX_MATH_BINARY(hypot, ::hypot)
  set(OpCode::nextafter, binary_loop<float, ::nextafterf>, binary_loop<double, ::nextafter>);
#undef STAX_MATH_DIRECT
#undef STAX_MATH
#undef STAX_MATH_BINARY
}

}  // namespace stax::reference
