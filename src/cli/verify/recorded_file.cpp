#include "cli/verify/recorded_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "stax/factories.h"
#include "support/check.h"
#include "tensor/tensor_impl.h"

namespace stax::cli {
namespace {

const std::string& metadata_of(const files::SafetensorsFile& file, const std::string& key,
                               const std::string& path) {
  const auto found = file.metadata().find(key);
  STAX_CHECK(found != file.metadata().end(),
             "{}: the metadata have no '{}', so this is no file of recorded calls", path, key);
  return found->second;
}

DType parse_dtype(const std::string& text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  }
  throw Unsupported(fmt::format("dtype {}", text));
}

int64_t parse_large(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Unsupported(fmt::format("the integer {}", text));
  return value;
}

double parse_special(const std::string& text) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (text == "inf") return infinity;
  if (text == "-inf") return -infinity;
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw Unsupported(fmt::format("the number {}", text));
}

Tensor dense_tensor(const files::ArrayView& array) {
  Tensor tensor = new_tensor(array.dtype, array.sizes);
  if (array.nbytes > 0) std::memcpy(strided(tensor).data(), array.data, static_cast<size_t>(array.nbytes));
  return tensor;
}

/// A tensor of the same values with these strides in a storage just long enough.
Tensor with_strides(const Tensor& dense, const std::vector<int64_t>& strides) {
  const std::vector<int64_t> sizes = dense.sizes().values();
  if (dense.numel() == 0 || sizes.size() != strides.size()) return dense;
  int64_t length = 1;
  for (size_t d = 0; d < sizes.size(); ++d) length += (sizes[d] - 1) * strides[d];
  const Tensor base = new_tensor(dense.dtype(), std::vector<int64_t>{length});
  std::memset(strided(base).data(), 0, static_cast<size_t>(length * itemsize(dense.dtype())));
  Tensor result = new_view(strided(base), dense.dtype(), extents_of(sizes, strides), 0);
  copy_elements(strided(dense).view(), strided(result).view());
  return result;
}

std::optional<SymInt> bound(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return SymInt(value.as_int());
}

}  // namespace

RecordedFile::RecordedFile(const std::string& path)
    : file_(path),
      calls_(Json::parse(metadata_of(file_, "calls", path), {.what = path})),
      op_(metadata_of(file_, "op", path)) {
  STAX_CHECK(calls_.is_array(), "{}: 'calls' is no list, so this is no file of recorded calls", path);
  if (const auto variant = file_.metadata().find("variant"); variant != file_.metadata().end())
    variant_ = variant->second;
}

Tensor RecordedFile::tensor(const Json& reference) const {
  const std::string& key = reference.at("tensor").as_string();
  files::ArrayView array;
  try {
    array = file_.tensor(key);
  } catch (const UserError& error) {
    throw Unsupported(error.what());
  }
  Tensor dense = dense_tensor(array);
  const Json* recorded = reference.find("strides");
  if (recorded == nullptr) return dense;
  std::vector<int64_t> strides;
  for (const Json& stride : recorded->as_array()) {
    strides.push_back(stride.as_int());
    if (strides.back() < 0) throw Unsupported("negative strides");
  }
  return with_strides(dense, strides);
}

Argument<Tensor> RecordedFile::list(const Json& value) const {
  const Json::Array& items = value.as_array();
  const auto all = [&](auto&& holds) { return std::all_of(items.begin(), items.end(), holds); };
  if (all([](const Json& item) { return item.is_integer() || item.is_bool(); })) {
    std::vector<Expr> list;
    for (const Json& item : items)
      list.emplace_back(item.is_bool() ? int64_t{item.as_bool()} : item.as_int());
    return list;
  }
  const auto integers = [](const Json& item) { return item.is_integer() || item.is_null(); };
  if (all(integers)) {
    std::vector<Expr> list;
    for (const Json& item : items) list.emplace_back(item.is_null() ? kNoneInList : item.as_int());
    return list;
  }
  if (all([](const Json& item) { return item.is_array(); })) {
    std::vector<Expr> joined;
    for (const Json& item : items) {
      const Argument<Tensor> part = list(item);
      const auto* ints = std::get_if<std::vector<Expr>>(&part.value);
      if (ints == nullptr) throw Unsupported(fmt::format("the list {}", value.dump()));
      joined.insert(joined.end(), ints->begin(), ints->end());
    }
    return joined;
  }
  if (all([](const Json& item) { return item.is_number(); })) {
    std::vector<double> list;
    for (const Json& item : items) list.push_back(item.as_double());
    return list;
  }
  if (all([](const Json& item) { return item.is_null() || (item.is_object() && item.find("tensor")); })) {
    Argument<Tensor>::Tensors list;
    for (const Json& item : items)
      list.push_back(item.is_null() ? std::nullopt : std::optional(tensor(item)));
    return list;
  }
  throw Unsupported(fmt::format("the list {}", value.dump()));
}

Argument<Tensor> RecordedFile::argument(const Json& value) const {
  if (value.is_null()) return {};
  if (value.is_bool()) return value.as_bool();
  if (value.is_integer()) return value.as_int();
  if (value.is_number()) return value.as_double();
  if (value.is_string()) return value.as_string();
  if (value.is_array()) return list(value);
  if (value.find("tensor")) return tensor(value);
  if (const Json* large = value.find("int")) return parse_large(large->as_string());
  if (const Json* special = value.find("float")) return parse_special(special->as_string());
  if (const Json* dtype = value.find("dtype")) return parse_dtype(dtype->as_string());
  if (const Json* items = value.find("tuple")) return list(*items);
  throw Unsupported(fmt::format("the argument {}", value.dump()));
}

TensorIndex RecordedFile::index(const Json& value) const {
  if (value.is_null()) return None;
  if (value.is_bool()) return value.as_bool();
  if (value.is_integer()) return value.as_int();
  if (value.is_array()) {
    std::vector<int64_t> positions;
    for (const Json& item : value.as_array()) positions.push_back(item.as_int());
    return stax::tensor(positions);
  }
  if (value.find("tensor")) return tensor(value);
  if (value.find("ellipsis")) return Ellipsis;
  if (const Json* slice = value.find("slice"))
    return Slice(bound(slice->at(0)), bound(slice->at(1)), bound(slice->at(2)));
  throw Unsupported(fmt::format("the index {}", value.dump()));
}

std::vector<TensorIndex> RecordedFile::indices(const Json& value) const {
  const Json* tuple = value.is_object() ? value.find("tuple") : nullptr;
  if (tuple == nullptr) return {index(value)};
  std::vector<TensorIndex> result;
  for (const Json& item : tuple->as_array()) result.push_back(index(item));
  return result;
}

}  // namespace stax::cli
