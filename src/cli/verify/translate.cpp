#include "cli/verify/translate.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "cli/verify/adapters.h"
#include "graph/schema.h"
#include "ops/table.h"
#include "stax/factories.h"
#include "support/check.h"

namespace stax::cli {
namespace {

using Named = std::vector<std::pair<std::string, Argument<Tensor>>>;

/// Arguments that say where and how Python keeps tensors: nothing that changes values.
constexpr std::string_view kIgnored[] = {"device", "requires_grad", "memory_format",
                                         "layout", "pin_memory",    "inplace"};

// Python's signatures want tensors where the rows of Stax take numbers, too. These functions take numbers for
// their first argument, for another one, or for all.
enum NumberPlaces : uint8_t { kFirst = 1, kLater = 2, kAll = 4 };
constexpr struct {
  std::string_view name;
  int places;
} kNumbers[] = {
    {"add", kFirst | kLater | kAll},
    {"sub", kFirst | kLater | kAll},
    {"mul", kFirst | kLater | kAll},
    {"div", kFirst | kLater | kAll},
    {"true_divide", kFirst | kLater | kAll},
    {"floor_divide", kFirst | kLater | kAll},
    {"rsub", kLater},
    {"pow", kFirst | kLater},
    {"float_power", kFirst | kLater},
    {"remainder", kFirst | kLater},
    {"fmod", kLater},
    {"eq", kLater},
    {"ne", kLater},
    {"lt", kLater},
    {"le", kLater},
    {"gt", kLater},
    {"ge", kLater},
    {"xlogy", kFirst | kLater},
    {"where", kFirst | kLater},
    {"bitwise_and", kFirst | kLater},
    {"bitwise_or", kFirst | kLater},
    {"bitwise_xor", kFirst | kLater},
    {"bitwise_left_shift", kFirst | kLater},
    {"bitwise_right_shift", kFirst | kLater},
    {"copysign", kLater},
    {"masked_fill", kLater},
    {"index_fill", kLater},
    {"fill", kLater},
    {"clamp_min", kLater},
    {"clamp_max", kLater},
    {"isin", kFirst | kLater},
    {"searchsorted", kLater},
    {"lerp", kLater},
    {"scatter", kLater},
    {"bucketize", kFirst},
};

bool takes_number(std::string_view name, NumberPlaces place) {
  return std::any_of(std::begin(kNumbers), std::end(kNumbers),
                     [&](const auto& row) { return row.name == name && (row.places & place) != 0; });
}

template <size_t N>
bool contains(const std::string_view (&list)[N], std::string_view text) {
  return std::find(list, list + N, text) != list + N;
}

std::string_view strip(std::string_view name) {
  for (const std::string_view prefix : {"nn.functional.", "torch.ops.aten."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  if (name.ends_with(".default")) name.remove_suffix(std::string_view(".default").size());
  return name;
}

/// Whether tensor parameters of the row got numbers that Python's signature does not take.
bool refuses_numbers(const graph::Schema& schema, const Request& call) {
  size_t numbers = 0, tensors = 0;
  bool refused = false;
  for (size_t i = 0; i < std::min(schema.params.size(), call.positional.size()); ++i) {
    if (schema.params[i].type != graph::ParamType::tensor) continue;
    if (!call.positional[i].is_number()) {
      ++tensors;
      continue;
    }
    ++numbers;
    refused = refused || !takes_number(call.name, i == 0 ? kFirst : kLater);
  }
  return refused || (numbers > 1 && tensors == 0 && !takes_number(call.name, kAll));
}

/// Where all operands are numbers, Python makes tensors of them, of its default dtypes.
void wrap_numbers(Request& call) {
  for (auto& value : call.positional) {
    if (!value.is_number()) continue;
    const Number& number = value.number();
    value = number.is_float()                      ? tensor(number.floating, kFloat32)
            : number.kind == Number::Kind::boolean ? tensor(number.integer.value() != 0)
                                                   : tensor(number.integer.value());
  }
}

const std::vector<const graph::Op*>& candidates(const std::string& name) {
  static const std::vector<const graph::Op*> none;
  const auto& rows = ops::table().overloads(name);
  return rows.empty() && name.ends_with("_") ? ops::table().overloads(name.substr(0, name.size() - 1)) : rows;
}

const graph::Op* binding_row(const Request& call) {
  Named named = call.named;
  std::erase_if(named, [](const auto& item) { return item.first == "out"; });  // any row may have it
  if (const graph::Op* op = call.name.find('.') != std::string::npos ? ops::table().find(call.name) : nullptr)
    return graph::bind(op->schema, call.positional, named, nullptr) ? op : nullptr;
  for (const graph::Op* op : candidates(call.name)) {
    if (graph::bind(op->schema, call.positional, named, nullptr)) return op;
  }
  return nullptr;
}

/// Calls f(tensor), which may replace it, for every tensor of the request.
template <class Call, class F>
void for_each_tensor(Call& call, F&& f) {
  const auto visit = [&](auto& argument) {
    if (auto* tensor = std::get_if<Tensor>(&argument.value)) f(*tensor);
    if (auto* list = std::get_if<Argument<Tensor>::Tensors>(&argument.value)) {
      for (auto& tensor : *list) {
        if (tensor) f(*tensor);
      }
    }
  };
  for (auto& argument : call.positional) visit(argument);
  for (auto& [name, argument] : call.named) visit(argument);
}

}  // namespace

Request translate(const RecordedFile& file, const Json& call) {
  Request request;
  const std::string_view name = strip(file.op());
  const Json::Array& args = call.at("args").as_array();
  if (name == "__getitem__") {
    request.name = "index";
    request.positional.push_back(file.argument(args.at(0)));
    request.indices = file.indices(args.at(1));
    return request;
  }
  request.name = name;
  for (const Json& value : args) request.positional.push_back(file.argument(value));
  for (const auto& [key, value] : call.at("kwargs").as_object()) {
    if (!contains(kIgnored, key)) request.named.emplace_back(key, file.argument(value));
  }
  adapt(request, file.op(), name);
  if (const graph::Op* row = binding_row(request))
    request.python_refuses = refuses_numbers(row->schema, request);
  if (request.tensors().empty() && takes_number(request.name, kAll)) wrap_numbers(request);
  return request;
}

bool Request::known() const {
  if (formula != nullptr) return true;
  return capture::has_operator(name);
}

bool Request::binds() const {
  if (formula != nullptr) return true;
  return name == "index" ? positional.at(0).is_tensor() : binding_row(*this) != nullptr;
}

std::vector<Tensor> Request::tensors() const {
  std::vector<Tensor> result;
  for_each_tensor(*this, [&](const Tensor& tensor) { result.push_back(tensor); });
  for (const TensorIndex& index : indices) {
    if (index.kind() == TensorIndex::Kind::tensor) result.push_back(index.tensor());
  }
  return result;
}

std::vector<Tensor> Request::run(const std::vector<Tensor>& tensors) const {
  STAX_CHECK(!python_refuses, "{}: a number stands where a tensor is expected", name);
  size_t next = 0;
  Request call = *this;
  for_each_tensor(call, [&](Tensor& tensor) { tensor = tensors.at(next++); });
  for (TensorIndex& index : call.indices) {
    if (index.kind() == TensorIndex::Kind::tensor) index = tensors.at(next++);
  }
  if (formula != nullptr) return formula(call);
  if (name == "index") return {call.positional.at(0).tensor().index(call.indices)};
  std::vector<Tensor> results = capture::call(name, std::move(call.positional), std::move(call.named));
  if (keep >= 0 && static_cast<size_t>(keep) < results.size()) results.resize(static_cast<size_t>(keep));
  return results;
}

bool sums_products(const Request& request) {
  constexpr std::string_view kNames[] = {"conv1d",
                                         "conv2d",
                                         "conv3d",
                                         "conv_transpose1d",
                                         "conv_transpose2d",
                                         "conv_transpose3d",
                                         "mm",
                                         "bmm",
                                         "mv",
                                         "dot",
                                         "vdot",
                                         "inner",
                                         "matmul",
                                         "linear",
                                         "bilinear",
                                         "einsum",
                                         "tensordot",
                                         "addmm",
                                         "addmv",
                                         "addbmm",
                                         "baddbmm"};
  return contains(kNames, request.name);
}

int32_t free_index_result(const Request& request) {
  const auto named_true = [&](std::string_view name) {
    return std::any_of(request.named.begin(), request.named.end(),
                       [&](const auto& item) { return item.first == name && is_true(item.second); });
  };
  if (request.name == "argsort") return named_true("stable") ? -1 : 0;
  if (request.name == "sort") return named_true("stable") ? -1 : 1;
  constexpr std::string_view kFree[] = {"topk", "kthvalue", "median", "nanmedian", "mode"};
  return contains(kFree, request.name) ? 1 : -1;
}

int64_t free_index_dim(const Request& request) {
  const int64_t rank = request.positional.at(0).tensor().dim();
  const size_t position = request.name == "topk" || request.name == "kthvalue" ? 2 : 1;
  int64_t dim = -1;
  if (request.positional.size() > position) dim = integer_or(request.positional[position], -1);
  for (const auto& [name, value] : request.named) {
    if (name == "dim") dim = integer_or(value, -1);
  }
  return dim < 0 ? dim + rank : dim;
}

}  // namespace stax::cli
