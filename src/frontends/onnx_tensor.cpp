#include <frontends/onnx.pb.h>  // made by protoc

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>

#include "frontends/onnx_reader.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::onnx {
namespace {

// Element types by their number in the standard.
struct ElementType {
  int number;
  const char* name;
  std::optional<DType> dtype;
};

constexpr ElementType kElementTypes[] = {
    {0, "UNDEFINED", {}},
    {1, "FLOAT", kFloat32},
    {2, "UINT8", kUInt8},
    {3, "INT8", kInt8},
    {4, "UINT16", {}},
    {5, "INT16", kInt16},
    {6, "INT32", kInt32},
    {7, "INT64", kInt64},
    {8, "STRING", {}},
    {9, "BOOL", kBool},
    {10, "FLOAT16", kFloat16},
    {11, "DOUBLE", kFloat64},
    {12, "UINT32", {}},
    {13, "UINT64", {}},
    {14, "COMPLEX64", {}},
    {15, "COMPLEX128", {}},
    {16, "BFLOAT16", kBFloat16},
    {17, "FLOAT8E4M3FN", {}},
    {18, "FLOAT8E4M3FNUZ", {}},
    {19, "FLOAT8E5M2", {}},
    {20, "FLOAT8E5M2FNUZ", {}},
    {21, "UINT4", {}},
    {22, "INT4", {}},
    {23, "FLOAT4E2M1", {}},
    {24, "FLOAT8E8M0", {}},
    {25, "UINT2", {}},
    {26, "INT2", {}},
};

const ElementType* find_type(int number) {
  const auto* found = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                   [&](const ElementType& type) { return type.number == number; });
  return found == std::end(kElementTypes) ? nullptr : found;
}

template <typename Field>
files::ArrayView copy_field(const Field& field, const Tensor& tensor, int64_t nbytes) {
  auto data = files::allocate(nbytes);
  if (nbytes > 0) std::memcpy(data.get(), field.data(), static_cast<size_t>(nbytes));
  return files::make_view(*tensor.dtype, tensor.sizes, data.get(), data);
}

// The range of the integers that int32_data may hold for a dtype; the half types are there as their 16 bits.
std::pair<int32_t, int32_t> int32_range(DType dtype) {
  if (dtype == kBool || dtype == kUInt8) return {0, 255};
  if (dtype == kInt8) return {-128, 127};
  if (dtype == kInt16) return {-32768, 32767};
  if (is_half(dtype)) return {0, 65535};
  return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
}

files::ArrayView narrow_field(const google::protobuf::RepeatedField<int32_t>& field, const Tensor& tensor,
                              int64_t nbytes, const std::string& where) {
  const int64_t item = itemsize(*tensor.dtype);
  const auto [low, high] = int32_range(*tensor.dtype);
  auto data = files::allocate(nbytes);
  for (int64_t i = 0; i < nbytes / item; ++i) {
    const int32_t value = field.Get(static_cast<int>(i));
    STAX_CHECK(value >= low && value <= high, "{}: expected int32_data of {} within [{}, {}], got {}", where,
               tensor.type, low, high, value);
    std::memcpy(data.get() + i * item, &value,
                static_cast<size_t>(item));  // little-endian: the low bytes come first
  }
  return files::make_view(*tensor.dtype, tensor.sizes, data.get(), data);
}

int64_t parse_number(const std::string& text, const std::string& key, const std::string& where) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  STAX_CHECK(error == std::errc() && end == text.data() + text.size() && value >= 0,
             "{}: expected external data with a number in [0, 2^63) as its {}, got '{}'", where, key,
             text.substr(0, 40));
  return value;
}

}  // namespace

std::string element_type_name(int number) {
  const ElementType* type = find_type(number);
  return type != nullptr ? type->name : fmt::format("type {}", number);
}

std::optional<DType> element_dtype(int number) {
  const ElementType* type = find_type(number);
  return type != nullptr ? type->dtype : std::nullopt;
}

const files::ArrayView& Tensor::view() const {
  STAX_CHECK(dtype.has_value(),
             "tensor '{}': expected an element type among FLOAT, DOUBLE, FLOAT16, BFLOAT16, INT8 to INT64, "
             "UINT8 and BOOL, got {}",
             name, type);
  return data;
}

