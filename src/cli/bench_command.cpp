// stax bench: how long a compiled model takes.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/model_inputs.h"
#include "stax/compile.h"
#include "stax/onnx.h"
#include "support/check.h"
#include "support/json.h"
#include "support/plural.h"

namespace stax::cli {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

/// With three digits, in the unit that fits.
std::string duration_text(double milliseconds) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e3, "s"}, {1, "ms"}, {1e-3, "us"}};
  for (const auto& [size, unit] : kUnits)
    if (milliseconds >= size * 0.9995) return fmt::format("{:.3g} {}", milliseconds / size, unit);
  return fmt::format("{:.0f} ns", milliseconds * 1e6);
}

struct Times {
  double first = 0;            // with compilation
  std::vector<double> sorted;  // of the later calls
  double at(double share) const {
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  }
  double mean() const {
    return std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  }
};

Times measure(const CompiledFunction<OnnxModel>& model, const std::vector<Tensor>& inputs,
              const BenchOptions& options) {
  Times times;
  const auto start = Clock::now();
  model(inputs);
  times.first = milliseconds(Clock::now() - start);
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  do {
    const auto before = Clock::now();
    model(inputs);
    times.sorted.push_back(milliseconds(Clock::now() - before));
  } while (Clock::now() < end);
  std::sort(times.sorted.begin(), times.sorted.end());
  return times;
}

}  // namespace

int bench(const BenchOptions& options) {
  STAX_CHECK(options.seconds > 0, "bench: --seconds is to be positive, not {}", options.seconds);
  STAX_CHECK(
      !options.batch || options.inputs.empty(),
      "bench: --batch is for inputs of zeros; the files of --input have their own sizes; leave one out");
  const OnnxModel model = OnnxModel::load(options.model);
  const std::vector<Tensor> inputs = options.inputs.empty() ? empty_inputs(model.program(), options.batch)
                                                            : read_inputs(model.program(), options.inputs);
  const Times times = measure(compile(model), inputs, options);
  if (options.json) {
    Json result;
    result.set("model", options.model)
        .set("calls", static_cast<int64_t>(times.sorted.size()))
        .set("first_ms", times.first)
        .set("min_ms", times.sorted.front())
        .set("median_ms", times.at(0.5))
        .set("p90_ms", times.at(0.9))
        .set("mean_ms", times.mean());
    fmt::print("{}\n", result.dump(1));
  } else {
    fmt::print("first call {}; then {}: median {}, fastest {}, 90 % within {}\n", duration_text(times.first),
               counted(times.sorted.size(), "call"), duration_text(times.at(0.5)),
               duration_text(times.sorted.front()), duration_text(times.at(0.9)));
  }
  return 0;
}

}  // namespace stax::cli
