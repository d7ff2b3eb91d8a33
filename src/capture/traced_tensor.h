// Tensors of a trace, and the memory that they share.
#pragma once

#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "tensor/tensor_impl.h"

namespace stax::capture {

class FunctionalTrace;
class TracedImpl;

/// One view call on the way from a base to a view; argument 0 is what it is called on.
struct ViewStep {
  const graph::Op* op = nullptr;
  std::vector<graph::VarArg> args;
};

/// Memory while tracing: the value that its base has now.
struct TracedStorage {
  graph::Var base;
  graph::TensorMeta meta;  // of the base; stays, whatever is written
  int32_t version = 0;     // grows with every write
  int64_t start = 0;       // element of the memory at which the base begins
  bool flat = false;       // the base is one dense dimension
  // Where the memory exists already:
  int32_t input = -1;    // the graph input that holds the base
  Tensor memory;         // a tensor over it
  int64_t capacity = 0;  // its elements
  std::vector<TracedImpl*> aliases;
  /// Parts of the memory that were written, in order, with what was written; unless all of it was.
  struct Part {
    graph::TensorMeta region;  // from element 0 of the base
    graph::Var value;
  };
  std::vector<Part> written;
  bool written_whole = false;

  bool exists() const { return memory.defined(); }
};

class TracedImpl final : public TensorImpl {
 public:
  TracedImpl(std::shared_ptr<FunctionalTrace> trace, std::shared_ptr<TracedStorage> storage,
             std::vector<ViewStep> steps, graph::Var value);
  ~TracedImpl() override;

  StridedImpl& concrete(const std::source_location& where) override;
  bool is_traced() const override { return !memory.defined(); }
  Scalar item(const std::source_location& where) override;
  SymInt sym_item(const std::source_location& where) override;
  const void* storage_id() const override;
  void on_offset_read() override;
  void on_size_read(int64_t dim, const std::source_location& where) override;

  /// Takes over what the tensor became when the trace was read.
  void become(const Tensor& tensor);
  const FunctionalTrace& trace() const { return *trace_; }

  // The trace's own notes
  std::shared_ptr<TracedStorage> storage;
  std::vector<ViewStep> steps;
  graph::Var value;  // at `version` of the storage
  int32_t version = 0;
  Tensor memory;  // once the trace was read
  // A number (Scalar::traced): promotes as numbers do.
  bool is_number = false;
  Scalar::Kind kind = Scalar::Kind::integer;
  int32_t number_argument = -1;  // of the call, with its value in `known`
  Tensor known;
  std::optional<std::source_location> item_where;
  graph::Var item_of;  // the value whose item() it is

 private:
  std::shared_ptr<FunctionalTrace> trace_;
};

/// The traced tensor behind `tensor`, or null.
inline TracedImpl* as_traced(const Tensor& tensor) {
  return tensor.impl()->is_traced() ? static_cast<TracedImpl*>(tensor.impl()) : nullptr;
}

/// Elements [first, second) that a tensor of these sizes and strides reaches from `offset` on.
std::pair<int64_t, int64_t> reach(std::span<const int64_t> sizes, std::span<const int64_t> strides,
                                  int64_t offset);

/// "file:line".
std::string location_text(const std::source_location& where);

}  // namespace stax::capture
