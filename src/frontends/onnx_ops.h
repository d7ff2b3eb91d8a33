// What ONNX's operators mean: a row for each, and what the functions behind the rows are written with.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/dispatch.h"
#include "frontends/onnx_model.h"
#include "stax/tensor.h"

namespace stax::onnx::ops {

using Tensor = stax::Tensor;  // not the constant of a model
using Named = std::vector<std::pair<std::string, Argument<Tensor>>>;
using Ints = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

/// What a kernel's extent, a stride, a pad or the like may be at most: products of two do not overflow.
inline constexpr int64_t kLargestCount = (int64_t{1} << 31) - 1;

/// over / under, a number that is worked out of sizes. Only elements of floating dtypes have an `under`
/// other than 1.
struct SizeNumber {
  Expr over;
  int64_t under = 1;
};

/// A small tensor whose elements are worked out of sizes: what Shape gives, and what is computed from it. It
/// lies nowhere, and its elements may be symbolic.
struct SizeTensor {
  DType dtype = DType::int64;
  Ints shape;
  std::vector<SizeNumber> elements;  // row-major
};

/// What a name of the model stands for while the graph is walked.
struct Value {
  Tensor tensor;                            // undefined where `sizes` is set
  bool known = false;                       // depends on constants and plain sizes alone
  std::shared_ptr<const SizeTensor> sizes;  // symbolic elements

  explicit operator bool() const { return sizes != nullptr || tensor.defined(); }
};

/// One node with what goes in.
class NodeCall {
 public:
  /// An input that is left out is an empty value.
  NodeCall(const Node& node, int64_t opset, std::vector<Value> inputs)
      : node_(node), opset_(opset), inputs_(std::move(inputs)) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool has(size_t input) const { return input < inputs_.size() && inputs_[input]; }
  const std::vector<Value>& values() const { return inputs_; }
  /// The input; UserError naming the node when it is left out.
  const Tensor& in(size_t input) const;
  DType dtype(size_t input) const;
  /// All inputs; none may be left out.
  std::vector<Tensor> all() const;
  /// The numbers of an input that says how to compute: axes, sizes, bounds. They have to be known when the
  /// node is met, as constants and sizes are.
  Ints ints(size_t input) const;
  /// The same where they may be symbolic.
  Exprs exprs(size_t input) const;
  std::vector<double> numbers(size_t input) const;
  double number(size_t input, double otherwise) const;
  /// Integers that older versions have as an attribute and newer ones as an input; nothing when neither is
  /// given.
  std::optional<Ints> ints(std::string_view attribute, size_t input) const;
  std::optional<Exprs> exprs(std::string_view attribute, size_t input) const;

  int64_t integer(std::string_view attribute, int64_t otherwise) const {
    return node_.get_int(attribute, otherwise);
  }
  /// The attribute; UserError naming the node when it is not at least 1, or so large that arithmetic with
  /// sizes could overflow.
  int64_t positive(std::string_view attribute, int64_t otherwise) const;
  double real(std::string_view attribute, double otherwise) const {
    return node_.get_float(attribute, static_cast<float>(otherwise));
  }
  std::string text(std::string_view attribute, std::string otherwise) const {
    return node_.get_string(attribute, std::move(otherwise));
  }
  /// UserError: "Conv 'name': ...".
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const Node& node_;
  int64_t opset_;
  mutable std::vector<Value> inputs_;  // sizes get their tensor when one is asked for
};

using Function = std::vector<Tensor> (*)(const NodeCall& call);

struct OpRow {
  std::string_view name;
  int64_t since;  ///< first version of the standard that this row is right for
  Function run;
  bool random = false;  ///< may not be computed ahead
};

/// The row for an operator of the standard's own domain in that version; null when there is none.
const OpRow* find_row(std::string_view op_type, int64_t opset);

// The families of rows.
std::span<const OpRow> math_rows();
std::span<const OpRow> shape_rows();
std::span<const OpRow> index_rows();
std::span<const OpRow> reduction_rows();
std::span<const OpRow> network_rows();
std::span<const OpRow> resize_rows();

// For the functions behind rows.

/// An operator of Stax with one result, by name.
Tensor op(std::string_view name, capture::Arguments arguments, Named named = {});
/// With several results.
std::vector<Tensor> op_all(std::string_view name, capture::Arguments arguments, Named named = {});
/// A list of integers as an argument.
Argument<Tensor> list(const Ints& values);
inline Argument<Tensor> list(Exprs values) {
  return values;
}
Argument<Tensor> list(const std::vector<Tensor>& values);
/// The axis counted from the front; UserError when it is out of range.
int64_t axis_of(const NodeCall& call, int64_t axis, int64_t rank);
/// first, first + 1, ..., last - 1.
Ints range(int64_t first, int64_t last);
inline Expr size(const Tensor& tensor, int64_t dim) {
  return to_expr(tensor.size(dim));
}
Exprs shape_of(const Tensor& tensor);
/// The number that `value` has; where it is symbolic, what is traced holds for this number only.
inline int64_t fixed(Expr value) {
  return to_sym_int(value).value();
}
/// ONNX's number of an element type as Stax's dtype.
DType element_type(const NodeCall& call, int64_t number);
/// A small tensor of integers that are known now.
Tensor constant(const Ints& values, const Ints& shape, DType dtype = DType::int64);
/// A tensor of one value: an expanded view.
Tensor filled(const Exprs& shape, const Scalar& value, DType dtype);
/// Indices that count from the end where they are negative, as positions.
Tensor wrap_indices(const Tensor& indices, Expr length);

// Values of sizes (onnx_sizes.cpp).

/// The results of a node that works on sizes alone, as sizes; nothing where the node is none of those that
/// can, or where an input depends on data.
std::optional<std::vector<SizeTensor>> run_on_sizes(const OpRow& row, const NodeCall& call);
/// As a tensor: known where no element is symbolic.
Value value_of(SizeTensor sizes);
/// A tensor that holds the elements: traced where one is symbolic.
Tensor materialize(const SizeTensor& sizes);
/// Whether the only element of a condition holds. A guard where it is symbolic, a read where data decides.
bool decide(const NodeCall& call, size_t input);

}  // namespace stax::onnx::ops
