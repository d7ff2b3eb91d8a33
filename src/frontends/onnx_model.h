// An ONNX model as plain structs: what the file says, checked, before any operator is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stax/dtype.h"
#include "tensor/files/array_view.h"

namespace stax::onnx {

/// A constant of the model. Its bytes stay where they were read: in the model, or in the mapped external
/// file.
struct Tensor {
  std::string name;
  std::string type;            ///< the element type as ONNX spells it: "FLOAT", "UINT16", "STRING", ...
  std::optional<DType> dtype;  ///< empty for element types that Stax does not have
  std::vector<int64_t> sizes;
  files::ArrayView data;  ///< filled when dtype is

  /// The data; throws UserError naming the tensor when its element type is one that Stax does not have.
  const files::ArrayView& view() const;
};

struct Graph;

/// An attribute's value is of a kind that only few operators use and Stax does not read.
struct UnreadValue {
  std::string kind;
};

struct Attribute {
  using Value = std::variant<float, int64_t, std::string, Tensor, std::shared_ptr<const Graph>,
                             std::vector<float>, std::vector<int64_t>, std::vector<std::string>,
                             std::vector<Tensor>, std::vector<std::shared_ptr<const Graph>>, UnreadValue>;
  std::string name;
  Value value;
  std::string reference;  ///< in a function's body: the function's attribute that gives the value; else empty
};

struct Node {
  std::string name;
  std::string op_type;
  std::string domain;  ///< "" is the standard's own ("ai.onnx")
  std::string overload;
  std::vector<std::string> inputs;  ///< "" where an optional input is left out
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;

  /// The attribute of that name, or null.
  const Attribute* find(std::string_view attribute) const;
  /// The attribute's value, or the given one when the node has no such attribute. Throws UserError naming
  /// node and attribute when it is of another kind.
  int64_t get_int(std::string_view attribute, int64_t otherwise) const;
  float get_float(std::string_view attribute, float otherwise) const;
  std::string get_string(std::string_view attribute, std::string otherwise) const;
  std::vector<int64_t> get_ints(std::string_view attribute, std::vector<int64_t> otherwise) const;
  /// "Conv 'name'", for messages.
  std::string describe() const;
};

/// One dimension of a declared shape: a number, a name, or neither.
struct Dim {
  std::optional<int64_t> size;
  std::string symbol;
};

struct ValueInfo {
  std::string name;
  std::string
      type;  ///< "FLOAT", ..., or "sequence", "map", "optional", "sparse tensor", "opaque", "" (not declared)
  std::optional<DType> dtype;            ///< empty for what Stax does not have
  std::optional<std::vector<Dim>> dims;  ///< empty when even the rank is unknown
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;        ///< every value is made before it is used
  std::vector<ValueInfo> inputs;  ///< may repeat initializers, which are then their defaults
  std::vector<ValueInfo> outputs;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> value_info;
};

/// An operator that the model itself defines.
struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;        ///< must be given by the calling node
  std::vector<Attribute> default_attributes;  ///< may be
  std::vector<Node> nodes;
  std::map<std::string, int64_t> opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  ///< domain to version; "" is the standard's own
  std::map<std::string, std::string> metadata;
  Graph graph;
  std::vector<Function> functions;
};

/// Reads a model and the files of its external data, which must lie in the model's folder or below it.
/// Throws UserError naming the file for malformed, truncated or inconsistent models: tensors whose bytes do
/// not fit their sizes, values that are used before they are made or made twice, sparse tensors, models above
/// protobuf's 2 GB.
Model load_model(const std::string& path);

/// The same from memory. `what` names the model in errors, external data is looked for in `folder`.
Model parse_model(std::span<const std::byte> bytes, const std::string& what, const std::string& folder);

}  // namespace stax::onnx
