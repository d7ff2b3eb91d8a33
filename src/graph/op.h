// What a row of the op table is. One row is one operator (one overload); everything the compiler knows of the
// operator stands in it, as functions over builders that other layers define.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/meta.h"
#include "graph/schema.h"

namespace stax {
class ShapeEnv;
namespace lowering {
class Lowering;
class Lazy;
struct V;
struct PointwiseArgs;
}  // namespace lowering
}  // namespace stax

namespace stax::graph {

class Builder;
class Var;

/// How an operator reaches the loops.
enum class OpClass : uint8_t {
  pointwise,   // dtype rule and scalar body; shape by broadcasting
  view,        // shares storage: meta rule and index map
  composite,   // replaced by its decomposition while capturing: no node of its own (square, T, mse_loss, ...)
  decomposed,  // a node of its own, replaced by the pass `decompose` (softmax, layer_norm, ...)
  lowered,     // meta rule and lowering (reductions, cat, gather, ...)
  external,    // meta rule and a function of src/kernels of the same name (sort, mm, conv2d, ...)
  dynamic,     // external, with result sizes that only data determines (nonzero, unique, ...)
};

/// The dtype in which a pointwise body computes, and that of its result.
enum class DTypeRule : uint8_t {
  promote,        // both are the promoted dtype of all tensors and numbers
  promote_float,  // as promote, but integers and bool become float32
  compare,        // computes promoted but holds every integer operand, result bool
  bound,          // result promoted; computes in a type that holds every integer operand
  self,           // both are the first tensor's dtype
  promote_tail,   // as promote, but the first argument (a condition) keeps its own dtype
  argument,       // computes in self's dtype; the result is the `dtype` argument, if given
};

using MetaArgs = Bound<TensorMeta>;
using LazyArgs = Bound<lowering::Lazy>;
using VarArgs = Bound<Var>;

using MetaRule = std::vector<TensorMeta> (*)(ShapeEnv& env, const MetaArgs& args);
using PointwiseBody = lowering::V (*)(const lowering::PointwiseArgs& args);
using LowerRule = std::vector<lowering::Lazy> (*)(lowering::Lowering& lowering, const LazyArgs& args);
using DecomposeRule = std::vector<Var> (*)(Builder& builder, const VarArgs& args);
/// For a view: the index into the input of the element at `index` of the result; `result` is the result's
/// meta.
using IndexMap = std::vector<Expr> (*)(ShapeEnv& env, const MetaArgs& args, const TensorMeta& result,
                                       const std::vector<Expr>& index);
/// For a view: the value of the input after `source` (of the view's shape) was written through the view.
using ScatterRule = Var (*)(Builder& builder, const VarArgs& args, const Var& source);

/// Reverse mode: the gradients of the tensors among the arguments, in order, from those of the results; unset
/// where there is none.
using DerivativeRule = std::vector<Var> (*)(Builder& builder, const VarArgs& args,
                                            const std::vector<Var>& results,
                                            const std::vector<Var>& gradients);

/// For an external operator: the strides in which its function reads its first argument, and writes its
/// results, fastest; empty where it does not matter. Only memory is laid out so: the metas of values stay.
using LayoutRule = std::vector<Expr> (*)(const TensorMeta& tensor);

/// kData: gives sizes their values, so it is kept where nothing else uses its results.
enum Effects : uint8_t { kPure = 0, kRandom = 1, kData = 2 };

/// Which operators a library of matrix products does on a GPU. The first two arguments are the factors.
enum class ProductKind : uint8_t {
  none,
  plain,   // the product of matrices, or of batches of them
  joined,  // with what follows it: a bias and an activation, the third and the fourth argument
};

struct Op {
  std::string_view schema_text;
  OpClass op_class = OpClass::pointwise;
  DTypeRule dtype_rule = DTypeRule::promote;
  PointwiseBody body = nullptr;   // pointwise
  MetaRule meta = nullptr;        // view, lowered, external
  IndexMap index_map = nullptr;   // view
  ScatterRule scatter = nullptr;  // view
  LowerRule lower = nullptr;  // lowered; external: instead of the function, for a GPU; nothing: the function
  DecomposeRule decompose = nullptr;  // composite, decomposed
  LayoutRule layout = nullptr;        // external
  DerivativeRule derivative = nullptr;
  uint8_t effects = kPure;
  bool in_place_variant = false;  // a method `name_` exists: the operator, then copy_ into self

