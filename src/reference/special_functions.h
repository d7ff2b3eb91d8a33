// Special functions that libm lacks, in float64.
#pragma once

namespace stax::reference {

/// The x with erf(x) = y; infinite at -1 and 1, NaN outside.
double inverse_erf(double y);
/// log |gamma(x)|; infinite at 0 and the negative integers. Unlike lgamma(), it writes no global.
double log_gamma(double x);
/// Derivative of log gamma: -inf at +0, +inf at -0, NaN at the negative integers.
double digamma(double x);
/// Modified Bessel function of the first kind, order 0.
double bessel_i0(double x);

}  // namespace stax::reference
