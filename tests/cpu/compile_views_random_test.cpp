// Random programs over every dtype and kind of view, on arguments that overlap, are expanded, strided or
// empty: what is recorded and replayed does what eager mode does. Where one refuses, so does the other.
#include <cmath>
#include <random>

#include "cpu/compile_testing.h"

namespace stax {
namespace {

constexpr DType kDTypes[] = {kFloat, kDouble, kHalf, kBFloat16, kLong, kInt, kShort, kInt8, kUInt8, kBool};

class Program {
 public:
  Program(uint32_t seed, const std::vector<Tensor>& inputs) : random_(seed), pool_(inputs) {
    for (int64_t steps = 3 + below(9); steps > 0; --steps) step(any(), any());
  }
  std::vector<Tensor> results() { return {any(), any(), any()}; }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(n)); }
  Tensor any() { return pool_[static_cast<size_t>(below(static_cast<int64_t>(pool_.size())))]; }
  void keep(const Tensor& t) { pool_.push_back(t); }

  void step(const Tensor& t, const Tensor& u) {
    const int64_t rank = t.dim(), d = rank > 0 ? below(rank) : 0;
    const int64_t length = rank > 0 ? int64_t{t.size(d)} : 0;
    if (below(2) == 0) return view(t, rank, d, length);
    below(2) == 0 ? write(t, u, d, length) : compute(t, u, d, length);
  }

  void view(const Tensor& t, int64_t rank, int64_t d, int64_t length) {
    switch (below(9)) {
      case 0:
        if (length > 1) keep(t.slice(d, below(length), length, 1 + below(2)));
        break;
      case 1:
        if (length > 0) keep(t.select(d, below(length)));
        break;
      case 2:
        if (rank > 1) keep(t.transpose(0, rank - 1));
        break;
      case 3:
        if (rank > 1) keep(t.diagonal(0, 0, 1));
        break;
      case 4:
        if (length > 2) keep(t.unfold(d, 2, 1));
        break;
      case 5:
        if (rank < 3) keep(t.unsqueeze(0).expand_as(stack({t, t})));
        break;
      case 6:
        keep(t.unsqueeze(below(rank + 1)).squeeze());
        break;
      case 7:
        keep(t.is_contiguous() ? t.view({-1}) : t.clone());
        break;
      case 8:
        if (rank == 1 && length > 3) keep(t.as_strided({2, 2}, {1, 2}, t.storage_offset()));
        break;
    }
  }

  void write(const Tensor& t, const Tensor& u, int64_t d, int64_t length) {
    const bool logical = t.dtype() == kBool;
    switch (below(6)) {
      case 0:
        logical ? t.logical_not_() : t.add_(1);
        break;
      case 1:
        if (!logical) t.mul_(2);
        break;
      case 2:
        if (u.sizes() == t.sizes() && !u.is_alias_of(t)) t.copy_(u);
        break;
      case 3:
        if (length > 1) t.slice(d, 1, length).copy_(t.slice(d, 0, length - 1));
        break;
      case 4:
        t.masked_fill_(t.to(kFloat) > 2, 1);
        break;
      case 5:
        t.zero_();
        break;
    }
  }

  void compute(const Tensor& t, const Tensor& u, int64_t d, int64_t length) {
    const bool logical = t.dtype() == kBool;
    switch (below(5)) {
      case 0:
        keep(logical ? logical_not(t) : t + 1);
        break;
      case 1:
        keep(t.to(kDTypes[below(10)]));
        break;
      case 2:
        if (length > 0) keep(cat({t, t.flip({d})}, d));
        break;
      case 3:
        if (length > 0) keep(logical ? t.any(d) : t.amax(d));
        break;
      case 4:
        if (t.sizes() == u.sizes()) keep(where(t.to(kFloat) > u.to(kFloat), t, u));
        break;
    }
  }

  std::mt19937 random_;
  std::vector<Tensor> pool_;
};

std::vector<Tensor> inputs_of(uint32_t seed) {
  std::mt19937 random(seed + 1);
  const Tensor base = arange(30).remainder(5).to(kDTypes[random() % 10]);
  const Tensor other = arange(12).to(kDTypes[random() % 10]).view({3, 4});
  switch (random() % 5) {
    case 0:
      return {base.slice(0, 0, 12).view({3, 4}), base.slice(0, 6, 18).view({3, 4}), other};
    case 1:
      return {base.slice(0, 0, 20, 2), base.slice(0, 1, 21, 2), other};
    case 2:
      return {base.view({5, 6}), base.view({6, 5}).t(), other};
    case 3:
      return {base.slice(0, 3, 4).expand({3}), base.slice(0, 0, 8), other};
    default:
      return {base.slice(0, 0, 0).view({0, 3}), base.view({2, 3, 5}), other};
  }
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && values(a.to(kFloat)) == values(b.to(kFloat));
}

/// What went wrong with a seed; `refused` counts programs that both modes refuse.
std::string compare(uint32_t seed, const CompileOptions& options, int& refused) {
  const std::vector<Tensor> first = inputs_of(seed), second = inputs_of(seed);
  const auto f = [&](const std::vector<Tensor>& in) { return Program(seed, in).results(); };
  std::vector<Tensor> expected, got;
  std::string error, other;
  try {
    expected = f(first);
  } catch (const UserError& e) {
    error = e.what();
  }
  try {
    got = compile(f, options)(second);
  } catch (const UserError& e) {
    other = e.what();
  }
  if (error.empty() != other.empty()) return "eager: " + error + "; compiled: " + other;
  if (!error.empty()) return ++refused, "";
  for (size_t k = 0; k < first.size(); ++k) {
    if (!same(first[k], second[k])) return "another argument " + std::to_string(k);
    if (!same(expected[k], got[k])) return "another result " + std::to_string(k);
    for (size_t j = 0; j < first.size(); ++j) {
      if (expected[k].is_alias_of(first[j]) != got[k].is_alias_of(second[j])) return "other aliases";
    }
  }
  return "";
}

TEST(CompileViewsRandom, RecordedProgramsDoWhatEagerModeDoes) {
  int refused = 0;
  for (uint32_t seed = 0; seed < 2'000; ++seed)
    EXPECT_EQ(compare(seed, {.backend = "debug"}, refused), "") << "seed " << seed;
  EXPECT_LT(refused, 700);
}

TEST(CompileViewsRandom, KernelsToo) {
  int refused = 0;
  for (uint32_t seed = 0; seed < 25; ++seed)
    EXPECT_EQ(compare(seed, {.fullgraph = true}, refused), "") << "seed " << seed;
}

}  // namespace
}  // namespace stax
