#include "stax/onnx.h"

#include "frontends/onnx_program.h"

namespace stax {
namespace {

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& value : values) names.push_back(value.name);
  return names;
}

}  // namespace

OnnxModel OnnxModel::load(const std::string& path) {
  return OnnxModel(std::make_shared<const onnx::OnnxProgram>(onnx::OnnxProgram::load(path)));
}

std::vector<std::string> OnnxModel::input_names() const {
  return names_of(program_->inputs());
}
std::vector<std::string> OnnxModel::output_names() const {
  return names_of(program_->outputs());
}

DynamicShapes OnnxModel::dynamic_shapes() const {
  return onnx::dynamic_shapes(program_->inputs());
}

std::vector<Tensor> OnnxModel::operator()(const std::vector<Tensor>& inputs) const {
  return (*program_)(inputs);
}

}  // namespace stax
