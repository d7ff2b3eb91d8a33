// Families that move elements: views, rearrangements, joins, indexing, scattering; and factories.
#include <numeric>

#include "fuzz/generator_state.h"

namespace stax::fuzz {
namespace {

auto of_rank(int64_t low, int64_t high = 5) {
  return [=](const graph::Var& v) { return v.dim() >= low && v.dim() <= high; };
}
const auto has_elements = [](const graph::Var& v) { return v.dim() > 0 && !v.numel().is(0); };

std::vector<Expr> exprs(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

int64_t wrapped(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + rank : dim;
}

bool add_permute(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(2));
  if (!x) return false;
  std::vector<int64_t> order(static_cast<size_t>(g.var(*x).dim()));
  std::iota(order.begin(), order.end(), 0);
  for (size_t k = order.size(); k > 1; --k)
    std::swap(order[k - 1], order[static_cast<size_t>(g.random().integer(0, static_cast<int64_t>(k) - 1))]);
  return g.call("permute", {*x, exprs(order)});
}

bool add_slice(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(1));
  if (!x) return false;
  const int64_t rank = g.var(*x).dim(), dim = g.random_dim(rank);
  const int64_t size = g.sizes(*x)[static_cast<size_t>(wrapped(dim, rank))];
  const int64_t start = g.random().integer(-size, size), end = g.random().integer(-size, size + 2);
  return g.call("slice.Tensor", {*x, dim, start, end, g.random().of<int64_t>({1, 1, 1, 2, 3})});
}

bool add_select(Generator& g) {
  const auto x = g.pick(kAny, false, has_elements);
  if (!x) return false;
  const int64_t rank = g.var(*x).dim(), dim = g.random_dim(rank);
  const int64_t size = g.sizes(*x)[static_cast<size_t>(wrapped(dim, rank))];
  return g.call("select.int", {*x, dim, g.random().integer(-size, size - 1)});
}

bool add_expand(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(0, 4));
  if (!x) return false;
  std::vector<int64_t> sizes = g.sizes(*x);
  for (int64_t& s : sizes) {
    if (s == 1 && g.random().one_in(2)) s = g.random().of<int64_t>({2, 3, 8, 17});
  }
  if (g.random().one_in(2)) sizes.insert(sizes.begin(), g.random().of<int64_t>({1, 2, 5}));
  return g.call("expand", {*x, exprs(sizes)});
}

bool add_reshape(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(0));
  if (!x) return false;
  int64_t rest = g.var(*x).numel().value();
  std::vector<int64_t> sizes;
  while (rest > 1 && sizes.size() < 3) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= rest; ++d) {
      if (rest % d == 0) divisors.push_back(d);
    }
    sizes.push_back(g.random().of(divisors));
    rest /= sizes.back();
  }
  if (rest != 1 || sizes.empty()) sizes.push_back(rest);
  if (rest != 0 && g.random().one_in(4)) sizes[0] = -1;
  return g.call("reshape", {*x, exprs(sizes)});
}

bool add_diagonal(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(2));
  if (!x) return false;
  const int64_t rank = g.var(*x).dim(), first = g.random().integer(0, rank - 1);
  const int64_t second = (first + g.random().integer(1, rank - 1)) % rank;
  return g.call("diagonal", {*x, g.random().integer(-2, 2), first, second});
}

bool add_unsqueeze(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(0, 4));
  return x && g.call("unsqueeze", {*x, g.random().integer(0, g.var(*x).dim())});
}

bool add_squeeze(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(1));
  return x && g.call("squeeze", {*x});
}

bool add_unfold(Generator& g) {
  const auto x = g.pick(kAny, false, has_elements);
  if (!x) return false;
  const int64_t rank = g.var(*x).dim(), dim = g.random_dim(rank);
  const int64_t size = g.sizes(*x)[static_cast<size_t>(wrapped(dim, rank))];
  return g.call("unfold", {*x, dim, g.random().integer(1, size), g.random().integer(1, 3)});
}

