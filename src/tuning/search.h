// Chooses a launch configuration by measuring: the algorithms of section 9.6 of the specification. What they
// measure with, and on, is the caller's.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuning/config_space.h"

namespace stax::tuning {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// What one configuration was found to be.
struct Measured {
  double seconds = kNever;  ///< a statistic over repeated launches; kNever where it cannot be launched
  int32_t spill_bytes = 0;  ///< of a thread; any make the configuration's cost infinite
  std::string failure;      ///< why it does not compile or launch

  bool launches() const { return failure.empty(); }
  /// The t of Definition 9.2.
  double cost() const { return launches() && spill_bytes == 0 ? seconds : kNever; }
};

/// A kernel with its arguments.
class Bench {
 public:
  virtual ~Bench() = default;
  /// The configurations will be measured: compiles them, at the same time where it can.
  virtual void prepare(std::span<const codegen::LaunchConfig> configs) { (void)configs; }
  /// Launches `config` at least `repeats` times, from cold caches, with what it mutates restored.
  virtual Measured measure(const codegen::LaunchConfig& config, int32_t repeats) = 0;
};

struct SearchOptions {
  int32_t repeats = 20;    ///< launches behind one figure
  double epsilon = 1e-3;   ///< of coordinate descent: the gain that is one; see threshold()
  double quantile = 0.05;  ///< q of Proposition 9.3: random search finds one of the best q ...
  double failure = 0.05;   ///< delta: ... but with this probability
  uint64_t seed = 0;
};

struct Trial {
  codegen::LaunchConfig config;
  Measured measured;
};

struct SearchResult {
  codegen::LaunchConfig best;
  Measured measured;          ///< of `best`
  std::vector<Trial> trials;  ///< in the order of their measurements
};

/// Algorithm 9.1, lines 2 to 6, over one configuration or more: a single one is taken unmeasured. Where all
/// spill, the least spilling one that launches. RuntimeError, with every reason, where none launches.
SearchResult select_empirically(std::span<const codegen::LaunchConfig> configs, Bench& bench,
                                const SearchOptions& options);

/// Algorithm 9.2 from the best of `start`.
SearchResult descend_coordinates(const ConfigSpace& space, std::span<const codegen::LaunchConfig> start,
                                 Bench& bench, const SearchOptions& options);

/// `start` and the N = ceil(ln(1 / delta) / q) configurations of Proposition 9.3, drawn uniformly.
SearchResult search_randomly(const ConfigSpace& space, std::span<const codegen::LaunchConfig> start,
                             Bench& bench, const SearchOptions& options);

/// Successive halving (Jamieson and Talwalkar, 2016) over the configurations of search_randomly: each round
/// measures twice as often as the one before, and keeps the faster half.
SearchResult halve_successively(const ConfigSpace& space, std::span<const codegen::LaunchConfig> start,
                                Bench& bench, const SearchOptions& options);

/// A way to search, by name. `start` are the heuristic candidates.
struct Strategy {
  std::string_view name;
  SearchResult (*search)(const ConfigSpace& space, std::span<const codegen::LaunchConfig> start, Bench& bench,
                         const SearchOptions& options);
};

/// "candidates", "coordinate_descent", "random", "successive_halving".
std::span<const Strategy> strategies();
/// UserError, listing the names, for one that is none.
const Strategy& strategy_named(std::string_view name);

/// What functions are tuned by where nothing else is said: STAX_TUNING, else "candidates".
std::string default_strategy();

/// Number of draws after which, with probability 1 - `failure`, one is among the best `quantile`.
int64_t random_draws(double quantile, double failure);

/// Largest relative error of `seconds`, measurements of one configuration: the eta for which they lie within
/// t * (1 - eta) and t * (1 + eta) for some t.
double noise_of(std::span<const double> seconds);

/// The epsilon for which an accepted step is a gain in spite of `noise`: max(1e-3, just above
/// 2 * noise / (1 + noise)).
double threshold(double noise);

/// Lines of a table of the trials, the chosen one marked.
std::string table_of(const SearchResult& result);

}  // namespace stax::tuning