Tensor TensorReader::read(onnx_wire::Tensor& message, const std::string& role) {
  const std::string where = fmt::format("{}: {} '{}'", what_, role, message.name());
  Tensor tensor{message.name(),
                element_type_name(message.data_type()),
                element_dtype(message.data_type()),
                {message.dims().begin(), message.dims().end()},
                {}};
  STAX_CHECK(message.data_type() != 0, "{}: expected an element type, got none", where);
  const int64_t item = tensor.dtype ? itemsize(*tensor.dtype) : 1;
  const int64_t nbytes = files::checked_bytes(tensor.sizes, item);
  STAX_CHECK(nbytes >= 0, "{}: expected sizes that are not negative and whose product fits in 63 bits",
             where);
  if (tensor.dtype) tensor.data = read_data(message, tensor, nbytes, where);
  return tensor;
}

files::ArrayView TensorReader::read_data(onnx_wire::Tensor& message, const Tensor& tensor, int64_t nbytes,
                                         const std::string& where) {
  if (message.data_location() == 1) return read_external(message, tensor, nbytes, where);
  if (message.has_raw_data()) {
    auto owner = std::make_shared<std::string>(std::move(*message.mutable_raw_data()));
    STAX_CHECK(static_cast<int64_t>(owner->size()) == nbytes,
               "{}: expected {} of raw data for its sizes, got {}", where, counted(nbytes, "byte"),
               owner->size());
    return files::make_view(*tensor.dtype, tensor.sizes, reinterpret_cast<const std::byte*>(owner->data()),
                            owner);
  }
  const DType dtype = *tensor.dtype;
  const int count = dtype == kFloat32   ? message.float_data_size()
                    : dtype == kFloat64 ? message.double_data_size()
                    : dtype == kInt64   ? message.int64_data_size()
                                        : message.int32_data_size();
  STAX_CHECK(count == nbytes / itemsize(dtype), "{}: expected {} of {} for its sizes, got {}", where,
             counted(nbytes / itemsize(dtype), "element"), tensor.type, count);
  if (dtype == kFloat32) return copy_field(message.float_data(), tensor, nbytes);
  if (dtype == kFloat64) return copy_field(message.double_data(), tensor, nbytes);
  if (dtype == kInt64) return copy_field(message.int64_data(), tensor, nbytes);
  return narrow_field(message.int32_data(), tensor, nbytes, where);
}

files::ArrayView TensorReader::read_external(const onnx_wire::Tensor& message, const Tensor& tensor,
                                             int64_t nbytes, const std::string& where) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& pair : message.external_data()) {
    if (pair.key() == "location") location = pair.value();
    if (pair.key() == "offset") offset = parse_number(pair.value(), "offset", where);
    if (pair.key() == "length") length = parse_number(pair.value(), "length", where);
  }
  const auto file = open_external(location, where);
  const auto available = static_cast<int64_t>(file->bytes().size());
  STAX_CHECK(length < 0 || length == nbytes,
             "{}: expected {} of external data for its sizes, got a length of {}", where,
             counted(nbytes, "byte"), length);
  STAX_CHECK(offset <= available && nbytes <= available - offset,
             "{}: expected {} at offset {} of external file '{}', got a file of {}", where,
             counted(nbytes, "byte"), offset, location, counted(available, "byte"));
  return files::make_view(*tensor.dtype, tensor.sizes, file->bytes().data() + offset, file);
}

std::shared_ptr<MappedFile> TensorReader::open_external(const std::string& location,
                                                        const std::string& where) {
  if (const auto found = open_.find(location); found != open_.end()) return found->second;
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::canonical(folder_.empty() ? "." : folder_, error);
  STAX_CHECK(!error && !location.empty(), "{}: expected the location of its external data, got '{}'", where,
             location);
  const fs::path file = fs::canonical(folder / location, error);
  STAX_CHECK(!error, "{}: expected external file '{}' beside the model, got: {}", where, location,
             error.message());
  // Symbolic links are followed first: neither they nor ".." may lead out of the model's folder.
  const auto [in_folder, in_file] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  STAX_CHECK(in_folder == folder.end() && !fs::path(location).is_absolute(),
             "{}: expected external data inside the model's folder, got '{}'", where, location);
  try {
    return open_[location] = MappedFile::open(file.string());
  } catch (const UserError& unreadable) {
    throw_user_error(fmt::format("{}: external data: {}", where, unreadable.what()));
  }
}

}  // namespace stax::onnx
