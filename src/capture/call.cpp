// Arguments of generated functions, and calls by name.
#include <fmt/core.h>

#include <algorithm>

#include "capture/dispatch.h"
#include "graph/schema.h"
#include "ops/table.h"
#include "support/check.h"
#include "tensor/tensor_impl.h"

namespace stax::capture {
namespace {

Argument<Tensor> number_argument(const Scalar& value) {
  if (value.traced()) {
    Trace* trace = current_trace();
    STAX_CHECK(trace != nullptr, "a number of a trace is used outside that trace");
    return trace->scalar_argument(value);
  }
  switch (value.kind()) {
    case Scalar::Kind::boolean:
      return Number{Number::Kind::boolean, to_expr(value.integer()), 0};
    case Scalar::Kind::integer:
      return Number{Number::Kind::integer, to_expr(value.integer()), 0};
    case Scalar::Kind::floating:
      break;
  }
  return Number::of(value.floating());
}

Argument<Tensor> integers(const IntList& value, int32_t repeat) {
  if (repeat > 1 && value.size() == 1)
    return std::vector<Expr>(static_cast<size_t>(repeat), to_expr(value[0]));
  return to_exprs(value);
}

}  // namespace

Call& Call::add(const Tensor& value) {
  STAX_CHECK(value.defined(), "{}: the argument '{}' is an undefined tensor", op_.schema.name,
             op_.schema.params[arguments_.size()].name);
  arguments_.emplace_back(value);
  return *this;
}

Call& Call::add(const std::optional<Tensor>& value) {
  if (value && value->defined()) return add(*value);
  arguments_.emplace_back();
  return *this;
}

Call& Call::add(const TensorList& value) {
  Argument<Tensor>::Tensors list;
  list.reserve(value.size());
  for (const Tensor& tensor : value) {
    STAX_CHECK(tensor.defined(), "{}: a tensor of the list '{}' is undefined", op_.schema.name,
               op_.schema.params[arguments_.size()].name);
    list.emplace_back(tensor);
  }
  arguments_.emplace_back(std::move(list));
  return *this;
}

Call& Call::add(const OptionalTensorList& value) {
  Argument<Tensor>::Tensors list;
  list.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    list.push_back(value[i] && value[i]->defined() ? value[i] : std::nullopt);
  }
  arguments_.emplace_back(std::move(list));
  return *this;
}

Call& Call::add(const Scalar& value) {
  arguments_.push_back(number_argument(value));
  return *this;
}
Call& Call::add(const SymInt& value) {
  arguments_.emplace_back(Number{Number::Kind::integer, to_expr(value), 0});
  return *this;
}
Call& Call::add(int64_t value) {
  arguments_.emplace_back(Number::of(value));
  return *this;
}
Call& Call::add(double value) {
  arguments_.emplace_back(Number::of(value));
  return *this;
}
Call& Call::add(bool value) {
  arguments_.emplace_back(Number::of(value));
  return *this;
}
Call& Call::add(const IntList& value, int32_t repeat) {
  arguments_.push_back(integers(value, repeat));
  return *this;
}
Call& Call::add(const OptionalIntList& value, int32_t repeat) {
  if (!value.has_value()) return none();
  return add(*value, repeat);
}
Call& Call::add(const FloatList& value) {
  arguments_.emplace_back(std::vector<double>(value.begin(), value.end()));
  return *this;
}
Call& Call::add(const OptionalFloatList& value) {
  if (!value.has_value()) return none();
  return add(*value);
}
Call& Call::add(DType value) {
  arguments_.emplace_back(value);
  return *this;
}
Call& Call::add(std::string_view value) {
  arguments_.emplace_back(std::string(value));
  return *this;
}
Call& Call::add(const TensorOptions& value) {
  if (value.device_opt()) device_ = value.device();
  return add(value.dtype_opt());
}
std::vector<Tensor> Call::all() {
  if (!device_) return dispatch(op_, std::move(arguments_));
  return dispatch_on(op_, std::move(arguments_), *device_);
}

Tensor Call::one() {
  if (!device_) return dispatch_one(op_, std::move(arguments_));
  std::vector<Tensor> results = all();
  STAX_ASSERT(results.size() == 1, "{} has {} results where one was expected", op_.schema.full_name(),
              results.size());
  return std::move(results[0]);
}

Call& Call::none() {
  arguments_.emplace_back();
  return *this;
}

namespace {

using Named = std::vector<std::pair<std::string, Argument<Tensor>>>;

/// Rows that a name means, and whether it is the in-place form.
struct Candidates {
  std::vector<const graph::Op*> rows;
  bool in_place = false;
};

Candidates find_candidates(std::string_view name) {
  const graph::OpTable& table = ops::table();
  if (const graph::Op* op = name.find('.') != std::string_view::npos ? table.find(name) : nullptr)
    return {{op}};
  if (const auto& rows = table.overloads(name); !rows.empty() && !rows[0]->internal) return {rows};
  if (!name.ends_with("_")) return {};
  Candidates result{{}, true};
  for (const graph::Op* op : table.overloads(name.substr(0, name.size() - 1))) {
    if (op->in_place_variant) result.rows.push_back(op);
  }
  return result;
}

/// The tensors that are named `out`, which are taken away; nothing where there is no such argument.
std::optional<std::vector<Tensor>> take_out(Named& named) {
  const auto found =
      std::find_if(named.begin(), named.end(), [](const auto& item) { return item.first == "out"; });
  if (found == named.end()) return std::nullopt;
  const Argument<Tensor> value = std::move(found->second);
  named.erase(found);
  if (value.is_none()) return std::nullopt;
  if (const auto* list = std::get_if<Argument<Tensor>::Tensors>(&value.value)) {
    std::vector<Tensor> out;
    for (const auto& tensor : *list) {
      STAX_CHECK(tensor, "out: expected tensors, got a list with a missing one");
      out.push_back(*tensor);
    }
    return out;
  }
  return std::vector{value.tensor()};
}

}  // namespace

bool has_operator(std::string_view name) {
  return !find_candidates(name).rows.empty();
}

std::vector<Tensor> call(std::string_view name, Arguments positional, Named named) {
  const Candidates candidates = find_candidates(name);
  STAX_CHECK(!candidates.rows.empty(), "there is no operator '{}'", name);
  std::string reasons;
  const auto out = take_out(named);
  STAX_CHECK(!out || !candidates.in_place, "{}: an in-place operator takes no out", name);
  for (const graph::Op* op : candidates.rows) {
    std::string why;
    auto arguments = graph::bind(op->schema, positional, named, &why);
    if (!arguments) {
      reasons += fmt::format("\n  {}: {}", op->schema_text, why);
    } else if (candidates.in_place) {
      return {dispatch_in_place(*op, std::move(*arguments), name)};
    } else if (out) {
      return dispatch_out(*op, std::move(*arguments), *out);
    } else {
      return dispatch(*op, std::move(*arguments));
    }
  }
  throw_user_error(fmt::format("{}: the arguments fit none of its forms:{}", name, reasons));
}

}  // namespace stax::capture