  ProductKind product = ProductKind::none;
  bool internal = false;  // a part of other rows' decompositions: no public function or method

  Schema schema;  // parsed from schema_text when the table is built
};

// Rows are written with these: one line or a few each.
inline Op pointwise(std::string_view schema, DTypeRule rule, PointwiseBody body) {
  return {.schema_text = schema, .op_class = OpClass::pointwise, .dtype_rule = rule, .body = body};
}
inline Op view(std::string_view schema, MetaRule meta, IndexMap index_map, ScatterRule scatter) {
  return {.schema_text = schema,
          .op_class = OpClass::view,
          .meta = meta,
          .index_map = index_map,
          .scatter = scatter};
}
inline Op composite(std::string_view schema, DecomposeRule rule) {
  return {.schema_text = schema, .op_class = OpClass::composite, .decompose = rule};
}
inline Op decomposed(std::string_view schema, DecomposeRule rule) {
  return {.schema_text = schema, .op_class = OpClass::decomposed, .decompose = rule};
}
inline Op lowered(std::string_view schema, MetaRule meta, LowerRule lower) {
  return {.schema_text = schema, .op_class = OpClass::lowered, .meta = meta, .lower = lower};
}
inline Op external(std::string_view schema, MetaRule meta, LayoutRule layout = nullptr) {
  return {.schema_text = schema, .op_class = OpClass::external, .meta = meta, .layout = layout};
}
inline Op dynamic(std::string_view schema, MetaRule meta) {
  return {.schema_text = schema, .op_class = OpClass::dynamic, .meta = meta, .effects = kData};
}
/// Adds the in-place variant `name_`.
inline Op in_place(Op op) {
  op.in_place_variant = true;
  return op;
}

/// Keeps the row out of the public interface.
inline Op internal(Op op) {
  op.internal = true;
  return op;
}

/// All operators, by name. Filled once by src/ops (ops::table()).
class OpTable {
 public:
  explicit OpTable(std::vector<Op> rows);
  OpTable(const OpTable&) = delete;
  /// "add.Tensor"; null when there is none.
  const Op* find(std::string_view full_name) const;
  /// find(), or an internal error.
  const Op& at(std::string_view full_name) const;
  /// Overloads of a name in the order of their rows.
  const std::vector<const Op*>& overloads(std::string_view name) const;
  const std::vector<Op>& rows() const { return rows_; }

 private:
  std::vector<Op> rows_;
  std::unordered_map<std::string, const Op*> by_name_;
  std::unordered_map<std::string, std::vector<const Op*>> overloads_;
};

/// dtype of an operation on these arguments by PyTorch's rules: tensors with dimensions decide before
/// zero-dim tensors, which decide before numbers; a lower class only counts where its category (bool,
/// integer, float) is higher.
template <class T>
DType result_type(std::span<const Argument<T>> args);
DType promote_types(DType a, DType b);

/// Shape that `shapes` broadcast to; UserError naming the shapes and dims when they do not.
std::vector<Expr> broadcast_shapes(ShapeEnv& env, const std::vector<std::vector<Expr>>& shapes,
                                   std::string_view op);

/// Strides of a fresh result of a pointwise operation: operands that agree in stride order keep it, otherwise
/// row-major.
std::vector<Expr> pointwise_strides(ShapeEnv& env, const std::vector<const TensorMeta*>& operands,
                                    const std::vector<Expr>& sizes);

/// The dtypes of a pointwise call: what its body computes in, and its result.
struct PointwiseDTypes {
  DType compute, result;
};
PointwiseDTypes pointwise_dtypes(const Op& op, const MetaArgs& args);

/// The device that tensors among the arguments lie on; nothing where there are none. Zero-dim CPU tensors go
/// with any device. UserError naming both where tensors lie on two.
std::optional<Device> common_device(std::string_view op, std::span<const Argument<TensorMeta>> args);

/// Metas of the operator's results, on the device of its arguments: the row's rule, the pointwise rule, or
/// what its decomposition gives.
std::vector<TensorMeta> infer_meta(const OpTable& table, const Op& op, ShapeEnv& env,
                                   std::span<const Argument<TensorMeta>> args);

/// Dimension `dim` counted from the front; UserError naming the operator when it is out of [-rank, rank).
int64_t wrap_dim(int64_t dim, int64_t rank, std::string_view op);

}  // namespace stax::graph
