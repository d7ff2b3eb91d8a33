// Time that a GPU spends on calls.
#pragma once

#include <functional>
#include <vector>

#include "support/median.h"
#include "tuning/cold_timer.h"

namespace bench {

/// Milliseconds that the device spends on one call of each function, from a cold L2 cache: medians of 30
/// calls, taken in turns. Writing over the cache takes the device longer than the host needs for the call, so
/// that the launch is no part of the figures.
inline std::vector<double> device_milliseconds(const std::vector<std::function<void()>>& functions) {
  constexpr int64_t kFlushed = int64_t{1} << 28;
  static stax::tuning::ColdTimer timer(0, kFlushed);
  std::vector<std::vector<double>> all(functions.size());
  for (const auto& f : functions) f();
  for (int k = 0; k < 30; ++k)
    for (size_t f = 0; f < functions.size(); ++f) all[f].push_back(1e3 * timer.once([] {}, functions[f]));
  std::vector<double> medians;
  for (const std::vector<double>& times : all) medians.push_back(stax::median(times));
  return medians;
}

}  // namespace bench
