#include "tuning/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "support/check.h"
#include "support/environment.h"

namespace stax::tuning {
namespace {

using codegen::LaunchConfig;
using Configs = std::vector<LaunchConfig>;

/// Measures, and remembers what it found: the algorithms take the cost for a function.
class Costs {
 public:
  Costs(Bench& bench, int32_t repeats) : bench_(bench), repeats_(repeats) {}

  const Measured& of(const LaunchConfig& config) {
    const auto [at, added] = known_.try_emplace(to_string(config), trials_.size());
    if (added) trials_.push_back({config, bench_.measure(config, repeats_)});
    return trials_[at->second].measured;
  }

  SearchResult finish(const LaunchConfig& best) {
    SearchResult result{.best = best, .measured = of(best)};
    result.trials = std::move(trials_);
    return result;
  }

  std::vector<Trial>& trials() { return trials_; }

 private:
  Bench& bench_;
  int32_t repeats_;
  std::map<std::string, size_t> known_;
  std::vector<Trial> trials_;
};

/// The fastest; where all cost is infinite, the least spilling one that launches.
const Trial& best_of(const std::vector<Trial>& trials) {
  STAX_ASSERT(!trials.empty(), "tuning: a choice between no configurations");
  const auto worse = [](const Trial& a, const Trial& b) {
    const auto rank = [](const Trial& t) {
      return std::tuple(!t.measured.launches(), t.measured.cost(), t.measured.spill_bytes,
                        t.measured.seconds);
    };
    return rank(a) < rank(b);
  };
  const Trial& best = *std::min_element(trials.begin(), trials.end(), worse);
  std::string reasons;
  if (!best.measured.launches())
    for (const Trial& t : trials)
      reasons += fmt::format("\n  {}: {}", to_string(t.config), t.measured.failure);
  STAX_RUNTIME_CHECK(best.measured.launches(), "tuning: no configuration of the kernel can be launched:{}",
                     reasons);
  return best;
}

Configs drawn(const ConfigSpace& space, std::span<const LaunchConfig> start, const SearchOptions& options) {
  std::mt19937_64 random(options.seed);
  Configs configs(start.begin(), start.end());
  for (int64_t n = random_draws(options.quantile, options.failure); n > 0; --n)
    configs.push_back(space.draw(random));
  return configs;
}

SearchResult over_candidates(const ConfigSpace&, std::span<const LaunchConfig> start, Bench& bench,
                             const SearchOptions& options) {
  return select_empirically(start, bench, options);
}

constexpr Strategy kStrategies[] = {
    {"candidates", over_candidates},
    {"coordinate_descent", descend_coordinates},
    {"random", search_randomly},
    {"successive_halving", halve_successively},
};

}  // namespace

SearchResult select_empirically(std::span<const LaunchConfig> configs, Bench& bench,
                                const SearchOptions& options) {
  STAX_ASSERT(!configs.empty(), "tuning: a choice between no configurations");
  if (configs.size() == 1) return {.best = configs[0]};
  bench.prepare(configs);
  Costs costs(bench, options.repeats);
  for (const LaunchConfig& c : configs) (void)costs.of(c);
  const LaunchConfig best = best_of(costs.trials()).config;
  return costs.finish(best);
}

SearchResult descend_coordinates(const ConfigSpace& space, std::span<const LaunchConfig> start, Bench& bench,
                                 const SearchOptions& options) {
  STAX_ASSERT(!start.empty(), "tuning: a descent from no configuration");
  bench.prepare(start);
  Costs costs(bench, options.repeats);
  for (const LaunchConfig& c : start) (void)costs.of(c);
  LaunchConfig current = best_of(costs.trials()).config;
  for (bool improved = true; improved;) {
    improved = false;
    for (size_t i = 0; i < space.parameters().size(); ++i) {
      Configs around;
      for (const bool up : {true, false})
        if (auto next = space.neighbour(current, i, up)) around.push_back(std::move(*next));
      bench.prepare(around);
      for (LaunchConfig& next : around) {
        if (costs.of(next).cost() < (1 - options.epsilon) * costs.of(current).cost()) {
          current = std::move(next);
          improved = true;
        }
      }
    }
  }
  return costs.finish(current);
}

SearchResult search_randomly(const ConfigSpace& space, std::span<const LaunchConfig> start, Bench& bench,
                             const SearchOptions& options) {
  return select_empirically(drawn(space, start, options), bench, options);
}

SearchResult halve_successively(const ConfigSpace& space, std::span<const LaunchConfig> start, Bench& bench,
                                const SearchOptions& options) {
  const Configs configs = drawn(space, start, options);
  bench.prepare(configs);
  std::vector<Trial> all, round;
  int32_t repeats = 1;
  {
    Costs costs(bench, repeats);
    for (const LaunchConfig& c : configs) (void)costs.of(c);
    round = std::move(costs.trials());
  }
  (void)best_of(round);  // refuses what cannot run at all
  const auto faster = [](const Trial& a, const Trial& b) { return a.measured.cost() < b.measured.cost(); };
  while (round.size() > 1) {
    std::stable_sort(round.begin(), round.end(), faster);
    const size_t keep = (round.size() + 1) / 2;
    if (round[0].measured.cost() == kNever) break;
    all.insert(all.end(), round.begin() + static_cast<std::ptrdiff_t>(keep), round.end());
    round.resize(keep);
    if (keep == 1) break;
    repeats *= 2;
    for (Trial& t : round) t.measured = bench.measure(t.config, repeats);
  }
  const Trial best = best_of(round);
  all.insert(all.end(), round.begin(), round.end());
  return {.best = best.config, .measured = best.measured, .trials = std::move(all)};
}

std::span<const Strategy> strategies() {
  return kStrategies;
}

const Strategy& strategy_named(std::string_view name) {
  std::string names = "none";  // which is no search
  for (const Strategy& s : kStrategies) {
    if (s.name == name) return s;
    names += fmt::format(", {}", s.name);
  }
  STAX_CHECK(false, "tuning: there is no strategy \"{}\"; expected one of {}", name, names);
}

std::string default_strategy() {
  std::vector<std::string_view> known{"none"};
  for (const Strategy& s : kStrategies) known.push_back(s.name);
  return std::string(environment_word("STAX_TUNING", known).value_or("candidates"));
}

int64_t random_draws(double quantile, double failure) {
  STAX_CHECK(quantile > 0 && quantile <= 1 && failure > 0 && failure < 1,
             "random search: expected 0 < quantile <= 1 and 0 < failure < 1, got {} and {}", quantile,
             failure);
  return static_cast<int64_t>(std::ceil(std::log(1 / failure) / quantile));
}

double noise_of(std::span<const double> seconds) {
  if (seconds.empty()) return 0;
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return (*most - *least) / (*most + *least);
}

double threshold(double noise) {
  const double least = 2 * noise / (1 + noise);
  return std::max(1e-3, std::nextafter(least, 1.0));
}

std::string table_of(const SearchResult& result) {
  std::string text;
  const std::string best = to_string(result.best);
  for (const Trial& t : result.trials) {
    const std::string config = to_string(t.config);
    const std::string figure = !t.measured.launches() ? t.measured.failure
                               : t.measured.spill_bytes > 0
                                   ? fmt::format("spills {} bytes", t.measured.spill_bytes)
                                   : fmt::format("{:.2f} us", t.measured.seconds * 1e6);
    text += fmt::format("{} {:<60} {}\n", config == best ? "*" : " ", config, figure);
  }
  return text;
}

}  // namespace stax::tuning
