// What shape operators share: inferring sizes, strides of views, index maps of reshapes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"
#include "symbolic/shape_env.h"

namespace stax::ops {

/// "[2, 3]".
std::string shape_text(const std::vector<Expr>& sizes);

/// Whether a size that the program gives is the -1 that leaves it open: asked only of sizes that may be
/// negative, as integer arguments may.
inline bool is_open(ShapeEnv& env, Expr size) {
  return size.is(-1) || (!size.is_constant() && env.surely(lt(size, 0)) && env.surely(eq(size, -1)));
}

/// Sizes with a single -1 replaced so that they hold `numel` elements; UserError when they cannot.
std::vector<Expr> infer_sizes(ShapeEnv& env, std::vector<Expr> sizes, Expr numel, std::string_view op);

/// Strides with which `tensor` is seen as `sizes` (of as many elements) without a copy; nothing when it needs
/// one.
std::optional<std::vector<Expr>> view_strides(ShapeEnv& env, const graph::TensorMeta& tensor,
                                              const std::vector<Expr>& sizes);

/// Decisions of rules that have a scheme for every value: "maybe" is yes where only data decides.
inline bool maybe_empty(ShapeEnv& env, Expr count) {
  return env.decided(eq(count, 0)).value_or(true);
}
inline bool maybe_positive(ShapeEnv& env, Expr size) {
  return env.decided(gt(size, 0)).value_or(true);
}
inline Expr smaller(ShapeEnv& env, Expr a, Expr b) {
  const std::optional<bool> less = env.decided(lt(a, b));
  return less ? (*less ? a : b) : min(a, b);
}
inline Expr at_least_zero(ShapeEnv& env, Expr e) {
  const std::optional<bool> negative = env.decided(lt(e, 0));
  return negative ? (*negative ? Expr(0) : e) : max(e, 0);
}

/// `index`, which counts from the end of a dimension where it is negative, counted from the front.
Expr from_front(ShapeEnv& env, Expr index, Expr size);

/// Meta rule: a row-major result of the dtype, sizes and device of the first argument.
std::vector<graph::TensorMeta> same_meta(ShapeEnv& env, const graph::MetaArgs& args);

/// Index into a tensor of `from` sizes of the element at `index` of its reshape to `to` sizes.
std::vector<Expr> reshape_index(const std::vector<Expr>& from, const std::vector<Expr>& to,
                                const std::vector<Expr>& index);

}  // namespace stax::ops
