// Random functions with arithmetic and branches on sizes: compiled with symbolic sizes and run at random
// shapes, against eager evaluation at the same shapes. Every decision that an artifact was made by is asked
// again at each shape that its guards let in.
//
// STAX_FUZZ_SEED is the seed of the first function, STAX_FUZZ_DYNAMIC_COUNT how many there are.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>

#include "compiler/batch.h"
#include "compiler/decisions.h"
#include "fuzz/random.h"
#include "fuzz/settings.h"
#include "stax/stax.h"
#include "tensor/tensor_impl.h"

namespace stax::fuzz {
namespace {

constexpr int64_t kShards = 4, kShapes = 20, kInModule = 40;
constexpr int kRounds = 3;  // artifacts of one function

/// The values of a function on the way.
struct State {
  std::vector<Tensor> values;
  Random random;

  const Tensor& any() { return random.of(values); }
  /// Some value that has dimensions.
  Tensor array() {
    const Tensor& t = any();
    return t.dim() > 0 ? t : t.unsqueeze(0);
  }
  int64_t dim(const Tensor& t) { return random.integer(0, t.dim() - 1); }
  SymInt size(const Tensor& t) { return t.size(dim(t)); }
};

using Step = Tensor (*)(State&);

// Elements are small integers, so that sums are exact in any order.
const std::vector<Step>& size_steps() {
  static const std::vector<Step> all = {
      [](State& s) { return s.any() + s.random.integer(-3, 3); },
      [](State& s) { return maximum(s.any(), -s.any().sum()); },
      [](State& s) { return where(s.any() > 0, s.values[0].sum(), s.values[1].sum()) + s.any().amax(); },
      [](State& s) {
        const Tensor t = s.array();
        return t * (s.size(t) - s.random.integer(0, 5));
      },
      [](State& s) {
        const Tensor t = s.array();
        const int64_t d = s.dim(t);
        return t.sum(d, s.random.one_in(2));
      },
      [](State& s) {
        const Tensor t = s.array();
        return t - t.sum(s.dim(t), true);
      },
      [](State& s) {
        const Tensor t = s.array();
        const int64_t d = s.dim(t);
        return t.slice(d, s.random.integer(0, 2), t.size(d) - s.random.integer(0, 2), s.random.integer(1, 3));
      },
      [](State& s) {
        const Tensor t = s.array();
        const int64_t d = s.dim(t);
        return t.slice(d, t.size(d) / 2, stax::min(t.size(d), s.size(s.array())));
      },
      [](State& s) {
        const Tensor t = s.array();
        const int64_t d = s.dim(t);
        return t.narrow(d, 0, (t.size(d) + 1) / 2);
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.size(0) > s.random.integer(1, 7) ? t * 2 : t - 1;
      },
      [](State& s) {
        const Tensor t = s.array();
        const SymInt n = s.size(t);
        return n % 2 == 0 && n >= s.random.integer(0, 4) ? -t : t + n;
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.size(0) == s.size(s.array()) ? t * t : t;
      },
      [](State& s) {
        const Tensor t = s.array();
        const SymInt more = (4 - t.size(-1) % 4) % 4;
        const Tensor padded = constant_pad_nd(t, {0, more}, 1);
        std::vector<SymInt> shape = t.sizes().vec();
        shape.back() = -1;
        shape.push_back(4);
        return padded.reshape(shape).sum(-1);
      },
      [](State& s) {
        const Tensor t = s.any();
        return t.reshape({-1});
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.reshape({t.size(0), -1}).sum(1);
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.transpose(0, s.dim(t));
      },
      [](State& s) {
        const Tensor t = s.array();
        return cat({t, t + 1}, s.dim(t));
      },
      [](State& s) {
        const Tensor t = s.array();
        const int64_t d = s.dim(t);
        return t.roll({t.size(d) / 3}, {d});
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.flip({s.dim(t)});
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.unsqueeze(0).expand({s.random.integer(1, 3), -1}).sum(0) + t.numel();
      },
      [](State& s) {
        const Tensor t = s.array();
        return full({t.size(0), stax::max(s.size(t) - 2, 0)}, s.random.integer(-2, 2), kFloat).sum(1);
      },
      [](State& s) {
        const Tensor t = s.array();
        return arange(t.size(0) + 1, kFloat) * s.random.integer(1, 2);
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.select(s.dim(t), s.random.integer(-1, 1));
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.cumsum(s.dim(t));
      },
      [](State& s) {
        const Tensor t = s.array();
        return t.index({stax::Slice(None, None, 2)}) * 1;
      },
      [](State& s) { return s.any() * s.any(); },
      [](State& s) { return s.any() + s.any(); },
      [](State& s) {
        const Tensor t = s.array(), copy = t.clone();
        copy.select(0, 0).add_(5);
        return copy;
      },
  };
  return all;
}

/// With sizes that only data determines inside: what is left has none.
const std::vector<Step>& data_steps() {
  static const std::vector<Step> all = {
      [](State& s) {
        const Tensor t = s.any();
        return t + masked_select(t, t > 0).sum();
      },
      [](State& s) {
        const Tensor t = s.any();
        return t * (nonzero(t - s.random.integer(0, 2)).size(0) + 1);
      },
      [](State& s) {
        const Tensor t = s.array();
        const Tensor some = masked_select(t, t < s.random.integer(0, 3));
        return cat({some * 2, t.reshape({-1})}, 0).sum() + t;
      },
  };
  return all;
}

const std::vector<Step>& steps() {
  static const std::vector<Step> all = [] {
    std::vector<Step> both = size_steps();
    both.insert(both.end(), data_steps().begin(), data_steps().end());
    return both;
  }();
  return all;
}

/// The function of `seed`.
std::vector<Tensor> run(uint64_t seed, const std::vector<Tensor>& inputs) {
  State state{inputs, Random(seed)};
  const int64_t count = state.random.integer(2, 6);
  for (int64_t k = 0; k < count; ++k) {
    Tensor t = state.random.of(steps())(state);
    // Values that grow leave the integers that float32 holds.
    state.values.push_back(t.clamp(-1000, 1000));
  }
  return {state.values.begin() + 2, state.values.end()};
}

std::vector<Tensor> inputs_of(Random& random, bool small) {
  const auto length = [&] { return random.integer(small ? 0 : 2, 9); };
  const int64_t n = length(), m = length();
  const auto filled = [&](std::vector<int64_t> sizes) {
    Tensor t = zeros(sizes);
    float* data = static_cast<float*>(t.data_ptr());
    for (int64_t k = 0; k < static_cast<int64_t>(t.numel()); ++k) {
      data[k] = static_cast<float>(random.integer(-3, 3));
    }
    return t;
  };
  return {filled({n, m}), filled({random.one_in(2) ? m : length()})};
}

/// What a function gives; nothing where it refuses its arguments.
std::optional<std::vector<Tensor>> attempt(const auto& function) {
  try {
    return function();
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::string difference(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  if (got.size() != expected.size()) return "another number of results";
  for (size_t k = 0; k < got.size(); ++k) {
    if (got[k].sizes() != expected[k].sizes()) {
      return fmt::format("result {}: sizes [{}], expected [{}]", k, fmt::join(got[k].sizes().values(), ", "),
                         fmt::join(expected[k].sizes().values(), ", "));
    }
    const Tensor a = got[k].contiguous().to(kFloat), b = expected[k].contiguous().to(kFloat);
    const float *x = a.data_ptr<float>(), *y = b.data_ptr<float>();
    for (int64_t i = 0; i < static_cast<int64_t>(a.numel()); ++i) {
      if (x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i]))) {
        return fmt::format("result {}, element {}: {}, expected {}", k, i, x[i], y[i]);
      }
    }
  }
  return {};
}

/// One function, its shapes and its artifacts.
struct Function {
  uint64_t seed;
  std::vector<std::vector<Tensor>> shapes;
  struct Artifact {
    std::shared_ptr<const compiler::CompiledProgram> program;
    compiler::Guards guards;
  };
  std::vector<Artifact> artifacts;
  size_t checked = 0;  // shapes that an artifact served
  bool dead = false;   // it cannot be recorded at some shape

