#include "fuzz/generator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fuzz/generator_state.h"
#include "stax/error.h"

namespace stax::fuzz {

using graph::Var;

namespace {

constexpr int64_t kMaxElements = 6000, kMaxElementsOfLarge = 200000;
constexpr size_t kMaxInputs = 8;

uint8_t kind_of(DType dtype) {
  if (is_floating_point(dtype)) return kFloats;
  return dtype == DType::boolean ? kBools : kIntegers;
}

int64_t count_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

Generator::Generator(uint64_t seed) : random_(seed), builder_(ops::table(), env_, graph_) {
  program_.seed = seed;
  style_ = random_.of({Style::exact, Style::exact, Style::exact, Style::real, Style::real, Style::wide});
  specials_ = random_.one_in(5);
  // A few programs are large enough for reductions in two levels and for loops on several threads.
  max_elements_ = random_.one_in(30) ? kMaxElementsOfLarge : kMaxElements;
}

std::vector<int64_t> Generator::sizes(Ref ref) const {
  std::vector<int64_t> out;
  for (const Expr e : var(ref).sizes()) out.push_back(e.value());
  return out;
}

bool Generator::is_approximate(Ref ref) const {
  return !ref.is_input() && approximate_[static_cast<size_t>(ref.id - Ref::kFirstResult)];
}

std::optional<Ref> Generator::pick(uint8_t kinds, bool exact, const std::function<bool(const Var&)>& accept) {
  std::vector<Ref> candidates;
  const auto consider = [&](int32_t id) {
    const Ref r{id};
    const Var v = var(r);
    if (!(kind_of(v.dtype()) & kinds) || (exact && is_approximate(r)) || (accept && !accept(v))) return;
    candidates.push_back(r);
  };
  for (size_t k = 0; k < values_.inputs.size(); ++k) consider(static_cast<int32_t>(k));
  // Recent results are likelier, so that programs grow deep.
  const auto results = static_cast<int32_t>(values_.results.size());
  for (int32_t k = 0; k < results; ++k) {
    for (int copies = k + 3 >= results ? 3 : 1; copies > 0; --copies) consider(Ref::kFirstResult + k);
  }
  if (candidates.empty()) return std::nullopt;
  return random_.of(candidates);
}

std::vector<int64_t> Generator::random_sizes() {
  static const std::vector<int64_t> kLengths = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15,  16, 17,
                                                19, 24, 31, 32, 33, 48, 63, 64, 65, 100, 130};
  const int64_t rank = random_.of({0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4});
  std::vector<int64_t> out;
  int64_t count = 1;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t size = random_.of(kLengths);
    if (random_.one_in(6)) size = 1;
    if (count * size > max_elements_ / 2) size = random_.integer(1, 3);
    if (random_.one_in(60)) size = 0;
    if (max_elements_ > kMaxElements && d == 0 && random_.one_in(2)) size = random_.integer(5000, 60000);
    if (rank == 1 && random_.one_in(12)) size = random_.integer(200, 3000);
    count *= std::max<int64_t>(size, 1);
    out.push_back(size);
  }
  return out;
}

DType Generator::random_dtype(uint8_t kinds) {
  std::vector<DType> choice;
  for (int k = 0; k < kDTypeCount; ++k) {
    const auto dtype = static_cast<DType>(k);
    if (kind_of(dtype) & kinds) choice.push_back(dtype);
  }
  if (kinds & kFloats) choice.insert(choice.end(), {DType::float32, DType::float32, DType::float32});
  return random_.of(choice);
}

