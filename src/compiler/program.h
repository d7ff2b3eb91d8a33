// A captured function, compiled: runs on the tensors of a call.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "capture/captured.h"
#include "compiler/pipeline.h"
#include "tensor/tensor_impl.h"

namespace stax::compiler {

/// The number arguments of a call, 8 bytes each as their dtypes store them.
union NumberCell {
  double floating;
  int64_t integer;
  bool boolean;
};

/// Immutable; any number of threads may run it at a time.
class CompiledProgram {
 public:
  /// `interpret`: runs the captured graph operator by operator instead (backend "debug").
  static std::shared_ptr<const CompiledProgram> make(capture::Captured captured,
                                                     const PipelineOptions& options, bool interpret = false);
  /// Of stages that ran already.
  static std::shared_ptr<const CompiledProgram> make(capture::Captured captured, Stages stages,
                                                     Executables executables);

  /// `arguments` are the tensor arguments of the call, whose metadata are those that the program was made
  /// for. Writes the results to `results`, one for each returned tensor.
  void run(std::span<const Tensor* const> arguments, std::span<const NumberCell> numbers,
           Tensor* results) const;

  size_t result_count() const { return captured_.outputs.size(); }
  const capture::Captured& captured() const { return captured_; }
  const Stages& stages() const { return stages_; }
  bool mutates() const { return !captured_.graph.write_backs.empty(); }

 private:
  /// Fixed facts about an input; a call only adds the data pointer.
  struct Input {
    std::vector<int64_t> sizes, strides;
  };
  /// A result of the lowered program, for the reference executor.
  struct Output {
    int64_t bytes = 0;
  };
  /// A returned tensor.
  struct Result {
    int32_t output = -1;  // of the program: it lies in that storage
    DType dtype = DType::float32;
    Extents extents;
    int64_t offset = 0;
    bool copy = false;  // into storage of its own: another result has that one, or the layout is not the one
    Extents layout;     // that the function's operators give, which the copy gets
  };

  void prepare();
  const Tensor& source_of(size_t input, std::span<const Tensor* const> arguments) const;
  void* data_of(size_t input, std::span<const Tensor* const> arguments,
                std::span<const NumberCell> numbers) const;
  void check_writable(std::span<const Tensor* const> arguments) const;
  void run_native(std::span<const Tensor* const> arguments, std::span<const NumberCell> numbers,
                  std::span<const loops::Constant> scalars, std::span<StoragePtr> outputs) const;
  void run_reference(std::span<const Tensor* const> arguments, std::span<const NumberCell> numbers,
                     std::span<const loops::Constant> scalars, std::span<StoragePtr> outputs) const;
  Tensor result(size_t k, std::span<const Tensor* const> arguments, std::span<const StoragePtr> outputs,
                const Tensor* results) const;
  std::vector<Tensor> run_graph(std::span<const Tensor* const> arguments,
                                std::span<const NumberCell> numbers) const;

  capture::Captured captured_;
  Stages stages_;
  Executables executables_;
  bool interpret_ = false;
  std::vector<Input> inputs_;                        // parallel to the graph's inputs
  std::vector<runtime::InputTensor> input_tensors_;  // without data
  std::vector<Output> outputs_;                      // parallel to the program's outputs
  std::vector<Result> results_;                      // parallel to the returned tensors
};

}  // namespace stax::compiler
