#include "compiler/eager_program.h"

#include <algorithm>
#include <array>

#include "graph/builder.h"
#include "graph/pass_table.h"
#include "lowering/lowering.h"
#include "ops/table.h"
#include "stax/random.h"
#include "support/check.h"

namespace stax::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeKind;
using graph::OpClass;
using graph::TensorMeta;
using graph::Value;
using graph::Var;
using graph::VarArg;

/// The input that `value` views, or -1.
int32_t viewed_input(const Graph& graph, Value value) {
  const Node* node = &graph.nodes[static_cast<size_t>(value.node)];
  while (node->kind == NodeKind::call && node->op->op_class == OpClass::view) {
    node = &graph.nodes[static_cast<size_t>(node->args[0].tensor().node)];
  }
  return node->kind == NodeKind::input ? node->input : -1;
}

/// The call as a graph whose inputs are the call's tensors, in order.
Graph build_graph(const graph::Op& op, const capture::Arguments& arguments, Layout layout, int64_t count,
                  ShapeEnv& env) {
  Graph graph;
  graph::Builder builder(ops::table(), env, graph);
  std::vector<VarArg> args;
  args.reserve(arguments.size());
  for (const auto& argument : arguments) {
    args.push_back(map_tensors<Var>(argument, [&](const Tensor& tensor) {
      const StridedImpl& impl = strided(tensor);
      const bool as_vector = layout == Layout::flat && impl.dim() > 0;
      return builder.input(as_vector ? graph::dense(impl.dtype(), {Expr(count)}) : relative_meta(impl));
    }));
  }
  for (const Var& result : builder.call_bound(op, std::move(args))) {
    graph.outputs.push_back({result.value(), viewed_input(graph, result.value())});
  }
  return graph;
}

bool has_class(const Graph& graph, OpClass op_class) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.kind == NodeKind::call && node.op->op_class == op_class;
  });
}

int64_t random_count(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::call || (node.op->effects & graph::kRandom) == 0) continue;
    for (const TensorMeta& meta : node.results) count += meta.numel().value();
  }
  return count;
}

EagerProgram::Output make_output(const loops::Buffer& buffer) {
  EagerProgram::Output output;
  output.dtype = buffer.dtype;
  output.extents = extents_of(TensorMeta{buffer.dtype, {}, buffer.sizes, buffer.strides, Expr(0)});
  Expr last = 0;  // checked: a size that does not fit is a user error
  bool empty = false;
  for (size_t d = 0; d < buffer.sizes.size(); ++d) {
    empty = empty || buffer.sizes[d].is(0);
    last = last + (buffer.sizes[d] - 1) * buffer.strides[d];
  }
  output.bytes = empty ? 0 : ((last + 1) * Expr(itemsize(buffer.dtype))).value();
  return output;
}

EagerProgram::Result make_result(const lowering::ResultView& view, const loops::Program& program) {
  EagerProgram::Result result;
  result.output = view.output;
  result.input = view.alias_of_input;
  result.dtype = view.meta.dtype;
  result.extents = extents_of(view.meta);
  result.offset = view.meta.offset.value();
  if (view.output >= 0) {
    const loops::Buffer& buffer =
        program.buffers[static_cast<size_t>(program.outputs[static_cast<size_t>(view.output)])];
    result.whole =
        buffer.sizes == view.meta.sizes && buffer.strides == view.meta.strides && result.offset == 0;
  }
  return result;
}

}  // namespace

graph::TensorMeta relative_meta(const StridedImpl& tensor) {
  return {tensor.dtype(), tensor.device(), to_exprs(tensor.sizes()), to_exprs(tensor.strides()), Expr(0)};
}

Extents extents_of(const graph::TensorMeta& meta) {
  Extents extents(meta.dim());
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    extents.sizes()[d] = meta.sizes[d].value();
    extents.strides()[d] = meta.strides[d].value();
  }
  return extents;
}

Tensor view_of(const Tensor& handle, const StridedImpl& base, DType dtype, const Extents& extents,
               int64_t offset) {
  const auto same = [](SizeList a, const SymInt* b) {
    return std::equal(a.begin(), a.end(), b,
                      [](const SymInt& x, const SymInt& y) { return x.value() == y.value(); });
  };
  if (offset == 0 && dtype == base.dtype() && extents.rank() == base.dim() &&
      same(base.sizes(), extents.sizes()) && same(base.strides(), extents.strides())) {
    return handle;
  }
  const int64_t start = static_cast<int64_t>(base.offset()) * itemsize(base.dtype()) / itemsize(dtype);
  return new_view(base, dtype, extents, start + offset);
}