  explicit Function(uint64_t seed_in) : seed(seed_in) {
    Random random(seed * 977 + 5);
    for (int64_t k = 0; k < kShapes; ++k) shapes.push_back(inputs_of(random, k > 0));
  }
  std::string name(size_t shape) const {
    std::string sizes;
    for (const Tensor& t : shapes[shape]) sizes += fmt::format("[{}]", fmt::join(t.sizes().values(), ", "));
    return fmt::format("seed {} at {}; repeat with STAX_FUZZ_SEED={} STAX_FUZZ_DYNAMIC_COUNT=1", seed, sizes,
                       seed);
  }
  const Artifact* find(size_t shape, std::vector<int64_t>& symbols) const {
    for (const Artifact& artifact : artifacts) {
      if (auto values = compiler::symbols_of(artifact.guards, shapes[shape])) {
        symbols = std::move(*values);
        return &artifact;
      }
    }
    return nullptr;
  }
  auto eager(size_t shape) const {
    return attempt([&] { return run(seed, shapes[shape]); });
  }
};

class DynamicShapes : public ::testing::TestWithParam<int64_t> {
 protected:
  /// Gives every function an artifact for its first shape that has none.
  static void compile_round(std::vector<std::unique_ptr<Function>>& functions) {
    std::vector<capture::Captured> captured;
    std::vector<Function*> owners;
    for (auto& f : functions) {
      std::vector<int64_t> symbols;
      for (size_t k = 0; k < f->shapes.size() && !f->dead; ++k) {
        if (f->find(k, symbols) != nullptr || !f->eager(k)) continue;
        try {
          captured.push_back(
              compiler::trace_function([&](const std::vector<Tensor>& in) { return run(f->seed, in); },
                                       f->shapes[k], {.dynamic = true, .record_decisions = true}));
          owners.push_back(f.get());
        } catch (const std::exception& error) {
          ADD_FAILURE() << f->name(k) << ": recording: " << error.what();
          f->dead = true;
        }
        break;
      }
    }
    const std::vector<compiler::BatchItem> items = compiler::compile_batch(std::move(captured));
    for (size_t k = 0; k < items.size(); ++k) {
      if (items[k].program == nullptr || !items[k].error.empty()) {
        ADD_FAILURE() << "seed " << owners[k]->seed << ": " << items[k].error;
        owners[k]->dead = true;
        continue;
      }
      owners[k]->artifacts.push_back({items[k].program, compiler::Guards(items[k].program->captured())});
    }
  }

