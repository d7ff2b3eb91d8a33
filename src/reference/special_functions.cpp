#include "reference/special_functions.h"

#include <cmath>
#include <limits>
#include <numbers>

extern "C" double lgamma_r(double x, int* sign);

namespace stax::reference {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
}  // namespace

double inverse_erf(double y) {
  if (std::isnan(y) || std::fabs(y) > 1) return kNaN;
  if (std::fabs(y) == 1) return std::copysign(kInfinity, y);
  // Start from the elementary approximation erf(x)^2 ~ 1 - exp(-x^2 (4/pi + a x^2) / (1 + a x^2)), solved for
  // x; then Halley's steps, on erfc in the tail, where 1 - |y| is exact and erf would cancel.
  constexpr double a = 0.147;
  const double magnitude = std::fabs(y);
  const double tail = 1 - magnitude;
  const double log_term = std::log(tail * (1 + magnitude));
  const double b = 2 / (std::numbers::pi * a) + log_term / 2;
  double x = std::sqrt(std::sqrt(b * b - log_term / a) - b);
  if (magnitude < 1e-8) x = magnitude * std::sqrt(std::numbers::pi) / 2;
  for (int step = 0; step < 3; ++step) {
    const double error = magnitude < 0.5 ? std::erf(x) - magnitude : tail - std::erfc(x);
    const double slope = 2 / std::sqrt(std::numbers::pi) * std::exp(-x * x);
    if (slope == 0) break;
    const double newton = error / slope;
    x -= newton / (1 + x * newton);
  }
  return std::copysign(x, y);
}

double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x == -kInfinity || (x < 0 && x == std::floor(x))) return kNaN;
  double result = 0;
  if (x < 0) {  // psi(1 - x) - psi(x) = pi / tan(pi x), with x from the nearest pole, where tan is exact
    const double fraction = x - std::nearbyint(x);
    result = -std::numbers::pi / std::tan(std::numbers::pi * fraction);
    x = 1 - x;
  }
  while (x < 10) {  // psi(x) = psi(x + 1) - 1 / x
    result -= 1 / x;
    x += 1;
  }
  if (x == kInfinity) return kInfinity;
  // Asymptotic series: log x - 1/(2x) - sum B_2k / (2k x^2k).
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return result + std::log(x) - 0.5 / x - series;
}

double bessel_i0(double x) {
  x = std::fabs(x);
  if (!std::isfinite(x)) return x - x;  // infinity over infinity, as the peers have it
  if (x < 30) {                         // sum of (x^2 / 4)^k / k!^2: every term is positive
    const double q = x * x / 4;
    double term = 1, sum = 1;
    for (int k = 1; term > sum * 1e-17; ++k) {
      term *= q / (static_cast<double>(k) * k);
      sum += term;
    }
    return sum;
  }
  // exp(x) / sqrt(2 pi x) times the sum of ((2k-1)!!)^2 / (k! (8x)^k), up to its smallest term.
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const double next = term * (2.0 * k - 1) * (2.0 * k - 1) / (8.0 * x * k);
    if (next > term || next < sum * 1e-17) break;
    term = next;
    sum += term;
  }
  const double half = std::exp(x / 2);
  return half * (sum / (std::sqrt(2 * std::numbers::pi) * std::sqrt(x))) * half;
}

}  // namespace stax::reference
