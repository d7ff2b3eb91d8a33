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
  /// be traced or a concrete tensor that the traced function captured.
  virtual void write(const Tensor& self, const Tensor& source) = 0;
  /// The number behind a symbolic Scalar that an operator needs as a number.
  virtual Argument<Tensor> scalar_argument(const Scalar& value) = 0;
};

/// Makes `trace` the one of this thread while the scope lives. Scopes nest; null suspends tracing.
class TraceScope {
 public:
  explicit TraceScope(Trace* trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;

 private:
  Trace* previous_;
};

/// The trace of this thread, or null.
Trace* current_trace();

/// Evaluates operators on concrete tensors. src/compiler implements and installs it.
class EagerBackend {
 public:
  virtual ~EagerBackend() = default;
  virtual std::vector<Tensor> call(const graph::Op& op, const Arguments& arguments) = 0;
};

void install_eager_backend(EagerBackend* backend);
EagerBackend& eager_backend();

/// Calls an operator. Goes to the trace if one is active and an argument is traced, or if one is active and
/// the operator has no tensor argument; to the eager backend otherwise. A traced tensor met outside its
/// thread's trace is a user error.
std::vector<Tensor> dispatch(const graph::Op& op, Arguments arguments);
/// dispatch() for operators with one result.
Tensor dispatch_one(const graph::Op& op, Arguments arguments);
/// The in-place variant: the operator, then its result is written into argument 0. User errors: the result's
/// dtype does not cast to self's, its shape does not broadcast to self's, self overlaps itself, self is
/// read-only.
Tensor& dispatch_in_place(const graph::Op& op, Arguments arguments, std::string_view name);
/// copy_: the one primitive write. `source` is converted and broadcast.
void write(const Tensor& self, const Tensor& source, std::string_view name);

/// Calls an operator as Python does: by name ("sum", or "sum.dim_IntList"), positional and named arguments.
/// Overloads are tried in the order of their rows; the first that binds is called. `name_` calls the in-place
/// variant. UserError naming each overload and why it does not fit when none does.
std::vector<Tensor> call(std::string_view name, Arguments positional,
                         std::vector<std::pair<std::string, Argument<Tensor>>> named = {});

/// Whether call() knows the name.
bool has_operator(std::string_view name);

/// Builds the arguments of a generated operator function.
class Call {
 public:
  Call(const graph::Op& op, size_t count) : op_(op) { arguments_.reserve(count); }
  void add(const Tensor& value);
  void add(const std::optional<Tensor>& value);
  void add(const TensorList& value);
  void add(const OptionalTensorList& value);
  void add(const Scalar& value);
  void add(const std::optional<Scalar>& value);
  void add(const SymInt& value);
  void add(const std::optional<SymInt>& value);
  void add(int64_t value);
  void add(const std::optional<int64_t>& value);
  /// `repeat` > 1: a single number stands for that many (int[N]).
  void add(const IntList& value, int32_t repeat = 0);
  void add(const OptionalIntList& value, int32_t repeat = 0);
  void add(const FloatList& value);
  void add(const OptionalFloatList& value);
  void add(double value);
  void add(const std::optional<double>& value);
  void add(bool value);
  void add(const std::optional<bool>& value);
  void add(std::optional<DType> value);
  void add(std::string_view value);
  void add(std::optional<std::string_view> value);

  std::vector<Tensor> all() { return dispatch(op_, std::move(arguments_)); }
  Tensor one() { return dispatch_one(op_, std::move(arguments_)); }
  Tensor& in_place(std::string_view name) { return dispatch_in_place(op_, std::move(arguments_), name); }

 private:
  const graph::Op& op_;
  Arguments arguments_;
};

}  // namespace stax::capture
