// Random programs of views, reads and writes over inputs that share memory: compiled against eager. The
// numbers are whole and small, so results are exact.
#include <random>

#include "cpu/compile_testing.h"

namespace stax {
namespace {

/// The program of a seed: the same calls on whatever tensors it is given.
std::vector<Tensor> run_program(uint32_t seed, const std::vector<Tensor>& inputs) {
  std::mt19937 random(seed);
  std::vector<Tensor> pool = inputs;
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint32_t>(n)); };
  const auto any = [&] { return pool[static_cast<size_t>(below(static_cast<int64_t>(pool.size())))]; };
  const int64_t steps = 4 + below(8);
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor t = any(), u = any();
    const bool same = t.sizes() == u.sizes();
    const int64_t rank = t.dim(), dim = rank == 0 ? 0 : below(rank);
    const int64_t length = rank == 0 ? 0 : int64_t{t.size(dim)};
    switch (below(12)) {
      case 0:
        if (length > 1) pool.push_back(t.slice(dim, below(length), length));
        break;
      case 1:
        if (rank > 1 && length > 0) pool.push_back(t.select(dim, below(length)));
        break;
      case 2:
        if (rank > 1) pool.push_back(t.transpose(0, rank - 1));
        break;
      case 3:
        pool.push_back(t + 1);
        break;
      case 4:
        pool.push_back(t.reshape({-1}));
        break;
      case 5:
        t.mul_(2);
        break;
      case 6:
        t.add_(1);
        break;
      case 7:
        if (same) t.copy_(u);
        break;
      case 8:
        if (same) pool.push_back(t * 2 + u);
        break;
      case 9:
        if (length > 2) pool.push_back(t.slice(dim, 0, length, 2));
        break;
      case 10:
        if (length > 1) t.slice(dim, 1, length).copy_(t.slice(dim, 0, length - 1).clone());
        break;
      case 11:
        t.zero_();
        break;
    }
  }
  return {any(), any(), any()};
}

/// Two fresh tensors, and views of them that the seed chooses.
std::vector<Tensor> make_inputs(uint32_t seed) {
  std::mt19937 random(seed * 7 + 1);
  const Tensor a = arange(24).to(kFloat).reshape({4, 6}), b = (arange(24) * 3).to(kFloat).reshape({2, 3, 4});
  std::vector<Tensor> inputs = {a, b};
  if (random() % 2 != 0) inputs.push_back(a.slice(1, 0, 3));
  if (random() % 2 != 0) inputs.push_back(a.select(0, random() % 4));
  if (random() % 3 == 0) inputs.push_back(a.t());
  if (random() % 3 == 0) inputs.push_back(b);
  return inputs;
}

void compare(uint32_t seed, const CompileOptions& options) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<Tensor> expected = make_inputs(seed), got = make_inputs(seed);
  const std::vector<Tensor> eager = run_program(seed, expected);
  const auto compiled =
      compile([seed](const std::vector<Tensor>& inputs) { return run_program(seed, inputs); }, options);
  const std::vector<Tensor> results = compiled(got);
  expected.insert(expected.end(), eager.begin(), eager.end());
  got.insert(got.end(), results.begin(), results.end());
  for (size_t i = 0; i < got.size(); ++i) {
    expect_floats(got[i], values(expected[i]));
    EXPECT_EQ(numbers(got[i].strides()), numbers(expected[i].strides())) << i;
    for (size_t j = 0; j < i; ++j) {
      EXPECT_EQ(got[i].is_alias_of(got[j]), expected[i].is_alias_of(expected[j])) << i << " " << j;
    }
  }
}

TEST(RandomMutation, GraphsGiveWhatEagerEvaluationGives) {
  for (uint32_t seed = 0; seed < 300; ++seed) compare(seed, {.fullgraph = true, .backend = "debug"});
}

TEST(RandomMutation, KernelsGiveWhatEagerEvaluationGives) {
  for (uint32_t seed = 0; seed < 25; ++seed) compare(seed, strict());
}

}  // namespace
}  // namespace stax