std::shared_ptr<const EagerProgram> make_program(const graph::Op& op, const capture::Arguments& arguments,
                                                 Layout layout, int64_t count) {
  ShapeEnv env;
  Graph graph = build_graph(op, arguments, layout, count, env);
  auto program = std::make_shared<EagerProgram>();
  program->flat = layout == Layout::flat;
  if (has_class(graph, OpClass::dynamic)) {
    program->graph = std::make_unique<Graph>(std::move(graph));
    return program;
  }
  graph = graph::run_passes({ops::table(), env}, std::move(graph));
  program->random_count = random_count(graph);
  lowering::Lowered lowered = lowering::lower(ops::table(), graph, env);
  for (const loops::BufferId id : lowered.program.outputs) {
    program->outputs.push_back(make_output(lowered.program.buffers[static_cast<size_t>(id)]));
  }
  for (const lowering::ResultView& view : lowered.results) {
    program->results.push_back(make_result(view, lowered.program));
  }
  program->executable = reference::Executable::prepare(std::move(lowered.program));
  return program;
}

std::vector<Tensor> run_program(const EagerProgram& program, const std::vector<const StridedImpl*>& inputs,
                                const std::vector<const Tensor*>& handles, const StridedImpl* shape) {
  constexpr size_t kInline = 16;
  void* inline_pointers[2 * kInline];
  std::vector<void*> more;
  void** pointers = inline_pointers;
  const size_t output_count = program.outputs.size();
  if (inputs.size() + output_count > 2 * kInline) {
    more.resize(inputs.size() + output_count);
    pointers = more.data();
  }
  for (size_t i = 0; i < inputs.size(); ++i) pointers[i] = inputs[i]->data();
  std::vector<Tensor> outputs;
  outputs.reserve(output_count);
  for (size_t k = 0; k < output_count; ++k) {
    const EagerProgram::Output& output = program.outputs[k];
    Extents extents = program.flat ? dense_extents(shape->sizes().values()) : output.extents;
    StoragePtr storage(Storage::allocate(output.bytes, kCPU));
    pointers[inputs.size() + k] = storage->data();
    outputs.emplace_back(
        detail::ImplPtr(new StridedImpl(output.dtype, std::move(extents), 0, std::move(storage))));
  }
  loops::Constant scalars[2];
  if (program.random_count > 0) {
    const auto [seed, offset] = default_generator().draw(static_cast<uint64_t>(program.random_count));
    scalars[0] = loops::Constant::of(static_cast<int64_t>(seed));
    scalars[1] = loops::Constant::of(static_cast<int64_t>(offset));
  }
  if (output_count > 0) {
    program.executable->run({.inputs = {pointers, inputs.size()},
                             .outputs = {pointers + inputs.size(), output_count},
                             .scalars = {scalars, size_t{program.random_count > 0 ? 2u : 0u}}});
  }
  if (program.flat) return outputs;
  bool plain = program.results.size() == output_count;
  for (size_t k = 0; plain && k < output_count; ++k) {
    plain = program.results[k].whole && program.results[k].output == static_cast<int32_t>(k);
  }
  if (plain) return outputs;
  std::vector<Tensor> results;
  results.reserve(program.results.size());
  for (const EagerProgram::Result& r : program.results) {
    if (r.output >= 0) {
      const Tensor& output = outputs[static_cast<size_t>(r.output)];
      results.push_back(r.whole ? output : view_of(output, strided(output), r.dtype, r.extents, r.offset));
    } else {
      const auto input = static_cast<size_t>(r.input);
      results.push_back(view_of(*handles[input], *inputs[input], r.dtype, r.extents, r.offset));
    }
  }
  return results;
}

std::optional<DType> run_time_number(const graph::Op& op, const capture::Arguments& arguments,
                                     size_t position) {
  const auto& argument = arguments[position];
  // Powers have rules for single exponents, so theirs stay part of the program.
  if (!argument.is_number() || op.schema.params[position].type != graph::ParamType::tensor ||
      op.schema.name == "pow") {
    return std::nullopt;
  }
  if (argument.number().kind == Number::Kind::integer) {
    // Compared with narrow integers, or bounding them, an unknown number would need wide arithmetic.
    const bool exact = op.dtype_rule == graph::DTypeRule::compare || op.dtype_rule == graph::DTypeRule::bound;
    for (const auto& other : arguments) {
      if (exact && other.is_tensor() && !is_floating_point(other.tensor().dtype()) &&
          other.tensor().dtype() != DType::int64) {
        return std::nullopt;
      }
    }
    return DType::int64;
  }
  if (argument.number().kind == Number::Kind::boolean) return std::nullopt;
  DType dtype = DType::float32;
  for (const auto& other : arguments) {
    if (!other.is_tensor()) continue;
    if (is_half(other.tensor().dtype())) return std::nullopt;  // the number would be rounded to the half type
    if (other.tensor().dtype() == DType::float64) dtype = DType::float64;
  }
  return dtype;
}

