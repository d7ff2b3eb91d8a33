// A captured function, compiled: runs on the tensors of a call.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "capture/captured.h"
#include "compiler/pipeline.h"
#include "compiler/staged_inputs.h"
#include "symbolic/expr_program.h"
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
  /// For the device of its inputs. `interpret`: runs the captured graph operator by operator instead (backend
  /// "debug").
  static std::shared_ptr<const CompiledProgram> make(capture::Captured captured,
                                                     const PipelineOptions& options, bool interpret = false);
  /// Of stages that ran already.
  static std::shared_ptr<const CompiledProgram> make(capture::Captured captured, Stages stages,
                                                     Executables executables);

  /// `arguments` are the tensor arguments of the call, whose metadata are those that the program was made
  /// for. Writes the results to `results`, one for each returned tensor, and to `integers`, where given, the
  /// returned sizes. `symbols`: the values of the size symbols, by their numbers. `late` receives, where
  /// given, those of the symbols that only data determines.
  void run(std::span<const Tensor* const> arguments, std::span<const NumberCell> numbers, Tensor* results,
           std::span<const int64_t> symbols = {}, int64_t* integers = nullptr,
           std::vector<int64_t>* late = nullptr) const;

  size_t result_count() const { return captured_.outputs.size(); }
  const capture::Captured& captured() const { return captured_; }
  const Stages& stages() const { return stages_; }
  bool mutates() const { return !captured_.graph.write_backs.empty(); }

 private:
  /// Sizes and strides of a tensor: numbers, or registers of numbers_ where they depend on the call.
  struct Layout {
    Extents fixed;
    std::vector<int32_t> sizes, strides;  // registers; empty where fixed
  };
  /// A returned tensor.
  struct Result {
    int32_t output = -1;  // of the program: it lies in that storage
    DType dtype = DType::float32;
    Layout layout;
    int32_t offset = 0;  // register, in elements
    Device device;       // of the tensor; its storage lies on the program's
    bool copy = false;   // into storage of its own: another result has that one, or the layout is not the one
    Layout wanted;       // that the function's operators give, which the copy gets
  };
  /// One call.
  struct Call {
    std::span<const Tensor* const> arguments;
    std::span<const NumberCell> numbers;
    std::span<const int64_t> symbols;
    std::span<int64_t> registers;
    std::vector<int64_t> late = {};  // symbols that only data determines
  };

  struct GraphRun;  // of run_graph()

  void prepare();
  /// Gives up on stages: the program runs operator by operator.
  void run_operators(const char* reason);
  Layout layout_of(const graph::TensorMeta& meta);
  static Extents extents(const Layout& layout, const Call& call);
  const Tensor& source_of(size_t input, const Call& call) const;
  void* data_of(size_t input, const Call& call, StagedInputs& staged) const;
  /// Inputs that the program has written and that lie elsewhere.
  void write_back(const Call& call, const StagedInputs& staged) const;
  void check_writable(const Call& call) const;
  void know_late(const Call& call) const;
  void run_native(Call& call, std::span<const loops::Constant> scalars, std::span<StoragePtr> outputs) const;
  void run_reference(const Call& call, std::span<const loops::Constant> scalars,
                     std::span<StoragePtr> outputs) const;
  void run_executables(Call& call, Tensor* results) const;
  Tensor result(size_t k, const Call& call, std::span<const StoragePtr> outputs, const Tensor* results) const;
  std::vector<Tensor> run_graph(Call& call) const;

  capture::Captured captured_;
  Stages stages_;
  Executables executables_;
  Device device_;  // of the tensors that it computes
  bool interpret_ = false;
  ExprProgram numbers_;                              // what depends on the symbols
  std::vector<runtime::InputTensor> input_tensors_;  // without data
  std::vector<std::vector<int64_t>> input_numbers_;  // what they point into: sizes, strides, sizes, ...
  std::vector<int32_t> output_bytes_;                // registers; parallel to the program's outputs
  std::vector<Result> results_;                      // parallel to the returned tensors
  std::vector<int32_t> integers_;                    // registers of the returned sizes
  int32_t random_count_ = 0;                         // register
  size_t late_symbols_ = 0;                          // that only data determines
};

}  // namespace stax::compiler
