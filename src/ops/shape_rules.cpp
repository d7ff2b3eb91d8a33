#include "ops/shape_rules.h"

#include "lowering/lowering.h"
#include "support/check.h"

namespace stax::ops {

std::string shape_text(const std::vector<Expr>& sizes) {
  std::string text;
  for (const Expr e : sizes) text += (text.empty() ? "" : ", ") + e.str();
  return "[" + text + "]";
}

std::vector<Expr> infer_sizes(ShapeEnv& env, std::vector<Expr> sizes, Expr numel, std::string_view op) {
  std::optional<size_t> unknown;
  Expr known = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (is_open(env, sizes[d])) {
      STAX_CHECK(!unknown, "{}: only one size may be -1, got {}", op, shape_text(sizes));
      unknown = d;
      continue;
    }
    STAX_CHECK(env.expect(ge(sizes[d], 0)), "{}: size {} is negative", op, sizes[d].str());
    known = known * sizes[d];
  }
  if (!unknown) {
    STAX_CHECK(env.expect(eq(known, numel)), "{}: shape {} has {} elements, the tensor {}", op,
               shape_text(sizes), known.str(), numel.str());
    return sizes;
  }
  STAX_CHECK(!env.surely(eq(known, 0)), "{}: the size -1 in {} is ambiguous for a tensor of no elements", op,
             shape_text(sizes));
  STAX_CHECK(env.expect(eq(mod(numel, known), 0)), "{}: {} elements do not divide into shape {}", op,
             numel.str(), shape_text(sizes));
  sizes[*unknown] = floor_div(numel, known);
  return sizes;
}

namespace {

/// The expression with s for max(s, 1).
Expr substitute_max_one(Expr e) {
  if (e.kind() == ExprKind::max && e.args().size() == 2) {
    for (size_t k = 0; k < 2; ++k) {
      if (e.args()[k].is(1)) return e.args()[1 - k];
    }
  }
  if (e.kind() != ExprKind::add && e.kind() != ExprKind::mul) return e;
  std::vector<Expr> parts;
  for (const Expr part : e.args()) parts.push_back(substitute_max_one(part));
  return e.kind() == ExprKind::add ? sum(parts) : product(parts);
}

}  // namespace

// Walks both shapes from the right: each run of input dims that lie densely behind one another is cut into
// output dims.
std::optional<std::vector<Expr>> view_strides(ShapeEnv& env, const graph::TensorMeta& tensor,
                                              const std::vector<Expr>& sizes) {
  if (tensor.sizes == sizes) return tensor.strides;
  if (env.surely(eq(tensor.numel(), 0))) return graph::contiguous_strides(sizes);
  if (tensor.sizes.empty()) return std::vector<Expr>(sizes.size(), Expr(1));
  std::vector<Expr> strides(sizes.size());
  auto out = static_cast<int64_t>(sizes.size()) - 1;
  Expr run_stride = tensor.strides.back(), run = 1, filled = 1;
  // Of sizes that only data determines: those of dense strides count empty dimensions as 1, which makes no
  // difference where there are elements; and what is not provably filled is not.
  const auto without_empty = [](Expr e) { return substitute_max_one(e); };
  const auto follows = [&](int64_t in, Expr stride) {
    return env.surely(eq(tensor.strides[in - 1], stride)) ||
           without_empty(tensor.strides[in - 1]) == without_empty(stride);
  };
  const auto is_short = [&](Expr filled_now, Expr wanted) {
    const std::optional<bool> answer = env.decided(lt(filled_now, wanted));
    return answer ? *answer : filled_now != wanted;
  };
  for (auto in = static_cast<int64_t>(tensor.sizes.size()) - 1; in >= 0; --in) {
    run = run * tensor.sizes[in];
    const bool ends = in == 0 || (!env.surely(eq(tensor.sizes[in - 1], 1)) && !follows(in, run * run_stride));
    if (!ends) continue;
    while (out >= 0 && (is_short(filled, run) || env.surely(eq(sizes[out], 1)))) {
      strides[out] = filled * run_stride;
      filled = filled * sizes[out];
      --out;
    }
    if (filled != run && !env.surely(eq(filled, run))) return std::nullopt;
    if (in > 0) {
      run_stride = tensor.strides[in - 1];
      run = 1;
      filled = 1;
    }
  }
  return out < 0 ? std::optional(strides) : std::nullopt;
}

Expr from_front(ShapeEnv& env, Expr index, Expr size) {
  const std::optional<bool> negative = env.decided(lt(index, 0));
  if (negative) return *negative ? index + size : index;
  return index + size * min(max(-index, 0), 1);
}

std::vector<graph::TensorMeta> same_meta(ShapeEnv&, const graph::MetaArgs& args) {
  const graph::TensorMeta& x = args.tensor(0);
  return {graph::dense(x.dtype, x.sizes, x.device)};
}

std::vector<Expr> reshape_index(const std::vector<Expr>& from, const std::vector<Expr>& to,
                                const std::vector<Expr>& index) {
  std::vector<Expr> at(from.size(), Expr(0));
  // Of nothing there is no element to find, and no size to divide by.
  if (std::ranges::any_of(from, [](Expr size) { return size.is(0); })) return at;
  // Trailing dims that agree keep their own index: no division is needed for them.
  size_t f = from.size(), t = to.size();
  while (f > 0 && t > 0 && from[f - 1] == to[t - 1]) {
    --f;
    --t;
    at[f] = index[t];
  }
  size_t lead = 0;
  while (lead < f && lead < t && from[lead] == to[lead]) {
    at[lead] = index[lead];
    ++lead;
  }
  Expr flat = 0;
  for (size_t k = lead; k < t; ++k) flat = flat * to[k] + index[k];
  Expr step = 1;
  for (size_t k = f; k-- > lead;) {
    const Expr rest = floor_div(flat, step);
    at[k] = k == lead ? rest : mod(rest, from[k]);
    if (from[k].is(1)) at[k] = Expr(0);
    step = step * from[k];
  }
  return at;
}

}  // namespace stax::ops
