// Whether results are those that were recorded.
#pragma once

#include <string>
#include <vector>

#include "stax/tensor.h"

namespace stax::cli {

/// What a result may be: the recorded one, or, where there is one, close to the same call in float64.
struct Expected {
  Tensor out;
  Tensor exact;  ///< undefined where the result is not floating-point
  /// Where elements are sums of many terms: the sums of the terms' magnitudes, else undefined. Rounding in
  /// float32 may cost a few units of them: they add 2^-22 of their size to the absolute tolerance.
  Tensor magnitudes = {};
};

/// "" when `got` has dtype and shape of `expected.out` and every element is within the tolerance of its dtype
/// of `out` or of `exact`; else what differs, in words. NaN equals NaN, infinities must match.
std::string difference(const Tensor& got, const Expected& expected);

/// Results whose order is free: positions `got` along `dim` of `input` need only name elements equal to those
/// that `expected` names, each position once a lane. "" when they do.
std::string index_difference(const Tensor& input, int64_t dim, const Tensor& got, const Tensor& expected);

}  // namespace stax::cli
