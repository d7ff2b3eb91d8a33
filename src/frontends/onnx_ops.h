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

/// What a kernel's extent, a stride, a pad or the like may be at most: products of two do not overflow.
inline constexpr int64_t kLargestCount = (int64_t{1} << 31) - 1;

/// One node with the tensors that go in.
class NodeCall {
 public:
  NodeCall(const Node& node, int64_t opset, std::vector<std::optional<Tensor>> inputs)
      : node_(node), opset_(opset), inputs_(std::move(inputs)) {}

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool has(size_t input) const { return input < inputs_.size() && inputs_[input].has_value(); }
  /// The input; UserError naming the node when it is left out.
  const Tensor& in(size_t input) const;
  /// All inputs; none may be left out.
  std::vector<Tensor> all() const;
  /// The numbers of an input that says how to compute: axes, sizes, bounds. They have to be known when the
  /// node is met, as constants and sizes are.
  Ints ints(size_t input) const;
  std::vector<double> numbers(size_t input) const;
  double number(size_t input, double otherwise) const;
  /// Integers that older versions have as an attribute and newer ones as an input; nothing when neither is
  /// given.
  std::optional<Ints> ints(std::string_view attribute, size_t input) const;

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
  std::vector<std::optional<Tensor>> inputs_;
};

using Function = std::vector<Tensor> (*)(const NodeCall& call);

struct OpRow {
  std::string_view name;
  int64_t since;  ///< first version of the standard that this row is right for
  Function run;
  bool only_sizes = false;  ///< needs nothing of its inputs but their sizes and dtypes, which are known
  bool random = false;      ///< may not be computed ahead
};

/// The row for an operator of the standard's own domain in that version; null when there is none.
const OpRow* find_row(std::string_view op_type, int64_t opset);

// The families of rows.
std::span<const OpRow> math_rows();
std::span<const OpRow> shape_rows();
std::span<const OpRow> index_rows();
std::span<const OpRow> reduction_rows();
std::span<const OpRow> network_rows();

// For the functions behind rows.

/// An operator of Stax with one result, by name.
Tensor op(std::string_view name, capture::Arguments arguments, Named named = {});
/// With several results.
std::vector<Tensor> op_all(std::string_view name, capture::Arguments arguments, Named named = {});
/// A list of integers as an argument.
Argument<Tensor> list(const Ints& values);
Argument<Tensor> list(const std::vector<Tensor>& values);
/// The axis counted from the front; UserError when it is out of range.
int64_t axis_of(const NodeCall& call, int64_t axis, int64_t rank);
/// first, first + 1, ..., last - 1.
Ints range(int64_t first, int64_t last);
inline int64_t size(const Tensor& tensor, int64_t dim) {
  return tensor.size(dim);
}
/// ONNX's number of an element type as Stax's dtype.
DType element_type(const NodeCall& call, int64_t number);
/// A small tensor of integers that are known now.
Tensor constant(const Ints& values, const Ints& shape, DType dtype = DType::int64);
/// A tensor of one value: an expanded view.
Tensor filled(const Ints& shape, const Scalar& value, DType dtype);
/// Indices that count from the end where they are negative, as positions.
Tensor wrap_indices(const Tensor& indices, int64_t length);

}  // namespace stax::onnx::ops
