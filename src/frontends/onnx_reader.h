// How onnx_model.cpp and onnx_tensor.cpp share their work. Internal to the reader.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "frontends/onnx_model.h"
#include "support/mapped_file.h"

namespace stax::onnx_wire {
class Tensor;  // the message that protoc makes of onnx.proto
}

namespace stax::onnx {

/// Reads tensors, opening each external file once.
class TensorReader {
 public:
  TensorReader(std::string what, std::string folder) : what_(std::move(what)), folder_(std::move(folder)) {}

  /// Takes the message's bytes over instead of copying them. `role` says what the tensor is, for errors.
  Tensor read(onnx_wire::Tensor& message, const std::string& role);

 private:
  files::ArrayView read_data(onnx_wire::Tensor& message, const Tensor& tensor, int64_t nbytes,
                             const std::string& where);
  files::ArrayView read_external(const onnx_wire::Tensor& message, const Tensor& tensor, int64_t nbytes,
                                 const std::string& where);
  std::shared_ptr<MappedFile> open_external(const std::string& location, const std::string& where);

  std::string what_;
  std::string folder_;
  std::map<std::string, std::shared_ptr<MappedFile>> open_;
};

/// ONNX's name of an element type number ("FLOAT"), or "type N" when the standard has none that we know.
std::string element_type_name(int number);
std::optional<DType> element_dtype(int number);

}  // namespace stax::onnx