std::shared_ptr<const EagerProgram> make_general_program(const graph::Op& op,
                                                         const capture::Arguments& arguments, int64_t count) {
  ShapeEnv env;
  auto program = std::make_shared<EagerProgram>();
  program->flat = true;
  program->count = env.new_symbol(SymbolKind::size, count, Interval::at_least(2));
  Graph graph;
  graph::Builder builder(ops::table(), env, graph);
  std::vector<VarArg> args;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (const auto dtype = run_time_number(op, arguments, i)) {
      args.emplace_back(builder.input(graph::dense(*dtype, {})));
      continue;
    }
    args.push_back(map_tensors<Var>(arguments[i], [&](const Tensor& tensor) {
      const std::vector<Expr> sizes =
          tensor.dim() == 0 ? std::vector<Expr>() : std::vector<Expr>{program->count};
      return builder.input(graph::dense(tensor.dtype(), sizes));
    }));
  }
  for (const Var& result : builder.call_bound(op, std::move(args)))
    graph.outputs.push_back({result.value(), -1});
  graph = graph::run_passes({ops::table(), env}, std::move(graph));
  lowering::Lowered lowered = lowering::lower(ops::table(), graph, env);
  STAX_ASSERT(lowered.program.outputs.size() == 1 && lowered.results.size() == 1 && env.guards().empty(),
              "{}: expected one result and no guard of a pointwise operator", op.schema.full_name());
  program->outputs.resize(1);
  program->outputs[0].dtype = lowered.results[0].meta.dtype;
  program->executable = reference::Executable::prepare(std::move(lowered.program));
  return program;
}

std::vector<Tensor> run_general_program(const EagerProgram& program, const graph::Op& op,
                                        const capture::Arguments& arguments, const StridedImpl& shape) {
  std::vector<void*> inputs;
  std::vector<std::array<std::byte, 8>> numbers(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (const auto dtype = run_time_number(op, arguments, i)) {
      const Number& number = arguments[i].number();
      fill_elements({numbers[i].data(), *dtype, {}, {}},
                    number.is_float() ? Scalar(number.floating) : Scalar(number.integer.value()));
      inputs.push_back(numbers[i].data());
    } else if (arguments[i].is_tensor()) {
      inputs.push_back(strided(arguments[i].tensor()).data());
    }
  }
  const int64_t count = shape.element_count();
  const Tensor result = new_tensor(program.outputs[0].dtype, shape.sizes().values());
  void* output = strided(result).data();
  const std::unordered_map<Symbol, int64_t> symbols = {{program.count, count}};
  program.executable->run({.inputs = inputs, .outputs = {&output, 1}, .scalars = {}, .symbols = &symbols});
  return {result};
}

namespace {

/// Runs a graph node by node, with the sizes that data determined filled in as they appear.
class Interpreter {
 public:
  Interpreter(const Graph& graph, const std::vector<const Tensor*>& inputs, capture::EagerBackend& backend)
      : graph_(graph), inputs_(inputs), backend_(backend), values_(graph.nodes.size()) {}

  std::vector<Tensor> run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      values_[n] = evaluate(node);
      for (size_t k = 0; k < node.results.size(); ++k) bind(node.results[k], values_[n][k]);
    }
    std::vector<Tensor> results;
    for (const graph::Output& output : graph_.outputs) results.push_back(value(output.value));
    return results;
  }

 private:
  const Tensor& value(Value v) const {
    return values_[static_cast<size_t>(v.node)][static_cast<size_t>(v.result)];
  }

  std::vector<Tensor> evaluate(const Node& node) const {
    if (node.kind == NodeKind::input) return {*inputs_[static_cast<size_t>(node.input)]};
    if (node.kind == NodeKind::constant) {
      const TensorMeta& meta = node.results[0];
      const Tensor result = new_tensor(meta.dtype, extents_of(meta), meta.device);
      std::copy(node.data->begin(), node.data->end(), strided(result).data());
      return {result};
    }
    capture::Arguments arguments;
    for (const auto& argument : node.args) arguments.push_back(concrete(argument));
    return backend_.call(*node.op, arguments);
  }

  Argument<Tensor> concrete(const Argument<Value>& argument) const {
    Argument<Tensor> result = map_tensors<Tensor>(argument, [&](Value v) { return value(v); });
    if (auto* list = std::get_if<std::vector<Expr>>(&result.value)) {
      for (Expr& e : *list) e = number(e);
    } else if (auto* scalar = std::get_if<Number>(&result.value); scalar != nullptr && !scalar->is_float()) {
      scalar->integer = number(scalar->integer);
    }
    return result;
  }

  Expr number(Expr e) const {
    if (e.is_constant()) return e;
    return evaluate_symbols(e);
  }

  int64_t evaluate_symbols(Expr e) const {
    return stax::evaluate(e, [&](Symbol symbol) {
      const auto it = symbols_.find(symbol);
      STAX_ASSERT(it != symbols_.end(), "the size {} is used before it is known", symbol.str());
      return it->second;
    });
  }

  void bind(const TensorMeta& meta, const Tensor& tensor) {
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      if (meta.sizes[d].kind() == ExprKind::symbol) symbols_[meta.sizes[d].symbol()] = tensor.sizes()[d];
    }
  }

  const Graph& graph_;
  const std::vector<const Tensor*>& inputs_;
  capture::EagerBackend& backend_;
  std::vector<std::vector<Tensor>> values_;
  std::unordered_map<Symbol, int64_t> symbols_;
};

}  // namespace

std::vector<Tensor> interpret(const graph::Graph& graph, const std::vector<const Tensor*>& inputs,
                              capture::EagerBackend& backend) {
  return Interpreter(graph, inputs, backend).run();
}

}  // namespace stax::compiler
