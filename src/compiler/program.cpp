#include "compiler/program.h"

#include <algorithm>
#include <cstring>

#include "capture/dispatch.h"
#include "compiler/size_text.h"
#include "compiler/small_array.h"
#include "device/cuda_device.h"
#include "schedule/memory_plan.h"
#include "stax/random.h"
#include "support/check.h"
#include "support/log.h"
#include "tensor/sym_int.h"

namespace stax::compiler {

using capture::CapturedInput;
using capture::CapturedOutput;
using graph::Node;
using graph::NodeKind;
using graph::TensorMeta;

namespace {

Extents fixed_extents(const TensorMeta& meta) {
  Extents out(meta.dim());
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    out.sizes()[d] = to_sym_int(meta.sizes[d]);
    out.strides()[d] = to_sym_int(meta.strides[d]);
  }
  return out;
}

bool is_fixed(const TensorMeta& meta) {
  const auto constant = [](Expr e) { return e.is_constant(); };
  return std::ranges::all_of(meta.sizes, constant) && std::ranges::all_of(meta.strides, constant);
}

bool is_polynomial_of_sizes(Expr e) {
  if (e.kind() == ExprKind::symbol) return e.symbol().kind == SymbolKind::size;
  if (e.kind() == ExprKind::floor_div || e.kind() == ExprKind::mod) return false;
  return std::ranges::all_of(e.args(), is_polynomial_of_sizes);
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

namespace {

/// Whether data determine sizes, or a run checks assertions.
bool is_late(const capture::Captured& captured) {
  return !captured.env->assertions().empty() ||
         std::ranges::any_of(captured.graph.nodes, [](const Node& node) {
           return node.op != nullptr && node.op->op_class == graph::OpClass::dynamic;
         });
}

}  // namespace

void CompiledProgram::run_operators(const char* reason) {
  interpret_ = true;
  stages_ = {};
  stages_.fallback = reason;
  log::warn(fmt::format("a compiled function runs operator by operator: {}", reason));
}

std::shared_ptr<const CompiledProgram> CompiledProgram::make(capture::Captured captured,
                                                             const PipelineOptions& options, bool interpret) {
  auto program = std::make_shared<CompiledProgram>();
  // The reference executor has neither memory of its own for results nor assertions.
  program->interpret_ = interpret || (options.backend == Backend::reference && is_late(captured));
  interpret = program->interpret_;
  if (!interpret) {
    try {
      program->stages_ = run_stages(captured.graph, *captured.env, options);
      check_layouts(captured, program->stages_);
      program->executables_ = build(program->stages_, options);
    } catch (const InternalError& error) {
      if (options.strict_native) throw;
      program->run_operators(error.what());
    } catch (const NeedsKernels& error) {
      if (options.strict_native) throw;
      program->run_operators(error.what());
    } catch (const UndeterminedError& error) {
      if (options.strict_native) throw;
      program->run_operators(error.what());
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

CompiledProgram::Layout CompiledProgram::layout_of(const TensorMeta& meta) {
  Layout layout;
  if (is_fixed(meta)) {
    layout.fixed = fixed_extents(meta);
    return layout;
  }
  for (const Expr e : meta.sizes) layout.sizes.push_back(numbers_.add(e));
  for (const Expr e : meta.strides) layout.strides.push_back(numbers_.add(e));
  return layout;
}

Extents CompiledProgram::extents(const Layout& layout, const Call& call) {
  if (layout.sizes.empty()) return layout.fixed;
  Extents out(static_cast<int64_t>(layout.sizes.size()));
  for (size_t d = 0; d < layout.sizes.size(); ++d) {
    out.sizes()[d] = call.registers[static_cast<size_t>(layout.sizes[d])];
    out.strides()[d] = call.registers[static_cast<size_t>(layout.strides[d])];
  }
  return out;
}

void CompiledProgram::prepare() {
  const graph::Graph& graph = captured_.graph;
  device_ = graph::device_of(graph);
  if (captured_.env) late_symbols_ = captured_.env->late_symbols();
  for (size_t k = 0; k < late_symbols_; ++k) {
    numbers_.set_stage(Symbol{SymbolKind::unbacked, static_cast<int32_t>(k)}, 1);
  }
  for (const graph::NodeId id : graph.inputs) {
    const TensorMeta& meta = graph.nodes[static_cast<size_t>(id)].results[0];
    for (const auto* list : {&meta.sizes, &meta.strides}) {
      std::vector<int64_t>& fixed = input_numbers_.emplace_back();
      for (const Expr e : *list) fixed.push_back(e.constant().value_or(0));
    }
    input_tensors_.push_back({nullptr, meta.dtype, {}, {}});
  }
  for (size_t k = 0; k < input_tensors_.size(); ++k) {
    input_tensors_[k].sizes = input_numbers_[2 * k];
    input_tensors_[k].strides = input_numbers_[2 * k + 1];
  }
  for (const loops::BufferId b : stages_.program.outputs) {
    output_bytes_.push_back(
        numbers_.add(schedule::storage_bytes(stages_.program.buffers[static_cast<size_t>(b)])));
  }
  std::vector<int32_t> owner(output_bytes_.size(), -1);  // the graph output that has the storage
  for (const CapturedOutput& output : captured_.outputs) {
    Result& result = results_.emplace_back();
    if (output.same_as >= 0 || output.argument >= 0 || output.tensor.defined()) continue;
    result.dtype = output.meta.dtype;
    result.device = output.meta.device;
    result.layout = layout_of(output.meta);
    Expr offset = output.meta.offset;
    if (output.output >= 0 && !interpret_) {
      const lowering::ResultView& view = stages_.results[static_cast<size_t>(output.output)];
      result.output = view.output;
      if (output.whole) {
        result.copy = !same_layout(view.meta, output.meta);
        result.wanted = result.layout;
        if (result.copy) result.layout = layout_of(view.meta);
        offset = view.meta.offset;
      } else {
        offset = offset + floor_div(view.meta.offset * itemsize(view.meta.dtype), itemsize(result.dtype));
      }
      int32_t& first = owner[static_cast<size_t>(view.output)];
      if (first >= 0 && first != output.output && !result.copy) {
        result.copy = true;
        result.wanted = result.layout;
      }
      if (first < 0) first = output.output;
    }
    result.offset = numbers_.add(offset);
  }
  for (const Expr e : captured_.integers) integers_.push_back(numbers_.add(e));
  // Sizes that kernels use as values: they have to fit, too. Quotients are left out: their divisors may be 0
  // where no iteration uses them.
  for (const loops::Node& node : stages_.program.nodes) {
    for (const loops::Inst& inst : node.body) {
      if (!inst.index.is_constant() && is_polynomial_of_sizes(inst.index)) numbers_.add(inst.index);
    }
  }
  random_count_ = numbers_.add(captured_.random_count);
}

const Tensor& CompiledProgram::source_of(size_t input, const Call& call) const {
  const CapturedInput& source = captured_.inputs[input];
  return source.argument >= 0 ? *call.arguments[static_cast<size_t>(source.argument)] : source.tensor;
}

void* CompiledProgram::data_of(size_t input, const Call& call, StagedInputs& staged) const {
  const CapturedInput& source = captured_.inputs[input];
  const size_t most = input_tensors_.size();
  if (source.number >= 0) {
    const NumberCell& cell = call.numbers[static_cast<size_t>(source.number)];
    return staged.place_number(&cell, int64_t{sizeof cell}, most);
  }
  const StridedImpl& impl = strided(source_of(input, call));
  if (impl.dim() == 0 && impl.device() == kCPU && !mutates())
    return staged.place_number(impl.data(), itemsize(impl.dtype()), most);
  if (!source.flat) return staged.place(impl.storage(), impl.data());
  return staged.place(impl.storage(),
                      impl.storage()->data() + source.start * itemsize(input_tensors_[input].dtype));
}

void CompiledProgram::write_back(const Call& call, const StagedInputs& staged) const {
  for (const graph::WriteBack& w : captured_.graph.write_backs)
    staged.write_back(strided(source_of(static_cast<size_t>(w.input), call)).storage());
}

void CompiledProgram::check_writable(const Call& call) const {
  for (const graph::WriteBack& w : captured_.graph.write_backs) {
    STAX_CHECK(strided(source_of(static_cast<size_t>(w.input), call)).storage()->writable(),
               "a compiled function writes to a tensor that was handed over as read-only; clone it first");
  }
}

/// The values of symbols that only data determines are there: what depends on them.
void CompiledProgram::know_late(const Call& call) const {
  for (const auto& [symbol, at] : numbers_.symbols()) {
    if (symbol.kind != SymbolKind::unbacked) continue;
    call.registers[static_cast<size_t>(at)] = call.late[static_cast<size_t>(symbol.number)];
  }
  STAX_CHECK(numbers_.run(call.registers.data(), 1),
             "a compiled function meets sizes whose products leave 64 bits: {}",
             size_text(captured_, call.symbols));
}

void CompiledProgram::run_native(Call& call, std::span<const loops::Constant> scalars,
                                 std::span<StoragePtr> outputs) const {
  SmallArray<runtime::InputTensor, 12> tensors(input_tensors_.size());
  StagedInputs staged(device_);
  for (size_t k = 0; k < tensors.size(); ++k) {
    tensors[k] = input_tensors_[k];
    tensors[k].data = data_of(k, call, staged);
  }
  staged.send();
  SmallArray<runtime::OutputTensor, 8> made(outputs.size());
  runtime::RunOutputs out{made, {}};
  executables_.plan->run({tensors, scalars, {}, call.symbols}, out);
  std::copy(out.late.begin(), out.late.end(), call.late.begin());
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k] = StoragePtr(Storage::own(made[k].data, made[k].bytes, device_));
  }
  write_back(call, staged);
}

void CompiledProgram::run_reference(const Call& call, std::span<const loops::Constant> scalars,
                                    std::span<StoragePtr> outputs) const {
  SmallArray<void*, 12> ins(input_tensors_.size());
  StagedInputs staged(kCPU);
  for (size_t k = 0; k < ins.size(); ++k) ins[k] = data_of(k, call, staged);
  staged.send();
  SmallArray<void*, 8> outs(outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k] = StoragePtr(Storage::allocate(call.registers[static_cast<size_t>(output_bytes_[k])], kCPU));
    outs[k] = outputs[k]->data();
  }
  loops::Invocation invocation{.inputs = ins, .outputs = outs, .scalars = scalars};
  std::unordered_map<Symbol, int64_t> symbols;
  if (!call.symbols.empty()) {
    for (size_t k = 0; k < call.symbols.size(); ++k) {
      symbols[Symbol{SymbolKind::size, static_cast<int32_t>(k)}] = call.symbols[k];
    }
    invocation.symbols = &symbols;
  }
  executables_.reference->run(invocation);
  write_back(call, staged);
  if (device_ == kCPU) return;
  for (StoragePtr& output : outputs) {
    const StoragePtr there(Storage::allocate(output->bytes(), device_));
    device::copy_to_device(there->data(), output->data(), output->bytes(), device_.index);
    output = there;
  }
}

Tensor CompiledProgram::result(size_t k, const Call& call, std::span<const StoragePtr> outputs,
                               const Tensor* results) const {
  const CapturedOutput& output = captured_.outputs[k];
  const Result& facts = results_[k];
  if (output.same_as >= 0) return results[output.same_as];
  if (output.argument >= 0) return *call.arguments[static_cast<size_t>(output.argument)];
  if (output.tensor.defined()) return output.tensor;
  const int64_t offset = call.registers[static_cast<size_t>(facts.offset)];
  if (output.input >= 0) {
    const auto input = static_cast<size_t>(output.input);
    const CapturedInput& source = captured_.inputs[input];
    const StridedImpl& base = strided(source_of(input, call));
    const int64_t width = itemsize(input_tensors_[input].dtype);
    const int64_t start =
        (source.flat ? source.start : int64_t{base.offset()}) * width / itemsize(facts.dtype);
    return tensor_over(facts.dtype, extents(facts.layout, call), start + offset, base.storage());
  }
  const Tensor tensor = tensor_over(facts.dtype, extents(facts.layout, call), offset,
                                    outputs[static_cast<size_t>(facts.output)]);
  if (!facts.copy) return facts.device == device_ ? tensor : tensor.to(facts.device);
  const Tensor copy = new_tensor(facts.dtype, extents(facts.wanted, call), facts.device);
  copy_elements(strided(tensor).view(), strided(copy).view());
  return copy;
}

void CompiledProgram::run(std::span<const Tensor* const> arguments, std::span<const NumberCell> numbers,
                          Tensor* results, std::span<const int64_t> symbols, int64_t* integers,
                          std::vector<int64_t>* late) const {
  SmallArray<int64_t, 48> registers(numbers_.size());
  std::copy(numbers_.initial().begin(), numbers_.initial().end(), registers.data());
  for (const auto& [symbol, at] : numbers_.symbols()) {
    if (symbol.kind == SymbolKind::size)
      registers[static_cast<size_t>(at)] = symbols[static_cast<size_t>(symbol.number)];
  }
  STAX_CHECK(numbers_.empty() || numbers_.run(registers.data()),
             "a compiled function is called with sizes whose products leave 64 bits: {}",
             size_text(captured_, symbols));
  Call call{arguments, numbers, symbols, registers};
  call.late.resize(late_symbols_);
  if (mutates()) check_writable(call);
  if (interpret_) {
    std::vector<Tensor> out = run_graph(call);
    std::move(out.begin(), out.end(), results);
  } else {
    run_executables(call, results);
  }
  for (size_t k = 0; k < integers_.size() && integers != nullptr; ++k) {
    integers[k] = registers[static_cast<size_t>(integers_[k])];
  }
  if (late != nullptr) *late = std::move(call.late);
}

void CompiledProgram::run_executables(Call& call, Tensor* results) const {
  loops::Constant scalars[2];
  if (const int64_t drawn = call.registers[static_cast<size_t>(random_count_)]; drawn > 0) {
    const auto [seed, offset] = default_generator().draw(static_cast<uint64_t>(drawn));
    scalars[0] = loops::Constant::of(static_cast<int64_t>(seed));
    scalars[1] = loops::Constant::of(static_cast<int64_t>(offset));
  }
  const std::span<const loops::Constant> given(scalars, stages_.program.scalars.size());
  SmallArray<StoragePtr, 8> outputs(output_bytes_.size());
  if (executables_.plan) {
    run_native(call, given, outputs);
  } else {
    run_reference(call, given, outputs);
  }
  if (late_symbols_ > 0) know_late(call);
  for (size_t k = 0; k < results_.size(); ++k) results[k] = result(k, call, outputs, results);
}

// ---- operator by operator ----

}  // namespace stax::compiler
