#include "compiler/eager_gpu.h"

#include <algorithm>

#include "capture/functional_trace.h"
#include "compiler/batch.h"
#include "compiler/eager_program.h"
#include "graph/op.h"
#include "support/check.h"
#include "support/log.h"

namespace stax::compiler {
namespace {

constexpr size_t kMostPrograms = 4096;  // by key; then all are forgotten

/// Another handle on the tensor's metadata whose memory is shared with nobody: what is recorded with it does
/// not depend on which arguments overlap.
Tensor stand_in(const Tensor& tensor) {
  const StridedImpl& impl = strided(tensor);
  StoragePtr storage(Storage::adopt(impl.storage()->data(), impl.storage()->bytes(), impl.device(), {}));
  return Tensor(detail::ImplPtr(
      new StridedImpl(impl.dtype(), stax::extents_of(impl.sizes().values(), impl.strides().values()),
                      impl.offset(), std::move(storage))));
}

capture::Arguments with_tensors(const capture::Arguments& arguments,
                                const std::function<Tensor(const Tensor&)>& convert) {
  capture::Arguments out;
  for (const auto& argument : arguments) out.push_back(map_tensors<Tensor>(argument, convert));
  return out;
}

Scalar scalar_of(const Number& number) {
  return number.is_float() ? Scalar(number.floating) : Scalar(number.integer.value());
}

std::vector<Tensor> call_on_host(const graph::Op& op, const capture::Arguments& arguments, Device device,
                                 capture::EagerBackend& on_cpu) {
  std::vector<Tensor> results =
      on_cpu.call(op, with_tensors(arguments, [](const Tensor& tensor) { return on_host(tensor); }));
  for (Tensor& result : results) {
    const Tensor moved = new_tensor(
        result.dtype(), stax::extents_of(result.sizes().values(), result.strides().values()), device);
    copy_elements(strided(result).view(), strided(moved).view());
    result = moved;
  }
  return results;
}

}  // namespace

/// The parts of a call that its program takes as inputs.
struct EagerGpu::Bound {
  Bound(const graph::Op& op, const capture::Arguments& arguments) {
    for_each_tensor(arguments, [&](const Tensor& tensor) { tensors.push_back(tensor); });
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (!run_time_number(op, arguments, k)) continue;
      const Number& number = arguments[k].number();
      NumberCell& cell = numbers.emplace_back();
      if (number.is_float())
        cell.floating = number.floating;
      else
        cell.integer = number.integer.value();
      positions.push_back(k);
    }
  }
  std::vector<Tensor> tensors;
  std::vector<NumberCell> numbers;
  std::vector<size_t> positions;  // of the numbers
};

std::optional<Device> EagerGpu::device_of(const graph::Op& op, const capture::Arguments& arguments) {
  bool any = false;
  for_each_tensor(arguments, [&](const Tensor& tensor) { any = any || tensor.device() != kCPU; });
  if (!any) return std::nullopt;
  std::vector<Argument<graph::TensorMeta>> metas;
  for (const auto& argument : arguments)
    metas.push_back(map_tensors<graph::TensorMeta>(
        argument, [](const Tensor& tensor) { return relative_meta(strided(tensor)); }));
  return graph::common_device(op.schema.name, metas);
}

std::shared_ptr<const EagerGpu::Program> EagerGpu::find(const std::vector<uint64_t>& key, const Bound& bound,
                                                        std::vector<int64_t>& symbols) const {
  std::vector<std::shared_ptr<const Program>> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = programs_.find(key); at != programs_.end()) known = at->second;
  }
  for (const auto& program : known) {
    const auto values = symbols_of(program->guards, bound.tensors);
    if (!values) continue;
    symbols = *values;
    return program;
  }
  return nullptr;
}

std::shared_ptr<const EagerGpu::Program> EagerGpu::make(const graph::Op& op,
                                                        const capture::Arguments& arguments, Device device,
                                                        const Bound& bound, bool dynamic) const {
  capture::TraceOptions options;
  options.refuse_reads = true;
  const auto trace = capture::FunctionalTrace::start(std::move(options));
  trace->set_device(device);
  std::vector<Tensor> stand_ins;
  for (const Tensor& tensor : bound.tensors) stand_ins.push_back(stand_in(tensor));
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : stand_ins) pointers.push_back(&tensor);
  capture::InputSymbols symbols = capture::make_symbols(trace->env(), pointers, {}, {.dynamic = dynamic});
  const capture::TraceScope scope(trace.get());
  size_t next = 0;
  capture::Arguments traced = with_tensors(arguments, [&](const Tensor&) {
    const size_t k = next++;
    return trace->argument(stand_ins[k], static_cast<int32_t>(k), symbols.tensors[k]);
  });
  for (size_t k = 0; k < bound.positions.size(); ++k) {
    auto& argument = traced[bound.positions[k]];
    argument = trace->scalar_argument(trace->number(scalar_of(argument.number()), static_cast<int32_t>(k)));
  }
  capture::Captured captured = trace->finish(capture::dispatch(op, std::move(traced)));
  captured.symbols = std::move(symbols);
  auto made = std::make_shared<Program>();
  made->program = CompiledProgram::make(std::move(captured), {.strict_native = true});
  made->guards = Guards(made->program->captured());
  return made;
}

std::vector<Tensor> EagerGpu::call(const graph::Op& op, const capture::Arguments& arguments, Device device,
                                   capture::EagerBackend& on_cpu) {
  const bool external = op.op_class == graph::OpClass::external && op.lower == nullptr;
  if (external || op.op_class == graph::OpClass::dynamic) return call_on_host(op, arguments, device, on_cpu);
  const Bound bound(op, arguments);
  const std::vector<uint64_t> key = make_ranked_key(op, arguments).words();
  std::vector<int64_t> symbols;
  std::shared_ptr<const Program> program = find(key, bound, symbols);
  if (!program) {
    for (const bool dynamic : {true, false}) {
      try {
        program = make(op, arguments, device, bound, dynamic);
        const auto values = symbols_of(program->guards, bound.tensors);
        STAX_ASSERT(values, "{}: a program does not fit its own example", op.schema.full_name());
        symbols = *values;
        break;
      } catch (const UserError&) {
        if (!dynamic) throw;
      } catch (const Error& error) {
        program = nullptr;
        if (dynamic) continue;
        log::warn(fmt::format("{} runs on the CPU: {}", op.schema.full_name(), error.what()));
        program = std::make_shared<Program>();
      }
    }
    const std::lock_guard lock(mutex_);
    if (programs_.size() > kMostPrograms) programs_.clear();
    programs_[key].push_back(program);
  }
  if (!program->program) return call_on_host(op, arguments, device, on_cpu);
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : bound.tensors) pointers.push_back(&tensor);
  std::vector<Tensor> results(program->program->result_count());
  program->program->run(pointers, bound.numbers, results.data(), symbols);
  return results;
}

size_t EagerGpu::cached_programs() const {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [key, programs] : programs_) count += programs.size();
  return count;
}

}  // namespace stax::compiler
