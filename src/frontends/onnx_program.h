// An ONNX model as a function over tensors.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontends/onnx_model.h"
#include "stax/dim.h"
#include "stax/tensor.h"

namespace stax::onnx {

/// A model whose operators are all mapped. It is an ordinary function over tensors: called with tensors it
/// computes at once, inside compile() it is traced. Shapes are computed while it is called or traced, on the
/// host, and constants are folded: what remains depends on the inputs' values.
class OnnxProgram {
 public:
  /// Reads the model. UserError for files that cannot be read, and one UserError that lists every operator
  /// that is not mapped.
  static OnnxProgram load(const std::string& path);
  explicit OnnxProgram(Model model);
  ~OnnxProgram();
  OnnxProgram(OnnxProgram&&) noexcept;

  const Model& model() const;
  /// What a call has to give, in order: the graph's inputs without those that have a constant.
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;

  /// Computes the outputs. UserError for inputs of the wrong number, dtype or rank, or whose sizes are not
  /// the declared ones; and what operators throw, with the node's name.
  std::vector<stax::Tensor> operator()(const std::vector<stax::Tensor>& inputs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What the inputs' declared shapes say for compile(): dimensions of one symbolic name are one declared
/// dimension of that name (with "_" for what no identifier has), and "2*n + 1" is derived from n. Dimensions
/// with numbers are fixed; those with neither are left to the compiler.
DynamicShapes dynamic_shapes(const std::vector<ValueInfo>& inputs);

}  // namespace stax::onnx