bool add_flip(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(1));
  return x && g.call("flip", {*x, g.random_dims(g.var(*x).dim())});
}

bool add_roll(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(1));
  if (!x) return false;
  return g.call("roll", {*x, std::vector<Expr>{g.random().integer(-5, 5)},
                         std::vector<Expr>{g.random_dim(g.var(*x).dim())}});
}

bool add_triangle(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(2));
  return x && g.call(g.random().of({"tril", "triu"}), {*x, g.random().integer(-3, 3)});
}

bool add_repeat(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(0, 3));
  if (!x) return false;
  std::vector<int64_t> times(static_cast<size_t>(g.var(*x).dim()) + (g.random().one_in(3) ? 1 : 0));
  for (int64_t& t : times) t = g.random().of<int64_t>({1, 1, 2, 3});
  return g.call("repeat", {*x, exprs(times)});
}

bool add_pad(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kAny, false, has_elements);
  if (!x) return false;
  std::vector<int64_t> pad;
  for (int64_t k = random.integer(1, g.var(*x).dim()); k > 0; --k) {
    pad.push_back(random.integer(-1, 3));
    pad.push_back(random.integer(-1, 3));
  }
  return g.call("constant_pad_nd", {*x, exprs(pad), g.number(kIntegers)});
}

bool add_pad_by_index(Generator& g) {
  const auto x = g.pick(kAny, false,
                        [](const graph::Var& v) { return v.dim() >= 2 && v.dim() <= 4 && !v.numel().is(0); });
  if (!x) return false;
  const std::vector<Expr> pad = {g.random().integer(0, 2), g.random().integer(0, 2)};
  return g.call("pad", {*x, pad, g.random().of({"reflect", "replicate", "circular"})});
}

bool add_diag_embed(Generator& g) {
  const auto x = g.pick(kAny, false, of_rank(1, 2));
  return x && g.call("diag_embed", {*x, g.random().integer(-1, 2)});
}

bool add_slice_scatter(Generator& g) {
  const auto x = g.pick(kAny, false, has_elements);
  if (!x) return false;
  const int64_t rank = g.var(*x).dim(), dim = g.random().integer(0, rank - 1);
  std::vector<int64_t> sizes = g.sizes(*x);
  int64_t& size = sizes[static_cast<size_t>(dim)];
  const int64_t start = g.random().integer(0, size - 1), end = g.random().integer(start, size);
  const int64_t step = g.random().integer(1, 3);
  size = (end - start + step - 1) / step;
  return g.call("slice_scatter", {*x, g.input(g.dtype(*x), sizes), dim, start, end, step});
}

}  // namespace

bool add_view(Generator& g) {
  return g.random().of<Family>({add_permute, add_permute, add_slice, add_slice, add_select, add_expand,
                                add_reshape, add_reshape, add_diagonal, add_unsqueeze, add_squeeze,
                                add_unfold})(g);
}

bool add_rearrangement(Generator& g) {
  return g.random().of<Family>({add_flip, add_roll, add_triangle, add_repeat, add_pad, add_pad_by_index,
                                add_diag_embed, add_slice_scatter})(g);
}

bool add_joining(Generator& g) {
  Random& random = g.random();
  const bool stack = random.one_in(3);
  const auto first = g.pick(kAny, false, of_rank(stack ? 0 : 1, 4));
  if (!first) return false;
  const int64_t rank = g.var(*first).dim();
  const int64_t dim = stack ? random.integer(0, rank) : random.integer(0, rank - 1);
  RefArg::Tensors parts = {*first};
  for (int64_t k = random.integer(0, 2); k > 0; --k) {
    std::vector<int64_t> sizes = g.sizes(*first);
    if (!stack) sizes[static_cast<size_t>(dim)] = random.integer(0, 20);
    if (random.one_in(3)) {
      parts.push_back(*first);
      continue;
    }
    const auto like = [&](const graph::Var& v) {
      if (v.dim() != rank) return false;
      for (int64_t d = 0; d < rank; ++d) {
        if ((stack || d != dim) && v.sizes()[static_cast<size_t>(d)] != Expr(sizes[static_cast<size_t>(d)]))
          return false;
      }
      return true;
    };
    const auto found = g.pick(kAny, false, like);
    const DType dtype = random.one_in(2) ? g.dtype(*first) : g.random_dtype(kAny);
    parts.push_back(found && random.one_in(2) ? *found : g.input(dtype, sizes));
  }
  return g.call(stack ? "stack" : "cat", {std::move(parts), dim});
}