double Generator::special_element(DType dtype) {
  if (is_floating_point(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    return random_.of({std::nan(""), inf, -inf, -0.0, 0.0, 1.0, -1.0});
  }
  if (dtype == DType::boolean) return 1;
  const int bits = static_cast<int>(8 * itemsize(dtype));
  if (dtype == DType::uint8) return random_.of({0.0, 255.0, 128.0});
  // Beyond 2^53 a double does not hold every integer; the lowest one it does.
  return random_.of({-std::ldexp(1, bits - 1), std::min(std::ldexp(1, bits - 1) - 1, 0x1p52), -1.0, 0.0});
}

double Generator::random_element(DType dtype) {
  if (dtype == DType::boolean) return static_cast<double>(random_.integer(0, 1));
  if (specials_ && random_.one_in(6)) return special_element(dtype);
  if (dtype == DType::uint8) return static_cast<double>(random_.integer(0, 12));
  if (!is_floating_point(dtype)) return static_cast<double>(random_.integer(-8, 8));
  switch (style_) {
    case Style::exact:
      return static_cast<double>(random_.integer(-16, 16)) / 4;
    case Style::real:
      return random_.real(-3, 3);
    case Style::wide: {
      const double range = dtype == DType::float16 ? 8 : 18;
      return random_.real(-1, 1) * std::exp2(std::round(random_.real(-range, range)));
    }
  }
  return 0;
}

std::vector<int64_t> Generator::random_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides = testing::dense_strides(sizes);
  const int64_t form = random_.integer(0, 9);
  if (form < 5 || sizes.empty()) return strides;
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (form < 8) {
    for (size_t k = order.size(); k > 1; --k)
      std::swap(order[k - 1], order[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(k) - 1))]);
  }
  int64_t step = random_.of({1, 1, 1, 2, 3});
  for (size_t k = order.size(); k-- > 0;) {
    const size_t d = order[k];
    strides[d] = step;
    step = step * std::max<int64_t>(sizes[d], 1) + random_.of({0, 0, 0, 1, 5});
  }
  if (form == 9)
    strides[static_cast<size_t>(random_dim(static_cast<int64_t>(sizes.size())) +
                                static_cast<int64_t>(sizes.size())) %
            sizes.size()] = 0;
  return strides;
}

Array Generator::random_array(DType dtype, const std::vector<int64_t>& sizes) {
  std::vector<double> elements(static_cast<size_t>(count_of(sizes)));
  for (double& e : elements) e = random_element(dtype);
  return testing::strided_array(dtype, sizes, random_strides(sizes), elements);
}

Ref Generator::add_input(Array array) {
  values_.inputs.push_back(builder_.input(meta_of(array)));
  program_.inputs.push_back(std::move(array));
  return {static_cast<int32_t>(values_.inputs.size()) - 1};
}

Ref Generator::input(DType dtype, const std::vector<int64_t>& sizes) {
  return add_input(random_array(dtype, sizes));
}

Ref Generator::indices(const std::vector<int64_t>& sizes, int64_t low, int64_t high) {
  std::vector<double> elements(static_cast<size_t>(count_of(sizes)));
  for (double& e : elements) e = static_cast<double>(random_.integer(low, high - 1));
  return add_input(testing::strided_array(DType::int64, sizes, random_strides(sizes), elements));
}

RefArg Generator::number(uint8_t kinds) {
  if ((kinds & kFloats) && random_.one_in(2)) {
    return Number::of(style_ == Style::real ? random_.real(-3, 3)
                                            : static_cast<double>(random_.integer(-8, 8)) / 4);
  }
  return Number::of(random_.integer(-4, 4));
}

RefArg Generator::operand_for(Ref like, uint8_t kinds, bool exact, bool numbers) {
  if (numbers && random_.one_in(5)) return number(kinds);
  const std::vector<int64_t> wanted = sizes(like);
  if (!random_.one_in(4)) {
    const auto fits = [&](const Var& v) {
      const auto& s = v.sizes();
      int64_t count = 1;
      for (size_t k = 1; k <= std::max(s.size(), wanted.size()); ++k) {
        const int64_t a = k <= s.size() ? s[s.size() - k].value() : 1;
        const int64_t b = k <= wanted.size() ? wanted[wanted.size() - k] : 1;
        if (a != b && a != 1 && b != 1) return false;
        count *= a == 1 ? b : a;
      }
      return count <= max_elements_;
    };
    if (const auto found = pick(kinds, exact, fits)) return *found;
  }
  if (program_.inputs.size() >= kMaxInputs && numbers) return number(kinds);
  std::vector<int64_t> own = wanted;
  if (!own.empty() && random_.one_in(3)) {
    own.erase(own.begin(), own.begin() + random_.integer(0, static_cast<int64_t>(own.size())));
  }
  for (int64_t& s : own) {
    if (random_.one_in(5)) s = 1;
  }
  return input(random_.one_in(2) && (kind_of(dtype(like)) & kinds) ? dtype(like) : random_dtype(kinds), own);
}

