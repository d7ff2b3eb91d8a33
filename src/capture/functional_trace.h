// Functional capture: operators become nodes of a graph, and writes become new values.
//
// Tensors that share memory share a TracedStorage, which knows the current value of its base. A view is a
// list of view calls on the base; it is replayed when the base has a newer version. A write through a view
// goes back through the scatter rules of these calls and gives the base a new version, so that later reads of
// any alias see it. Inputs that overlap get a base of their own: the stretch of memory that holds them all,
// with each input as a strided view of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/captured.h"
#include "capture/dispatch.h"
#include "capture/traced_tensor.h"
#include "graph/builder.h"

namespace stax {
struct CompileOptions;
}

namespace stax::capture {

struct TraceOptions {
  /// Reading a value raises instead of ending the trace.
  bool refuse_reads = false;
  /// Evaluates what was traced so far: one tensor for each output.
  std::function<std::vector<Tensor>(Captured captured)> evaluate;
  /// Decides what the traced program asks about sizes; where null, the environment does.
  std::function<bool(ShapeEnv& env, const Condition& condition)> decide = {};
  /// Those of the compiled function that is traced; null where something else records.
  const CompileOptions* compile_options = nullptr;
};

class FunctionalTrace final : public Trace, public std::enable_shared_from_this<FunctionalTrace> {
 public:
  explicit FunctionalTrace(TraceOptions options);
  ~FunctionalTrace() override;
  /// A trace that ends when the returned pointer goes, however the traced function left: its tensors and it
  /// refer to each other, so somebody has to let go.
  static std::shared_ptr<FunctionalTrace> start(TraceOptions options);

  /// The traced tensor that stands for tensor argument number `position` of the call, with the sizes and
  /// strides that `meta` says, and for a number. Arguments come first, in order.
  Tensor argument(const Tensor& tensor, int32_t position, const graph::TensorMeta& meta);
  /// With its own sizes and strides.
  Tensor argument(const Tensor& tensor, int32_t position);
  Scalar number(const Scalar& value, int32_t position);

  std::vector<Tensor> call(const graph::Op& op, Arguments arguments) override;
  void write(const Tensor& self, const Tensor& source, std::string_view name) override;
  std::string with_values(std::string message) const override;
  std::vector<Tensor> gradients(const Tensor& output, const std::vector<Tensor>& inputs) override;
  Argument<Tensor> scalar_argument(const Scalar& value) override;
  int64_t fix(Expr value) override;
  void set_device(Device device) override { builder_.set_device(device); }
  Device device() const override { return builder_.device(); }
  ShapeEnv& env() { return *env_; }
  const CompileOptions* compile_options() const { return options_.compile_options; }
  bool decide(const Condition& condition) override;
  void check(const Condition& condition, std::string_view words, const std::source_location& where) override;
  Tensor constant(const Tensor& made) override;
  std::optional<Tensor> made_on(Device device, const Tensor& tensor) override;
  void on_read(const std::source_location& where) override;

  /// Ends the trace; `results` are what the function returned.
  Captured finish(std::span<const Tensor> results);
  /// The function's program ended the trace by reading a value: its results are concrete.
  bool was_read() const { return state_ == State::read; }
  const std::string& read_where() const { return read_where_; }

  // For TracedImpl
  void attach(TracedImpl* impl);
  void detach(TracedImpl* impl);
  bool running() const { return state_ == State::running; }
  /// Makes all live tensors of the trace concrete.
  void read(const std::source_location& where, std::string_view what);
  /// `impl` as a number that later writes do not change.
  Scalar number_of(TracedImpl& impl);
  /// The value of `impl`, an integer, as a size that only data determines.
  SymInt symbol_of(const TracedImpl& impl);
  /// The program asked where in its storage a tensor begins.
  void fix_offset(const TracedStorage& storage);
  /// The program looked at a tensor over `storage`, or only at its sizes.
  void note_use(const TracedStorage& storage);
  void fix_number(int32_t position) { number_matters_[static_cast<size_t>(position)] = 1; }

 private:
  enum class State : uint8_t { running, read, finished };
  using StoragePtr = std::shared_ptr<TracedStorage>;

  int64_t settled(Expr value) const;
  void check_running() const;
  void close();
  TracedImpl& traced(const Tensor& tensor, Tensor& holder);
  Tensor lift_constant(const Tensor& tensor);
  Tensor lift(const Tensor& tensor, const graph::TensorMeta* meta = nullptr);
  Tensor lift_new(const Tensor& tensor, const graph::TensorMeta& meta);
  /// What depends on where memory ends depends on all sizes: fixes them.
  std::vector<int64_t> fix(const std::vector<Expr>& list);
  std::pair<int64_t, int64_t> reach_of(const graph::TensorMeta& meta, int64_t offset);
  graph::Var value(TracedImpl& impl);
  graph::Var replay(const TracedStorage& storage, std::span<const ViewStep> steps);
  Tensor make(StoragePtr storage, std::vector<ViewStep> steps, graph::Var value);
  StoragePtr new_storage(graph::Var base);
  /// One base for the memory [low, high) (elements) and all `roots`, which lie in it.
  StoragePtr flatten(std::vector<StoragePtr> roots, int64_t low, int64_t high);
  void rebase(TracedStorage& from, const StoragePtr& to);
  Tensor as_strided(const Arguments& arguments);
  void write_traced(const Tensor& self, const Tensor& source, std::string_view name);
  void note_write(TracedStorage& storage, const TracedImpl& target, graph::Var source);
  std::vector<graph::VarArg> prepare(const graph::Op& op, const Arguments& arguments,
                                     std::vector<Tensor>& keep);
  std::vector<Tensor> wrap(const std::vector<graph::Var>& values, graph::NodeId first,
                           const std::vector<Tensor>& tensors);
  void number_random(graph::NodeId first);
  bool make_on(Device device, graph::NodeId id, std::map<graph::NodeId, std::vector<graph::Var>>& made);
  CapturedOutput output_of(const Tensor& result, std::map<const TracedStorage*, int32_t>& shared,
                           const std::map<const TracedStorage*, int32_t>& uses, Captured& out);
  void drop_unused(Captured& out) const;
  void find_used(Captured& out) const;

  TraceOptions options_;
  State state_ = State::running;
  std::string read_where_;
  std::shared_ptr<ShapeEnv> env_;
  graph::Graph graph_;
  graph::Builder builder_;
  std::vector<CapturedInput> inputs_;
  std::vector<StoragePtr> roots_;                         // with memory
  std::unordered_map<const TensorImpl*, Tensor> lifted_;  // concrete -> traced
  std::vector<Tensor> arguments_;                         // concrete
  std::vector<Tensor> constants_;                         // concrete, kept while `lifted_` knows them
  std::vector<char> offset_matters_, number_matters_;
  std::vector<char> used_;  // by tensor argument: something was asked of it
  Expr random_count_;
  std::map<std::pair<graph::NodeId, int32_t>, Expr> item_symbols_;  // of values that were asked for as sizes
  std::mutex live_mutex_;
  std::vector<TracedImpl*> live_;
};

/// The concrete tensor behind a traced one that was read; any other tensor as it is.
Tensor unwrapped(const Tensor& tensor);

}  // namespace stax::capture