bool add_indexing(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kAny, false, has_elements);
  if (!x) return false;
  const int64_t rank = g.var(*x).dim(), dim = g.random_dim(rank);
  std::vector<int64_t> sizes = g.sizes(*x);
  int64_t& size = sizes[static_cast<size_t>(wrapped(dim, rank))];
  const int64_t limit = size;
  const bool bad = random.one_in(60);
  if (bad) g.program().has_bad_index = true;
  const auto spoil = [&](Ref indices) {
    if (!bad) return;
    Array& a = g.program().inputs[static_cast<size_t>(indices.id)];
    const int64_t value = limit + random.integer(0, 3);
    std::memcpy(a.data.data(), &value, sizeof value);
  };
  switch (random.integer(0, 3)) {
    case 0: {
      const Ref index = g.indices({random.integer(bad ? 1 : 0, 20)}, 0, limit);
      spoil(index);
      return g.call("index_select", {*x, dim, index});
    }
    case 1: {
      for (int64_t& s : sizes) s = random.integer(1, s);
      size = random.integer(1, 20);
      const Ref index = g.indices(sizes, 0, limit);
      spoil(index);
      return g.call("gather", {*x, dim, index});
    }
    case 2: {
      if (bad) g.program().has_bad_index = false;
      const Ref index = g.indices({random.integer(1, 9), random.integer(1, 9)}, 0, sizes[0]);
      return rank == 2 && g.call("embedding", {*x, index});
    }
    default: {
      if (bad) g.program().has_bad_index = false;
      const int64_t count = g.var(*x).numel().value();
      return g.call("take", {*x, g.indices({random.integer(0, 30)}, -count, count)});
    }
  }
}

bool add_scatter(Generator& g) {
  Random& random = g.random();
  const auto x = g.pick(kNumbers, false, has_elements);
  if (!x) return false;
  const int64_t rank = g.var(*x).dim(), dim = random.integer(0, rank - 1);
  std::vector<int64_t> sizes = g.sizes(*x);
  int64_t& size = sizes[static_cast<size_t>(dim)];
  const int64_t limit = size;
  size = random.integer(1, 40);
  const Traits order = {.approximate = is_floating_point(g.dtype(*x)), .combines = false};
  if (random.one_in(2)) {
    const Ref source = g.input(g.dtype(*x), sizes);
    return g.call("index_add", {*x, dim, g.indices({size}, 0, limit), source}, order);
  }
  const Ref source = g.input(g.dtype(*x), sizes);
  for (int64_t& s : sizes) s = random.integer(1, s);
  // The rows of the table leave no index out of range beside `dim`.
  return g.call("scatter_add", {*x, dim, g.indices(sizes, 0, limit), source}, order);
}

bool add_factory(Generator& g) {
  Random& random = g.random();
  switch (random.integer(0, 2)) {
    case 0:
      return g.call("full", {exprs(g.random_sizes()), g.number(kNumbers), g.random_dtype(kNumbers)});
    case 1:
      return g.call("arange.start_step",
                    {Number::of(random.integer(-3, 3)), Number::of(random.integer(4, 70)),
                     Number::of(random.integer(1, 4)), g.random_dtype(kNumbers)});
    default:
      return g.call("eye", {random.integer(1, 20), random.integer(1, 20), g.random_dtype(kNumbers)});
  }
}

bool add_random(Generator& g) {
  g.program().has_random_numbers = true;
  return g.call("rand", {exprs(g.random_sizes()), g.random().of({DType::float32, DType::float64})});
}

}  // namespace stax::fuzz
