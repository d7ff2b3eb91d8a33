// Models from ONNX files.
//
//   const stax::OnnxModel model = stax::OnnxModel::load("model.onnx");
//   auto compiled = stax::compile(model);
//   std::vector<stax::Tensor> outputs = compiled(std::vector<stax::Tensor>{input});
//
// One program for all sizes that the model declares as symbolic:
//
//   stax::compile(model, {.dynamic = true, .dynamic_shapes = model.dynamic_shapes()})
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stax/dim.h"
#include "stax/tensor.h"

namespace stax {

namespace onnx {
class OnnxProgram;
}

/// A model as a function over tensors: called, it computes at once; compiled, it is recorded like any other
/// function. Copies share the weights. Thread-safe.
class STAX_API OnnxModel {
 public:
  /// Reads the model and its external data. UserError for files that cannot be read or are malformed, and one
  /// UserError that lists every operator that is not mapped.
  static OnnxModel load(const std::string& path);

  /// Names in the order in which tensors are given and returned. Inputs that have a constant in the file are
  /// not among them.
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;

  /// Declarations for compile(): a dimension to which the file gives a name is dynamic under that name, equal
  /// names are equal sizes, and a dimension to which it gives a number is fixed.
  DynamicShapes dynamic_shapes() const;

  /// One tensor an input; returns one an output. UserError for a wrong number, dtype, rank or size of inputs,
  /// and for what operators refuse, with the node's name.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;

  /// The state behind the handle: internal.
  const onnx::OnnxProgram& program() const { return *program_; }

 private:
  explicit OnnxModel(std::shared_ptr<const onnx::OnnxProgram> program) : program_(std::move(program)) {}
  std::shared_ptr<const onnx::OnnxProgram> program_;
};

}  // namespace stax