  static void print(const Function& f) {
    for (const Function::Artifact& artifact : f.artifacts) {
      fmt::print("{}  {}\n", artifact.program->captured().graph.str(),
                 fmt::join(artifact.guards.conditions(), "\n  "));
    }
  }

  /// The results of an artifact. None is used outside its guards: whatever it was made by is so at these
  /// shapes, too.
  static std::vector<Tensor> run_checked(const Function& f, const Function::Artifact& artifact, size_t shape,
                                         const std::vector<int64_t>& symbols) {
    std::vector<const StridedImpl*> impls;
    std::vector<const Tensor*> tensors;
    for (const Tensor& t : f.shapes[shape]) {
      impls.push_back(&strided(t));
      tensors.push_back(&t);
    }
    const compiler::DecisionCheck decisions(artifact.program->captured(), impls, {});
    std::vector<Tensor> results(artifact.program->result_count());
    std::vector<int64_t> late;
    try {
      decisions.before();
      artifact.program->run(tensors, {}, results.data(), symbols, nullptr, &late);
      decisions.after(late);
    } catch (const InternalError& error) {
      ADD_FAILURE() << f.name(shape) << ": " << error.what();
    }
    return results;
  }

  static void check(Function& f) {
    for (size_t k = 0; k < f.shapes.size(); ++k) {
      std::vector<int64_t> symbols;
      const auto* artifact = f.find(k, symbols);
      if (artifact == nullptr) continue;
      const auto expected = f.eager(k);
      const auto got = attempt([&] { return run_checked(f, *artifact, k, symbols); });
      if (got.has_value() != expected.has_value()) {
        ADD_FAILURE() << f.name(k) << ": only " << (got ? "eager" : "compiled") << " refuses it";
      } else if (got) {
        const std::string words = difference(*got, *expected);
        if (!words.empty()) ADD_FAILURE() << f.name(k) << ": " << words;
        ++f.checked;
      }
    }
  }
};

TEST_P(DynamicShapes, ArtifactsAgreeWithEagerModeWhereTheirGuardsHold) {
  const int64_t seed = first_seed(), count = setting("STAX_FUZZ_DYNAMIC_COUNT", 1000);
  const int64_t begin = count * GetParam() / kShards, end = count * (GetParam() + 1) / kShards;
  fmt::print("seeds {} to {}\n", seed + begin, seed + end - 1);
  size_t checked = 0, artifacts = 0, served = 0;
  for (int64_t at = begin; at < end; at += kInModule) {
    std::vector<std::unique_ptr<Function>> functions;
    for (int64_t k = at; k < std::min(end, at + kInModule); ++k) {
      functions.push_back(std::make_unique<Function>(static_cast<uint64_t>(seed + k)));
    }
    for (int round = 0; round < kRounds; ++round) compile_round(functions);
    for (auto& f : functions) {
      if (count == 1) print(*f);
      check(*f);
      checked += f->checked;
      artifacts += f->artifacts.size();
      served += f->checked > f->artifacts.size() ? 1 : 0;
    }
  }
  fmt::print("{} artifacts served {} shapes\n", artifacts, checked);
  // Most functions have artifacts that serve more than the shape they were made for.
  if (count >= 100) {
    EXPECT_GT(static_cast<int64_t>(served), (end - begin) / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, DynamicShapes, ::testing::Range<int64_t>(0, kShards));

}  // namespace
}  // namespace stax::fuzz
