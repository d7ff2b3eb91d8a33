// Where every public operator call goes: into the trace of this thread, or to the eager backend.
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "stax/tensor.h"
#include "tensor/argument.h"
#include "tensor/sym_int.h"

namespace stax::capture {

using Arguments = std::vector<Argument<Tensor>>;

/// A trace in progress. Functional capture implements it; tensors whose impl answers is_traced() belong to
/// one.
class Trace : public SymbolicContext {
 public:
  /// Records one operator call (any class of row) and returns its traced results. Arguments are in schema
  /// order, defaults filled in; tensors among them may be concrete (the trace lifts them).
  virtual std::vector<Tensor> call(const graph::Op& op, Arguments arguments) = 0;
  /// The write of `source` (already of the dtype and shape of `self`, maybe expanded) into `self`, which may
  /// be traced or a concrete tensor that the traced function captured. `name` is the call's, for errors.
  virtual void write(const Tensor& self, const Tensor& source, std::string_view name) = 0;
  /// The gradients of `output`, a traced tensor of one element, with respect to `inputs`.
  virtual std::vector<Tensor> gradients(const Tensor& output, const std::vector<Tensor>& inputs) = 0;
  /// The number behind a symbolic Scalar that an operator needs as a number.
  virtual Argument<Tensor> scalar_argument(const Scalar& value) = 0;

  /// Where results of operators without tensors among their arguments lie, from here on.
  virtual void set_device(Device /*device*/) {}
  virtual Device device() const { return kCPU; }

  /// What an error says, and the values in this call of the size symbols that it names.
  virtual std::string with_values(std::string message) const { return message; }

  /// A traced tensor that the function computes of numbers alone, on another device: the same computed there.
  /// Nothing for other tensors.
  virtual std::optional<Tensor> made_on(Device /*device*/, const Tensor& /*tensor*/) { return std::nullopt; }

  /// OperatorScopes alive: sizes are compared by operators, not by the program.
  int32_t operators = 0;
};

/// Makes `trace` the one of this thread while the scope lives. Scopes nest; null suspends tracing.
class TraceScope {
 public:
  explicit TraceScope(Trace* trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;

 private:
  Trace* previous_;
  Trace* suspended_;
};

/// The trace of this thread, or null.
Trace* current_trace();
/// What is decided about sizes while the scope lives is asked by an operator that looks at them through
/// public functions.
class OperatorScope {
 public:
  OperatorScope() : trace_(current_trace()) {
    if (trace_ != nullptr) ++trace_->operators;
  }
  ~OperatorScope() {
    if (trace_ != nullptr) --trace_->operators;
  }
  OperatorScope(const OperatorScope&) = delete;

 private:
  Trace* trace_;
};

/// Ends tracing on this thread before its scope ends: what follows runs eagerly, and sizes that the program
/// took from the trace have the values of its example.
void suspend_trace();

/// Evaluates operators on concrete tensors. src/compiler implements and installs it.
class EagerBackend {
 public:
  virtual ~EagerBackend() = default;
  virtual std::vector<Tensor> call(const graph::Op& op, const Arguments& arguments) = 0;
  /// The same for an operator without tensors among its arguments, with results on `device`.
  virtual std::vector<Tensor> call_on(const graph::Op& op, const Arguments& arguments, Device device);
};

/// The backend of src/compiler, which defines this function.
EagerBackend& default_eager_backend();
/// Puts another backend in its place, or the default one back (null). For tests and tools; not while calls
/// run.
void install_eager_backend(EagerBackend* backend);
EagerBackend& eager_backend();

/// Calls an operator: in the trace of this thread where one is active, also when every argument is concrete
/// (a tensor that the traced function captured may be updated between calls), else in the eager backend. A
/// traced tensor met outside its thread's trace is a user error.
std::vector<Tensor> dispatch(const graph::Op& op, Arguments arguments);
/// The same with results on `device`.
std::vector<Tensor> dispatch_on(const graph::Op& op, Arguments arguments, Device device);
/// dispatch() for operators with one result.
Tensor dispatch_one(const graph::Op& op, Arguments arguments);
/// The in-place variant: the operator, then its result is written into argument 0, which is returned. User
/// errors: the result's dtype does not cast to self's, its shape does not broadcast to self's, self overlaps
/// itself, self is read-only.
Tensor dispatch_in_place(const graph::Op& op, Arguments arguments, std::string_view name);
/// The operator with `out` as the place of its results, which is returned. User errors: another number of
/// tensors or other shapes than the results have; dtypes that pointwise results do not cast to, or that are
/// not those of other results; what dispatch_in_place() refuses.
std::vector<Tensor> dispatch_out(const graph::Op& op, Arguments arguments, const std::vector<Tensor>& out);
/// copy_: the one primitive write. `source` is converted and broadcast.
void write(const Tensor& self, const Tensor& source, std::string_view name);

/// Calls an operator as Python does: by name ("sum", or "sum.dim_IntList"), positional and named arguments.
/// Overloads are tried in the order of their rows; the first that binds is called. `name_` calls the in-place
/// variant, `out` among the named arguments takes the results. UserError naming each overload and why it does
/// not fit when none does.
std::vector<Tensor> call(std::string_view name, Arguments positional,
                         std::vector<std::pair<std::string, Argument<Tensor>>> named = {});

/// Whether call() knows the name.
bool has_operator(std::string_view name);

/// Builds the arguments of a generated operator function.
class Call {
 public:
  Call(const graph::Op& op, size_t count) : op_(op) { arguments_.reserve(count); }
  Call& add(const Tensor& value);
  Call& add(const std::optional<Tensor>& value);
  Call& add(const TensorList& value);
  Call& add(const OptionalTensorList& value);
  Call& add(const Scalar& value);
  Call& add(const SymInt& value);
  Call& add(int64_t value);
  Call& add(double value);
  Call& add(bool value);
  Call& add(ExactBool value) { return add(value.value()); }
  Call& add(const OptionalNumber& value) { return value.value() ? add(*value.value()) : none(); }
  /// `repeat` > 1: a single number stands for that many (int[N]).
  Call& add(const IntList& value, int32_t repeat = 0);
  Call& add(const OptionalIntList& value, int32_t repeat = 0);
  Call& add(const FloatList& value);
  Call& add(const OptionalFloatList& value);
  Call& add(DType value);
  Call& add(std::string_view value);
  Call& add(ExactString value) { return add(value.value()); }
  /// The dtype, or none; results lie on the device.
  Call& add(const TensorOptions& value);
  template <class T>
  Call& add(const std::optional<T>& value) {
    return value ? add(*value) : none();
  }
  Call& none();

  std::vector<Tensor> all();
  Tensor one();
  void in_place(std::string_view name) { dispatch_in_place(op_, std::move(arguments_), name); }

 private:
  const graph::Op& op_;
  Arguments arguments_;
  std::optional<Device> device_;
};

}  // namespace stax::capture
