// Operator schemas: "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)
// -> Tensor".
//
// The notation is that of libtorch's operator signatures. A name may be followed by an overload name. Types:
// Tensor, Tensor?, Tensor[], Tensor?[], Scalar, Scalar?, int, int?, int[], int[N] (a single int is repeated N
// times; int[1] makes a list of it), int[]?, float, float?, float[]?, bool, bool?, str, str?, ScalarType,
// ScalarType?. Parameters after `*` are keyword-only. Sizes may be symbolic wherever an int stands.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/argument.h"

namespace stax::graph {

enum class ParamType : uint8_t {
  tensor,
  tensors,
  scalar,
  integer,
  integers,
  floating,
  floats,
  boolean,
  string,
  dtype
};

struct Param {
  std::string name;
  ParamType type = ParamType::tensor;
  bool optional = false;           // may be None
  bool optional_elements = false;  // Tensor?[]
  bool keyword_only = false;
  int32_t repeat = 0;  // N of int[N]
  bool has_default = false;
  std::string default_text;  // as written: "1", "False", "None", "[0, 1]"
};

struct Schema {
  std::string name;      // "sum"
  std::string overload;  // "dim_IntList", or empty
  std::vector<Param> params;
  std::vector<std::string> returns;  // "Tensor", "Tensor[]"

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  int32_t position(std::string_view param) const;  // -1 when there is none
};

/// Parses one schema; an internal error for text that is none (schemas are written by us).
Schema parse_schema(std::string_view text);

/// The value of a parameter's default.
template <class T>
Argument<T> default_value(const Param& param);

/// Binds positional and named arguments: fills defaults, turns single ints into lists, numbers into the
/// parameter's type. `why` receives the reason in words when the call does not fit, and nothing is returned.
template <class T>
std::optional<std::vector<Argument<T>>> bind(const Schema& schema, std::vector<Argument<T>> positional,
                                             std::vector<std::pair<std::string, Argument<T>>> named,
                                             std::string* why);

/// Throws that parameter `position` needs a tensor.
[[noreturn]] void refuse_number(const Schema& schema, size_t position);

/// Arguments in schema order, read by name or position.
template <class T>
class Bound {
 public:
  Bound(const Schema& schema, std::span<const Argument<T>> values) : schema_(&schema), values_(values) {}
  const Argument<T>& operator[](std::string_view name) const { return values_[schema_->position(name)]; }
  const Argument<T>& operator[](size_t position) const { return values_[position]; }
  size_t size() const { return values_.size(); }
  /// UserError naming the operator and the parameter where a number stands for the tensor.
  const T& tensor(size_t position) const {
    if (!values_[position].is_tensor()) refuse_number(*schema_, position);
    return values_[position].tensor();
  }
  const Schema& schema() const { return *schema_; }
  std::span<const Argument<T>> values() const { return values_; }

 private:
  const Schema* schema_;
  std::span<const Argument<T>> values_;
};

}  // namespace stax::graph

#include "graph/schema_inl.h"
