// Models written down node by node, for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontends/onnx_program.h"
#include "stax/functions.h"

namespace stax::onnx {

using Array = stax::Tensor;
using Ints = std::vector<int64_t>;

inline Attribute attribute(const std::string& name, Attribute::Value value) {
  return {name, std::move(value), ""};
}

/// A constant of int64 numbers; they live as long as the view.
template <class T>
Tensor constant(const std::string& name, const std::vector<T>& values, const char* type, DType dtype) {
  const auto data = std::make_shared<std::vector<T>>(values);
  Tensor tensor{name, type, dtype, {static_cast<int64_t>(values.size())}, {}};
  tensor.data = {dtype, tensor.sizes, reinterpret_cast<const std::byte*>(data->data()),
                 static_cast<int64_t>(values.size() * sizeof(T)), data};
  return tensor;
}
inline Tensor constant(const std::string& name, const Ints& values) {
  return constant(name, values, "INT64", DType::int64);
}

struct Builder {
  Model model;
  explicit Builder(int64_t opset = 17) { model.opsets[""] = opset; }
  Builder& input(const std::string& name) {
    model.graph.inputs.push_back({name, "FLOAT", std::nullopt, std::nullopt});
    return *this;
  }
  Builder& constant(const std::string& name, const Ints& values) {
    model.graph.initializers.push_back(onnx::constant(name, values));
    return *this;
  }
  Builder& constant_floats(const std::string& name, const std::vector<float>& values) {
    model.graph.initializers.push_back(onnx::constant(name, values, "FLOAT", DType::float32));
    return *this;
  }
  Builder& node(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                std::vector<Attribute> attributes = {}) {
    model.graph.nodes.push_back(
        {"", op, "", "", std::move(inputs), std::move(outputs), std::move(attributes)});
    return *this;
  }
  OnnxProgram build(const std::vector<std::string>& outputs) {
    for (const std::string& name : outputs)
      model.graph.outputs.push_back({name, "", std::nullopt, std::nullopt});
    return OnnxProgram(model);
  }
};

inline std::vector<double> values(const Array& tensor) {
  const Array flat = tensor.to(kFloat64).contiguous().reshape({-1});
  const double* data = flat.const_data_ptr<double>();
  return {data, data + static_cast<int64_t>(flat.numel())};
}

}  // namespace stax::onnx
