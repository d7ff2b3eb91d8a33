// Attention as a formula over matrix products.
#include <cmath>
#include <limits>

#include "ops/loop_vocabulary.h"
#include "ops/matmul_rules.h"
#include "ops/shape_rules.h"
#include "support/check.h"

namespace stax::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Keeps element (i, j) of the last two dimensions where j <= i, -inf elsewhere.
std::vector<TensorMeta> causal_meta(ShapeEnv&, const MetaArgs& args) {
  return {graph::dense(args.tensor(0).dtype, args.tensor(0).sizes, args.tensor(0).device)};
}

std::vector<lowering::Lazy> lower_causal(lowering::Lowering& lowering, const graph::LazyArgs& args) {
  const lowering::Lazy& x = args.tensor(0);
  return {lowering.pointwise(x.dtype, x.sizes, [&](const lowering::Index& i) {
    const size_t rank = i.size();
    const lowering::V keep =
        lowering::le(lowering.index_value(i[rank - 1]), lowering.index_value(i[rank - 2]));
    return where(keep, lowering.load(x, i), lowering.constant(x.dtype, -kInfinity));
  })};
}

// Heads of x repeated so that there are `heads` of them (dimension -3).
Var repeat_heads(Builder& b, const Var& x, Expr heads) {
  if (b.env().decide(eq(x.size(-3), heads))) return x;
  STAX_CHECK(b.env().expect(eq(mod(heads, x.size(-3)), 0)),
             "scaled_dot_product_attention: {} query heads are no multiple of {} key or value heads",
             heads.str(), x.size(-3).str());
  Exprs sizes = x.sizes();
  sizes.insert(sizes.end() - 2, floor_div(heads, x.size(-3)));
  const Var repeated = b.call("expand", {b.call("unsqueeze", {x, -3}), sizes});
  sizes.erase(sizes.end() - 3);
  sizes[sizes.size() - 3] = heads;
  return b.call("reshape", {repeated, sizes});
}

Var masked_scores(Builder& b, const Var& scores, const VarArgs& a) {
  if (a["is_causal"].boolean()) {
    STAX_CHECK(a["attn_mask"].is_none(),
               "scaled_dot_product_attention: give attn_mask or is_causal, not both");
    return b.call("causal_mask_formula", {scores});
  }
  if (a["attn_mask"].is_none()) return scores;
  const Var mask = a["attn_mask"].tensor();
  if (mask.dtype() == DType::boolean) return b.call("where.self", {mask, scores, num(-kInfinity)});
  STAX_CHECK(is_floating_point(mask.dtype()),
             "scaled_dot_product_attention: expected a mask of bool or a floating dtype, got {}",
             name(mask.dtype()));
  return scores + convert_to(b, mask, scores.dtype());
}

Vars attention(Builder& b, const VarArgs& a) {
  const Var query = a.tensor(0);
  Var key = a.tensor(1), value = a.tensor(2);
  for (const Var& v : {query, key, value}) {
    STAX_CHECK(v.dim() >= 2, "scaled_dot_product_attention: expected at least 2 dimensions, got {}", v.dim());
    STAX_CHECK(is_floating_point(v.dtype()) && v.dtype() == query.dtype(),
               "scaled_dot_product_attention: expected operands of one floating dtype, got {} and {}",
               name(query.dtype()), name(v.dtype()));
  }
  if (a["enable_gqa"].boolean()) {
    STAX_CHECK(query.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3,
               "scaled_dot_product_attention: enable_gqa needs a dimension of heads");
    key = repeat_heads(b, key, query.size(-3));
    value = repeat_heads(b, value, query.size(-3));
  }
  const Number scale = a["scale"].is_none()
                           ? num(1 / std::sqrt(static_cast<double>(b.env().specialize(query.size(-1)))))
                           : num(a["scale"].floating());
  // The query is scaled rather than the scores, of which there are more; the half types would round it.
  const bool half = is_half(query.dtype());
  const Var transposed = b.call("transpose.int", {key, -2, -1});
  Var scores = matrix_product(b, half ? query : query * scale, transposed, true);
  if (half) scores = scores * scale;
  const Var masked = masked_scores(b, scores, a);
  Var weights = b.call("_safe_softmax", {masked, -1});
  if (a["dropout_p"].floating() > 0) weights = b.call("dropout", {weights, a["dropout_p"].floating(), true});
  // Weights of the half types stay float32, as scores are.
  return {convert_to(b, matrix_product(b, weights, convert_to(b, value, weights.dtype())), query.dtype())};
}

}  // namespace

Ops attention_rows() {
  return {
      graph::internal(lowered("causal_mask_formula(Tensor self) -> Tensor", causal_meta, lower_causal)),
      composite(
          "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
          "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
          attention),
  };
}

}  // namespace stax::ops
