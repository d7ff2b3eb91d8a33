// A transformer block fed many batches and lengths: how many artifacts it needs, and that each is right.
#include <random>

#include "cpu/compile_testing.h"

namespace stax {
namespace {

using T = Tensor;
namespace F = nn::functional;

constexpr int64_t kWidth = 16, kHeads = 4;

struct Block {
  struct Linear {
    T weight, bias;
    Linear(int64_t in, int64_t out) : weight(randn({out, in}) * 0.2), bias(randn({out}) * 0.1) {}
    T operator()(const T& x) const { return F::linear(x, weight, bias); }
  };
  struct Norm {
    T weight = rand({kWidth}) + 0.5, bias = randn({kWidth}) * 0.1;
    T operator()(const T& x) const {
      return F::layer_norm(x, F::LayerNormFuncOptions({kWidth}).weight(weight).bias(bias));
    }
  };
  Norm norm1, norm2;
  Linear q{kWidth, kWidth}, k{kWidth, kWidth}, v{kWidth, kWidth}, out{kWidth, kWidth};
  Linear up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};

  T operator()(const T& x) const {
    const SymInt batch = x.size(0), length = x.size(1);
    const auto heads = [&](const T& t) {
      return t.view({batch, length, kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const T y = norm1(x);
    const T mixed = F::scaled_dot_product_attention(heads(q(y)), heads(k(y)), heads(v(y)));
    const T z = x + out(mixed.transpose(1, 2).reshape({batch, length, kWidth}));
    return z + down(F::gelu(up(norm2(z))));
  }
};

/// Artifacts that 200 pairs need; each call is compared with eager mode.
size_t artifacts_for(int64_t smallest) {
  manual_seed(3);
  const Block block;
  const auto compiled = compile(block, {.dynamic = true, .strict_native = true});
  std::mt19937 random(11);
  std::uniform_int_distribution<int64_t> size(smallest, 24);
  for (int k = 0; k < 200; ++k) {
    const int64_t batch = smallest == 1 && k % 5 == 0 ? 1 : size(random), length = size(random);
    const T x = randn({batch, length, kWidth});
    const T difference = (compiled(x) - block(x)).abs().max();
    EXPECT_LT(difference.item().toDouble(), 2e-5) << "batch " << batch << ", length " << length;
  }
  return compiled.artifacts().size();
}

TEST(DynamicTransformer, OneArtifactServesAllBatchesAndLengthsFromTwo) {
  EXPECT_EQ(artifacts_for(2), 1u);
}

TEST(DynamicTransformer, BatchesAndLengthsOfOneAddFew) {
  EXPECT_LE(artifacts_for(1), 6u);
}

}  // namespace
}  // namespace stax
