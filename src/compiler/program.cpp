#include "compiler/program.h"

#include <algorithm>

#include "capture/dispatch.h"
#include "compiler/small_array.h"
#include "schedule/memory_plan.h"
#include "stax/random.h"
#include "support/check.h"
#include "support/log.h"

namespace stax::compiler {

using capture::CapturedInput;
using capture::CapturedOutput;
using graph::Node;
using graph::NodeKind;
using graph::TensorMeta;

namespace {

std::vector<int64_t> numbers_of(const std::vector<Expr>& list) {
  std::vector<int64_t> out;
  for (Expr e : list) out.push_back(e.value());
  return out;
}

Extents extents(const TensorMeta& meta) {
  return extents_of(numbers_of(meta.sizes), numbers_of(meta.strides));
}

/// Whether the elements lie alike; strides along one element do not count.
bool same_layout(const TensorMeta& a, const TensorMeta& b) {
  for (size_t d = 0; d < a.sizes.size(); ++d) {
    if (!a.sizes[d].is(1) && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

Tensor tensor_over(DType dtype, Extents extents, int64_t offset, StoragePtr storage) {
  return Tensor(detail::ImplPtr(new StridedImpl(dtype, std::move(extents), offset, std::move(storage))));
}

}  // namespace

namespace {

/// Results that are parts of one storage need it laid out as the trace saw it.
void check_layouts(const capture::Captured& captured, const Stages& stages) {
  for (const CapturedOutput& output : captured.outputs) {
    if (output.output < 0 || output.whole) continue;
    const auto k = static_cast<size_t>(output.output);
    STAX_ASSERT(
        stages.results[k].meta.strides == captured.graph.meta(captured.graph.outputs[k].value).strides,
        "[compile] the passes changed the layout of result {}, which other results share", k);
  }
}

}  // namespace

std::shared_ptr<const CompiledProgram> CompiledProgram::make(capture::Captured captured,
                                                             const PipelineOptions& options, bool interpret) {
  auto program = std::make_shared<CompiledProgram>();
  program->interpret_ = interpret;
  if (!interpret) {
    try {
      program->stages_ = run_stages(captured.graph, *captured.env, options);
      check_layouts(captured, program->stages_);
      program->executables_ = build(program->stages_, options);
    } catch (const InternalError& error) {
      if (options.strict_native) throw;
      program->interpret_ = true;
      program->stages_ = {};
      program->stages_.fallback = error.what();
      log::warn(fmt::format("a compiled function runs operator by operator: {}", error.what()));
    }
  }
  if (program->interpret_) {
    program->stages_.captured = program->stages_.graph = captured.graph;
    program->stages_.target = "debug";
  }
  program->captured_ = std::move(captured);
  program->prepare();
  return program;
}

std::shared_ptr<const CompiledProgram> CompiledProgram::make(capture::Captured captured, Stages stages,
                                                             Executables executables) {
  auto program = std::make_shared<CompiledProgram>();
  program->stages_ = std::move(stages);
  program->executables_ = std::move(executables);
  program->captured_ = std::move(captured);
  program->prepare();
  return program;
}

void CompiledProgram::prepare() {
  const graph::Graph& graph = captured_.graph;
  for (const graph::NodeId id : graph.inputs) {
    const TensorMeta& meta = graph.nodes[static_cast<size_t>(id)].results[0];
    inputs_.push_back({numbers_of(meta.sizes), numbers_of(meta.strides)});
    input_tensors_.push_back({nullptr, meta.dtype, {}, {}});
  }
  for (size_t k = 0; k < inputs_.size(); ++k) {
    input_tensors_[k].sizes = inputs_[k].sizes;
    input_tensors_[k].strides = inputs_[k].strides;
  }
  for (const loops::BufferId b : stages_.program.outputs) {
    outputs_.push_back({schedule::storage_bytes(stages_.program.buffers[static_cast<size_t>(b)]).value()});
  }
  std::vector<int32_t> owner(outputs_.size(), -1);  // the graph output that has the storage
  for (const CapturedOutput& output : captured_.outputs) {
    Result& result = results_.emplace_back();
    if (output.same_as >= 0 || output.argument >= 0 || output.tensor.defined()) continue;
    result.dtype = output.meta.dtype;
    result.extents = extents(output.meta);
    result.offset = output.meta.offset.value();
    if (output.output < 0 || interpret_) continue;
    const lowering::ResultView& view = stages_.results[static_cast<size_t>(output.output)];
    result.output = view.output;
    result.layout = result.extents;
    if (output.whole) {
      result.copy = !same_layout(view.meta, output.meta);
      result.extents = result.copy ? extents(view.meta) : result.layout;
      result.offset = view.meta.offset.value();
    } else {
      result.offset += view.meta.offset.value() * itemsize(view.meta.dtype) / itemsize(result.dtype);
    }
    int32_t& first = owner[static_cast<size_t>(view.output)];
    result.copy = result.copy || (first >= 0 && first != output.output);
    if (first < 0) first = output.output;
  }
}

const Tensor& CompiledProgram::source_of(size_t input, std::span<const Tensor* const> arguments) const {
  const CapturedInput& source = captured_.inputs[input];
  return source.argument >= 0 ? *arguments[static_cast<size_t>(source.argument)] : source.tensor;
}

void* CompiledProgram::data_of(size_t input, std::span<const Tensor* const> arguments,
                               std::span<const NumberCell> numbers) const {
  const CapturedInput& source = captured_.inputs[input];
  if (source.number >= 0) return const_cast<NumberCell*>(&numbers[static_cast<size_t>(source.number)]);
  const StridedImpl& impl = strided(source_of(input, arguments));
  if (!source.flat) return impl.data();
  return impl.storage()->data() + source.start * itemsize(input_tensors_[input].dtype);
}

void CompiledProgram::check_writable(std::span<const Tensor* const> arguments) const {
  for (const graph::WriteBack& w : captured_.graph.write_backs) {
    STAX_CHECK(strided(source_of(static_cast<size_t>(w.input), arguments)).storage()->writable(),
               "a compiled function writes to a tensor that was handed over as read-only; clone it first");
  }
}

void CompiledProgram::run_native(std::span<const Tensor* const> arguments,
                                 std::span<const NumberCell> numbers,
                                 std::span<const loops::Constant> scalars,
                                 std::span<StoragePtr> outputs) const {
  SmallArray<runtime::InputTensor, 12> tensors(input_tensors_.size());
  for (size_t k = 0; k < tensors.size(); ++k) {
    tensors[k] = input_tensors_[k];
    tensors[k].data = data_of(k, arguments, numbers);
  }
  SmallArray<runtime::OutputTensor, 8> made(outputs.size());
  runtime::RunOutputs out{made, {}};
  executables_.plan->run({tensors, scalars, {}}, out);
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k] = StoragePtr(Storage::own(made[k].data, made[k].bytes, kCPU));
  }
}

void CompiledProgram::run_reference(std::span<const Tensor* const> arguments,
                                    std::span<const NumberCell> numbers,
                                    std::span<const loops::Constant> scalars,
                                    std::span<StoragePtr> outputs) const {
  SmallArray<void*, 12> ins(input_tensors_.size());
  for (size_t k = 0; k < ins.size(); ++k) ins[k] = data_of(k, arguments, numbers);
  SmallArray<void*, 8> outs(outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k] = StoragePtr(Storage::allocate(outputs_[k].bytes, kCPU));
    outs[k] = outputs[k]->data();
  }
  executables_.reference->run({.inputs = ins, .outputs = outs, .scalars = scalars});
}

Tensor CompiledProgram::result(size_t k, std::span<const Tensor* const> arguments,
                               std::span<const StoragePtr> outputs, const Tensor* results) const {
  const CapturedOutput& output = captured_.outputs[k];
  const Result& facts = results_[k];
  if (output.same_as >= 0) return results[output.same_as];
  if (output.argument >= 0) return *arguments[static_cast<size_t>(output.argument)];
  if (output.tensor.defined()) return output.tensor;
  if (output.input >= 0) {
    const auto input = static_cast<size_t>(output.input);
    const CapturedInput& source = captured_.inputs[input];
    const StridedImpl& base = strided(source_of(input, arguments));
    const int64_t width = itemsize(input_tensors_[input].dtype);
    const int64_t start =
        (source.flat ? source.start : int64_t{base.offset()}) * width / itemsize(facts.dtype);
    return tensor_over(facts.dtype, facts.extents, start + facts.offset, base.storage());
  }
  const Tensor tensor =
      tensor_over(facts.dtype, facts.extents, facts.offset, outputs[static_cast<size_t>(facts.output)]);
  if (!facts.copy) return tensor;
  const Tensor copy = new_tensor(facts.dtype, facts.layout);
  copy_elements(strided(tensor).view(), strided(copy).view());
  return copy;
}

void CompiledProgram::run(std::span<const Tensor* const> arguments, std::span<const NumberCell> numbers,
                          Tensor* results) const {
  if (mutates()) check_writable(arguments);
  if (interpret_) {
    std::vector<Tensor> out = run_graph(arguments, numbers);
    std::move(out.begin(), out.end(), results);
    return;
  }
  loops::Constant scalars[2];
  if (captured_.random_count > 0) {
    const auto [seed, offset] = default_generator().draw(static_cast<uint64_t>(captured_.random_count));
    scalars[0] = loops::Constant::of(static_cast<int64_t>(seed));
    scalars[1] = loops::Constant::of(static_cast<int64_t>(offset));
  }
  const std::span<const loops::Constant> given(scalars, stages_.program.scalars.size());
  SmallArray<StoragePtr, 8> outputs(outputs_.size());
  if (executables_.plan) {
    run_native(arguments, numbers, given, outputs);
  } else {
    run_reference(arguments, numbers, given, outputs);
  }
  for (size_t k = 0; k < results_.size(); ++k) results[k] = result(k, arguments, outputs, results);
}

// ---- operator by operator ----

namespace {

/// `value` laid out as the graph says.
Tensor laid_out(const Tensor& value, const TensorMeta& meta) {
  const StridedImpl& impl = strided(value);
  if (impl.strides().values() == numbers_of(meta.strides)) return value;
  const Tensor out = new_tensor(meta.dtype, extents(meta));
  copy_elements(impl.view(), strided(out).view());
  return out;
}

}  // namespace

std::vector<Tensor> CompiledProgram::run_graph(std::span<const Tensor* const> arguments,
                                               std::span<const NumberCell> numbers) const {
  const graph::Graph& graph = captured_.graph;
  std::vector<std::vector<Tensor>> values(graph.nodes.size());
  const auto value = [&](const graph::Value& v) {
    return values[static_cast<size_t>(v.node)][static_cast<size_t>(v.result)];
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const TensorMeta& meta = node.results[0];
    switch (node.kind) {
      case NodeKind::input: {
        const auto k = static_cast<size_t>(node.input);
        const int64_t width = itemsize(meta.dtype);
        if (captured_.inputs[k].number >= 0) {
          const Tensor number = new_tensor(meta.dtype, extents(meta));
          std::copy_n(static_cast<std::byte*>(data_of(k, arguments, numbers)), width, strided(number).data());
          values[n] = {number};
          break;
        }
        const StridedImpl& base = strided(source_of(k, arguments));
        const int64_t offset = captured_.inputs[k].flat ? captured_.inputs[k].start : int64_t{base.offset()};
        values[n] = {new_view(base, meta.dtype, extents(meta), offset)};
        break;
      }
      case NodeKind::constant: {
        const Tensor constant = new_tensor(meta.dtype, extents(meta));
        std::copy(node.data->begin(), node.data->end(), strided(constant).data());
        values[n] = {constant};
        break;
      }
      case NodeKind::call: {
        capture::Arguments args;
        for (const auto& a : node.args) args.push_back(map_tensors<Tensor>(a, value));
        // The generator counts for itself, call by call.
        if (node.op->effects & graph::kRandom) {
          args[static_cast<size_t>(node.op->schema.position("offset"))] = Argument<Tensor>(int64_t{0});
        }
        values[n] = capture::eager_backend().call(*node.op, args);
        if (node.op->op_class != graph::OpClass::view) {
          for (size_t r = 0; r < values[n].size(); ++r) {
            values[n][r] = laid_out(values[n][r], node.results[r]);
          }
        }
        break;
      }
    }
  }
  std::vector<StoragePtr> storages;
  std::vector<Tensor> results(results_.size());
  std::vector<Tensor> written;  // values may look at memory that is about to change
  for (const graph::WriteBack& w : graph.write_backs) {
    const StridedImpl& from = strided(value(w.value));
    written.push_back(new_tensor(from.dtype(), from.sizes().values()));
    copy_elements(from.view(), strided(written.back()).view());
  }
  for (size_t k = 0; k < written.size(); ++k) {
    const graph::WriteBack& w = graph.write_backs[k];
    const StridedImpl& input = strided(values[graph.inputs[w.input]][0]);
    const Tensor target = w.region ? new_view(input, w.region->dtype, extents(*w.region),
                                              int64_t{input.offset()} + w.region->offset.value())
                                   : values[graph.inputs[w.input]][0];
    copy_elements(strided(written[k]).view(), strided(target).view());
  }
  for (size_t k = 0; k < results_.size(); ++k) {
    const CapturedOutput& output = captured_.outputs[k];
    if (output.output < 0 || output.same_as >= 0) {
      results[k] = result(k, arguments, {}, results.data());
      continue;
    }
    const Tensor base = value(graph.outputs[static_cast<size_t>(output.output)].value);
    const Result& facts = results_[k];
    results[k] = output.whole ? base : new_view(strided(base), facts.dtype, facts.extents, facts.offset);
  }
  return results;
}

}  // namespace stax::compiler
