#include "graph/op.h"

#include "graph/builder.h"
#include "graph/graph.h"
#include "support/check.h"
#include "symbolic/shape_env.h"

namespace stax::graph {

OpTable::OpTable(std::vector<Op> rows) : rows_(std::move(rows)) {
  for (Op& op : rows_) {
    op.schema = parse_schema(op.schema_text);
    const bool fresh = by_name_.emplace(op.schema.full_name(), &op).second;
    STAX_ASSERT(fresh, "op table: two rows are named '{}'", op.schema.full_name());
    overloads_[op.schema.name].push_back(&op);
  }
}

const Op* OpTable::find(std::string_view full_name) const {
  const auto it = by_name_.find(std::string(full_name));
  return it == by_name_.end() ? nullptr : it->second;
}

const Op& OpTable::at(std::string_view full_name) const {
  const Op* op = find(full_name);
  STAX_ASSERT(op, "op table: there is no operator '{}'", full_name);
  return *op;
}

const std::vector<const Op*>& OpTable::overloads(std::string_view name) const {
  static const std::vector<const Op*> none;
  const auto it = overloads_.find(std::string(name));
  return it == overloads_.end() ? none : it->second;
}

int64_t wrap_dim(int64_t dim, int64_t rank, std::string_view op) {
  const int64_t limit = rank == 0 ? 1 : rank;  // a zero-dim tensor accepts 0 and -1
  STAX_CHECK(dim >= -limit && dim < limit, "{}: dimension {} is out of range, expected one of [{}, {}]", op,
             dim, -limit, limit - 1);
  return dim < 0 ? dim + limit : dim;
}

std::vector<Expr> broadcast_shapes(ShapeEnv& env, const std::vector<std::vector<Expr>>& shapes,
                                   std::string_view op) {
  size_t rank = 0;
  for (const auto& s : shapes) rank = std::max(rank, s.size());
  std::vector<Expr> out(rank, Expr(1));
  for (const auto& shape : shapes) {
    for (size_t k = 0; k < shape.size(); ++k) {
      const size_t at = rank - shape.size() + k;
      const Expr size = shape[k];
      if (size == out[at] || env.surely(eq(size, 1))) continue;
      if (env.surely(eq(out[at], 1))) {
        out[at] = size;
        continue;
      }
      STAX_CHECK(env.expect(eq(size, out[at])), "{}: shapes do not broadcast: {} against {} at dimension {}",
                 op, size.str(), out[at].str(), static_cast<int64_t>(at) - static_cast<int64_t>(rank));
      if (out[at].contains(SymbolKind::unbacked)) out[at] = size;  // equal, and maybe better known
    }
  }
  return out;
}

namespace {

// Dimensions from the outermost to the innermost by stride; nothing when strides are not those of a dense
// order.
std::vector<int> stride_order(ShapeEnv& env, const std::vector<Expr>& strides) {
  std::vector<int> order;
  for (size_t d = 0; d < strides.size(); ++d) {
    // Insertion keeps dims of equal stride in their own order.
    size_t at = order.size();
    while (at > 0 && env.surely(lt(strides[order[at - 1]], strides[d]))) --at;
    order.insert(order.begin() + static_cast<int64_t>(at), static_cast<int>(d));
  }
  return order;
}

bool is_row_major(const std::vector<int>& order) {
  for (size_t k = 0; k < order.size(); ++k) {
    if (order[k] != static_cast<int>(k)) return false;
  }
  return true;
}

}  // namespace

std::vector<Expr> pointwise_strides(ShapeEnv& env, const std::vector<const TensorMeta*>& operands,
                                    const std::vector<Expr>& sizes) {
  std::vector<int> agreed;
  for (const TensorMeta* operand : operands) {
    if (operand->sizes != sizes) continue;
    // Dims of size 1 and expanded dims say nothing about the order: the row-major position is theirs.
    std::vector<Expr> strides = operand->strides;
    const std::vector<Expr> dense_strides = contiguous_strides(sizes);
    if (strides == dense_strides) {
      agreed = {};
      return dense_strides;
    }
    bool expanded = false;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d].is(1)) strides[d] = dense_strides[d];
      expanded |= strides[d].is(0) && !sizes[d].is(1);
    }
    if (expanded) continue;
    std::vector<int> order = stride_order(env, strides);
    if (agreed.empty()) {
      agreed = std::move(order);
    } else if (agreed != order) {
      return dense_strides;
    }
  }
  if (agreed.empty() || is_row_major(agreed)) return contiguous_strides(sizes);
  std::vector<Expr> strides(sizes.size());
  Expr step = 1;
  for (size_t k = sizes.size(); k-- > 0;) {
    strides[agreed[k]] = step;
    step = step * max(sizes[agreed[k]], 1);
  }
  return strides;
}

