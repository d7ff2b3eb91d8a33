#include "fuzz/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace stax::fuzz {

namespace {

constexpr int kNoisyRuns = 8;
constexpr int kNoisyRunsToConfirm = 64;
constexpr double kSafety = 8;

// Results and inputs of a run, in one list.
std::vector<const Array*> arrays(const Outcome& outcome) {
  std::vector<const Array*> out;
  for (const Array& a : outcome.results) out.push_back(&a);
  for (const Array& a : outcome.inputs) out.push_back(&a);
  return out;
}

// Every NaN is one value; zeros of both signs differ.
bool same_element(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

// Distance to the next number of the dtype, at least that of its smallest normal number.
double unit(DType dtype, double value) {
  const bool wide = dtype == DType::float64;
  const int digits = dtype == DType::float16 ? 11 : dtype == DType::bfloat16 ? 8 : wide ? 53 : 24;
  const int lowest = dtype == DType::float16 ? -14 : wide ? -1022 : -126;
  const int exponent = std::isfinite(value) && value != 0 ? std::ilogb(value) : lowest;
  return std::ldexp(1, std::max(exponent, lowest) - digits + 1);
}

/// The elements of all arrays of a run as doubles.
using Elements = std::vector<std::vector<double>>;
Elements elements(const Outcome& outcome) {
  Elements out;
  for (const Array* a : arrays(outcome)) out.push_back(a->values());
  return out;
}

struct Place {
  size_t array = 0, element = 0;
};

// The places where two runs differ by more than noise explains, of the given ones.
std::vector<Place> unexplained(const Program& program, const std::vector<Place>& places,
                               const Outcome& expected, const Outcome& actual, int runs) {
  const Elements want = elements(expected), got = elements(actual);
  std::vector<double> reach(places.size(), 0);
  for (int r = 0; r < runs; ++r) {
    const Outcome noisy = run_noisy(program, static_cast<uint64_t>(runs * 1000 + r));
    if (noisy.failed) return places;
    const Elements moved = elements(noisy);
    for (size_t p = 0; p < places.size(); ++p) {
      const double a = want[places[p].array][places[p].element];
      const double b = moved[places[p].array][places[p].element];
      if (same_element(a, b) || a == b) continue;
      const double distance = std::abs(a - b);
      reach[p] = std::isfinite(distance) ? std::max(reach[p], distance) : HUGE_VAL;
    }
  }
  std::vector<Place> out;
  for (size_t p = 0; p < places.size(); ++p) {
    const auto [array, element] = places[p];
    const double a = want[array][element], b = got[array][element];
    const DType dtype = arrays(expected)[array]->dtype;
    const double allowed = reach[p] == 0 ? 0 : kSafety * reach[p] + 2 * unit(dtype, a);
    if (std::isfinite(allowed) && !(std::abs(a - b) <= allowed)) out.push_back(places[p]);
  }
  return out;
}

std::string describe(const Outcome& expected, const Outcome& actual, const std::vector<Place>& places) {
  const Elements want = elements(expected), got = elements(actual);
  const auto [array, element] = places[0];
  const bool result = array < expected.results.size();
  return fmt::format(
      "{} {} ({}) differs in {} elements; element {}: reference {:.17g}, compiled {:.17g}",
      result ? "result" : "input", result ? array : array - expected.results.size(),
      name(arrays(expected)[array]->dtype),
      std::count_if(places.begin(), places.end(), [&](const Place& p) { return p.array == array; }), element,
      want[array][element], got[array][element]);
}

}  // namespace

std::string difference(const Program& program, const Outcome& expected, const Outcome& actual) {
  if (expected.failed != actual.failed) {
    return fmt::format("an index out of range was found {}",
                       expected.failed ? "by the reference executor only" : "by compiled code only");
  }
  if (expected.failed) return "";
  std::vector<Place> places;
  const auto want = arrays(expected), got = arrays(actual);
  for (size_t k = 0; k < want.size(); ++k) {
    if (want[k]->data == got[k]->data) continue;
    // int64 elements past 2^53 are compared by their bits above, and here as near numbers.
    const auto a = want[k]->values(), b = got[k]->values();
    const auto ai = want[k]->integers(), bi = got[k]->integers();
    const bool integral = !is_floating_point(want[k]->dtype);
    for (size_t e = 0; e < a.size(); ++e) {
      if (integral ? ai[e] != bi[e] : !same_element(a[e], b[e])) places.push_back({k, e});
    }
  }
  if (places.empty()) return "";
  const bool may_differ = std::any_of(program.steps.begin(), program.steps.end(),
                                      [](const Step& s) { return s.approximate || s.combines; });
  if (may_differ) {
    places = unexplained(program, places, expected, actual, kNoisyRuns);
    if (!places.empty()) places = unexplained(program, places, expected, actual, kNoisyRunsToConfirm);
  }
  return places.empty() ? "" : describe(expected, actual, places);
}

}  // namespace stax::fuzz
