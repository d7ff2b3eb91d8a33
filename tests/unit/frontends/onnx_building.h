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
inline Tensor constant(const std::string& name, const Ints& values) {
  const auto data = std::make_shared<Ints>(values);
  Tensor tensor{name, "INT64", DType::int64, {static_cast<int64_t>(values.size())}, {}};
  tensor.data = {DType::int64, tensor.sizes, reinterpret_cast<const std::byte*>(data->data()),
                 static_cast<int64_t>(values.size() * sizeof(int64_t)), data};
  return tensor;
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