int64_t Generator::random_dim(int64_t rank) {
  return random_.integer(-rank, rank - 1);
}

std::vector<Expr> Generator::random_dims(int64_t rank) {
  std::vector<Expr> out;
  for (int64_t d = 0; d < rank; ++d) {
    if (random_.one_in(2)) out.emplace_back(random_.one_in(3) ? d - rank : d);
  }
  if (out.size() > 1 && random_.one_in(3)) std::swap(out.front(), out.back());
  return out;
}

bool Generator::call(const std::string& op, std::vector<RefArg> args, Traits traits) {
  Step step{op, std::move(args), 1, traits.approximate, traits.combines};
  std::vector<Var> results;
  try {
    results = builder_.call_all(step.op, bind_args(step, values_));
  } catch (const UserError&) {
    return false;
  }
  for (const Var& v : results) {
    if (v.numel().value() > max_elements_) return false;
  }
  bool approximate = traits.approximate || traits.combines;
  for (const RefArg& a : step.args) {
    if (a.is_tensor()) approximate |= is_approximate(a.tensor());
    if (const auto* list = std::get_if<RefArg::Tensors>(&a.value)) {
      for (const auto& r : *list) approximate |= r && is_approximate(*r);
    }
  }
  step.results = static_cast<int32_t>(results.size());
  for (const Var& v : results) {
    values_.results.push_back(v);
    approximate_.push_back(approximate);
  }
  program_.steps.push_back(std::move(step));
  return true;
}

namespace {

struct Weight {
  Family family;
  int weight;
};
constexpr Weight kFamilies[] = {
    {add_unary, 16},   {add_binary, 18},       {add_ternary, 6}, {add_cast, 5},          {add_reduction, 12},
    {add_scan, 3},     {add_normalization, 5}, {add_view, 14},   {add_rearrangement, 9}, {add_joining, 6},
    {add_indexing, 6}, {add_scatter, 4},       {add_product, 2}, {add_factory, 2},       {add_random, 1},
};

Family random_family(Random& random) {
  int total = 0;
  for (const Weight& w : kFamilies) total += w.weight;
  int64_t at = random.integer(0, total - 1);
  for (const Weight& w : kFamilies) {
    if (at < w.weight) return w.family;
    at -= w.weight;
  }
  return add_unary;
}

bool writable(const Array& a) {
  return std::find(a.strides.begin(), a.strides.end(), 0) == a.strides.end();
}

void add_write_backs(Generator& g) {
  Program& program = g.program();
  for (size_t k = 0; k < program.inputs.size(); ++k) {
    const Array& a = program.inputs[k];
    if (!writable(a) || !g.random().one_in(2)) continue;
    const auto same = [&](const Var& v) { return v.dtype() == a.dtype && v.sizes() == meta_of(a).sizes; };
    if (const auto value = g.pick(kAny, false, same)) {
      program.write_backs.push_back({static_cast<int32_t>(k), *value});
    }
  }
}

}  // namespace

Program generate(uint64_t seed) {
  Generator g(seed);
  Random& random = g.random();
  for (int64_t k = random.integer(1, 3); k > 0; --k) g.input(g.random_dtype(kAny), g.random_sizes());
  const int64_t wanted = random.integer(1, 9);
  for (int64_t done = 0, tries = 0; done < wanted && tries < 200; ++tries) done += random_family(random)(g);
  Program& program = g.program();
  if (!program.steps.empty()) {
    int32_t last = Ref::kFirstResult - 1;
    for (const Step& s : program.steps) last += s.results;
    program.outputs.push_back({last});
  }
  for (int64_t k = random.of({0, 0, 1, 1, 2}); k > 0; --k) program.outputs.push_back(*g.pick(kAny));
  if (random.one_in(6)) add_write_backs(g);
  if (program.outputs.empty()) program.outputs.push_back(*g.pick(kAny));
  return g.take();
}

}  // namespace stax::fuzz