namespace {

std::vector<TensorMeta> pointwise_meta(const Op& op, ShapeEnv& env, const MetaArgs& args) {
  std::vector<const TensorMeta*> tensors;
  std::vector<std::vector<Expr>> shapes;
  for (const auto& a : args.values()) {
    if (!a.is_tensor()) continue;
    tensors.push_back(&a.tensor());
    shapes.push_back(a.tensor().sizes);
  }
  STAX_CHECK(!tensors.empty(), "{}: expected at least one tensor, got numbers only", op.schema.name);
  TensorMeta out;
  out.sizes = broadcast_shapes(env, shapes, op.schema.name);
  out.strides = pointwise_strides(env, tensors, out.sizes);
  out.device = tensors[0]->device;
  out.dtype = pointwise_dtypes(op, args).result;
  return {out};
}

std::vector<TensorMeta> meta_by_decomposition(const OpTable& table, const Op& op, ShapeEnv& env,
                                              std::span<const Argument<TensorMeta>> args) {
  Graph scratch;
  Builder builder(table, env, scratch);
  if (const auto device = common_device(op.schema.name, args)) builder.set_device(*device);
  std::vector<VarArg> vars;
  for (const auto& a : args)
    vars.push_back(map_tensors<Var>(a, [&](const TensorMeta& m) { return builder.input(m); }));
  std::vector<TensorMeta> out;
  for (const Var& v : op.decompose(builder, VarArgs(op.schema, vars))) out.push_back(v.meta());
  return out;
}

}  // namespace

namespace {

bool holds(DType dtype, const Number& number) {
  if (dtype == DType::int64) return true;
  if (!number.integer.is_constant()) return false;
  const int64_t value = number.integer.value();
  if (dtype == DType::uint8) return value >= 0 && value <= UINT8_MAX;
  const int64_t end = int64_t{1} << (8 * itemsize(dtype) - 1);
  return value >= -end && value < end;
}

// Promotion leaves out the width of numbers and of zero-dim tensors, so an integer may lie outside the
// promoted type. This is the type that holds them all.
DType wide_enough(DType promoted, const std::vector<Argument<TensorMeta>>& operands) {
  if (is_floating_point(promoted) || promoted == DType::boolean) return promoted;
  DType wide = promoted;
  for (const auto& a : operands) {
    if (a.is_tensor()) wide = promote_types(wide, a.tensor().dtype);
  }
  for (const auto& a : operands) {
    if (a.is_number() && !holds(wide, a.number())) wide = DType::int64;
  }
  return wide;
}

}  // namespace

PointwiseDTypes pointwise_dtypes(const Op& op, const MetaArgs& args) {
  std::vector<Argument<TensorMeta>> operands;
  const size_t first = op.dtype_rule == DTypeRule::promote_tail ? 1 : 0;
  for (size_t i = first; i < args.size(); ++i) {
    const Param& param = op.schema.params[i];
    if (param.keyword_only) continue;
    if (param.type == ParamType::tensor || param.type == ParamType::scalar) operands.push_back(args[i]);
  }
  const auto first_tensor = [&] {
    for (const auto& a : args.values()) {
      if (a.is_tensor()) return a.tensor().dtype;
    }
    return DType::float32;
  };
  const DType promoted = result_type<TensorMeta>(operands);
  switch (op.dtype_rule) {
    case DTypeRule::promote:
    case DTypeRule::promote_tail:
      return {promoted, promoted};
    case DTypeRule::promote_float: {
      const DType f = is_floating_point(promoted) ? promoted : DType::float32;
      return {f, f};
    }
    case DTypeRule::compare:
      return {wide_enough(promoted, operands), DType::boolean};
    case DTypeRule::bound:
      return {wide_enough(promoted, operands), promoted};
    case DTypeRule::self:
      return {first_tensor(), first_tensor()};
    case DTypeRule::argument:
      return {first_tensor(), args["dtype"].is_none() ? first_tensor() : args["dtype"].dtype()};
  }
  return {promoted, promoted};
}

namespace {

std::vector<TensorMeta> unchecked_meta(const OpTable& table, const Op& op, ShapeEnv& env,
                                       std::span<const Argument<TensorMeta>> args) {
  const MetaArgs bound(op.schema, args);
  if (op.meta) return op.meta(env, bound);
  if (op.op_class == OpClass::pointwise) return pointwise_meta(op, env, bound);
  STAX_ASSERT(op.decompose, "op table: '{}' has neither meta rule nor decomposition", op.schema.full_name());
  return meta_by_decomposition(table, op, env, args);
}

}  // namespace

std::optional<Device> common_device(std::string_view op, std::span<const Argument<TensorMeta>> args) {
  const TensorMeta* first = nullptr;
  const auto visit = [&](const TensorMeta& meta) {
    const auto follows = [](const TensorMeta& m) { return m.sizes.empty() && m.device == kCPU; };
    if (first == nullptr || first->device == meta.device || follows(*first)) {
      if (first == nullptr || follows(*first)) first = &meta;
      return;
    }
    STAX_CHECK(follows(meta),
               "{}: expected all tensors on one device, got {} and {}; move one of them with to()", op,
               first->device.str(), meta.device.str());
  };
  for (const auto& a : args) {
    if (a.is_tensor()) visit(a.tensor());
    if (const auto* list = std::get_if<Argument<TensorMeta>::Tensors>(&a.value)) {
      for (const auto& meta : *list)
        if (meta) visit(*meta);
    }
  }
  return first == nullptr ? std::nullopt : std::optional<Device>(first->device);
}

std::vector<TensorMeta> infer_meta(const OpTable& table, const Op& op, ShapeEnv& env,
                                   std::span<const Argument<TensorMeta>> args) {
  const std::optional<Device> device = common_device(op.schema.name, args);
  std::vector<TensorMeta> metas = unchecked_meta(table, op, env, args);
  for (TensorMeta& m : metas) {
    if (device) m.device = *device;
    for (const Expr size : m.sizes) {
      STAX_CHECK(size.constant().value_or(0) >= 0, "{}: a result would have the negative size {}",
                 op.schema.name, size.str());
    }
  }
  return metas;
}

}  // namespace stax::graph
