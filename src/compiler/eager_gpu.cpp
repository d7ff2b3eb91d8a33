#include "compiler/eager_gpu.h"

#include <algorithm>

#include "compiler/batch.h"
#include "compiler/eager_program.h"
#include "device/cuda_device.h"
#include "graph/op.h"
#include "lowering/host_functions.h"
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
  std::vector<Tensor> tensors;
  std::vector<NumberCell> numbers;
  std::vector<size_t> positions;  // of the numbers among the arguments
  std::vector<int64_t> integers;

  static Bound of(const graph::Op& op, const capture::Arguments& arguments) {
    Bound bound;
    for_each_tensor(arguments, [&](const Tensor& tensor) { bound.tensors.push_back(tensor); });
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (!run_time_number(op, arguments, k)) continue;
      const Number& number = arguments[k].number();
      NumberCell& cell = bound.numbers.emplace_back();
      if (number.is_float())
        cell.floating = number.floating;
      else
        cell.integer = number.integer.value();
      bound.positions.push_back(k);
    }
    return bound;
  }
};

namespace {

/// Calls f(integer) for the run-time integers of a call without tensors, which may change them.
template <class F>
void for_each_integer(capture::Arguments& arguments, F&& f) {
  for (auto& argument : arguments) {
    if (auto* list = std::get_if<std::vector<Expr>>(&argument.value)) {
      for (Expr& e : *list)
        if (is_run_time_integer(e)) f(e);
    } else if (auto* number = std::get_if<Number>(&argument.value); number != nullptr &&
                                                                    number->kind == Number::Kind::integer &&
                                                                    is_run_time_integer(number->integer)) {
      f(number->integer);
    }
  }
}

/// A tensor over memory that somebody else keeps.
Tensor tensor_over(const TensorView& view) {
  int64_t reach = 1;
  for (size_t d = 0; d < view.sizes.size(); ++d) reach += (view.sizes[d] - 1) * view.strides[d];
  StoragePtr storage(Storage::adopt(view.data, reach * itemsize(view.dtype), view.device, {}));
  return Tensor(detail::ImplPtr(
      new StridedImpl(view.dtype, stax::extents_of(view.sizes, view.strides), 0, std::move(storage))));
}

/// The dimensions of a copy without those of length 1, neighbours merged where both sides allow.
void simplify_copy(TensorView& source, TensorView& target) {
  TensorView from = source, to = target;
  for (auto* list : {&from.sizes, &from.strides, &to.sizes, &to.strides}) list->clear();
  for (size_t d = 0; d < target.sizes.size(); ++d) {
    const int64_t size = target.sizes[d];
    if (size == 1) continue;
    if (!to.sizes.empty() && to.strides.back() == size * target.strides[d] &&
        from.strides.back() == size * source.strides[d]) {
      to.sizes.back() *= size;
      to.strides.back() = target.strides[d];
      from.strides.back() = source.strides[d];
      continue;
    }
    to.sizes.push_back(size);
    to.strides.push_back(target.strides[d]);
    from.strides.push_back(source.strides[d]);
  }
  from.sizes = to.sizes;
  source = std::move(from);
  target = std::move(to);
}

}  // namespace

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
    const auto values = symbols_of(program->guards, bound.tensors, bound.integers);
    if (!values) continue;
    symbols = *values;
    return program;
  }
  return nullptr;
}

std::shared_ptr<const EagerGpu::Program> EagerGpu::make(Device device, const Bound& bound, bool dynamic,
                                                        const Record& record) const {
  capture::TraceOptions options;
  options.refuse_reads = true;
  const auto trace = capture::FunctionalTrace::start(std::move(options));
  trace->set_device(device);
  std::vector<Tensor> stand_ins;
  for (const Tensor& tensor : bound.tensors) stand_ins.push_back(stand_in(tensor));
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : stand_ins) pointers.push_back(&tensor);
  const std::span<const int64_t> integers = dynamic ? std::span(bound.integers) : std::span<const int64_t>();
  capture::InputSymbols symbols =
      capture::make_symbols(trace->env(), pointers, integers, {.dynamic = dynamic});
  const capture::TraceScope scope(trace.get());
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < stand_ins.size(); ++k)
    tensors.push_back(trace->argument(stand_ins[k], static_cast<int32_t>(k), symbols.tensors[k]));
  capture::Captured captured = trace->finish(record(*trace, tensors, symbols.integers));
  captured.symbols = std::move(symbols);
  auto made = std::make_shared<Program>();
  made->program = CompiledProgram::make(std::move(captured), {.strict_native = true});
  made->guards = Guards(made->program->captured());
  return made;
}

std::optional<std::vector<Tensor>> EagerGpu::run(const std::vector<uint64_t>& key, std::string_view name,
                                                 Device device, const Bound& bound, const Record& record) {
  std::vector<int64_t> symbols;
  std::shared_ptr<const Program> program = find(key, bound, symbols);
  if (!program) {
    for (const bool dynamic : {true, false}) {
      try {
        program = make(device, bound, dynamic, record);
        const auto values = symbols_of(program->guards, bound.tensors, bound.integers);
        STAX_ASSERT(values, "{}: a program does not fit its own example", name);
        symbols = *values;
        break;
      } catch (const UserError&) {
        if (!dynamic) throw;
      } catch (const Error& error) {
        program = nullptr;
        if (dynamic) continue;
        log::warn(fmt::format("{} runs on the CPU: {}", name, error.what()));
        program = std::make_shared<Program>();
      }
    }
    const std::lock_guard lock(mutex_);
    if (programs_.size() > kMostPrograms) programs_.clear();
    programs_[key].push_back(program);
  }
  if (!program->program) return std::nullopt;
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : bound.tensors) pointers.push_back(&tensor);
  std::vector<Tensor> results(program->program->result_count());
  program->program->run(pointers, bound.numbers, results.data(), symbols);
  return results;
}

std::vector<Tensor> EagerGpu::call(const graph::Op& op, const capture::Arguments& arguments, Device device,
                                   capture::EagerBackend& on_cpu) {
  if (lowering::is_host_function(op, Target::Kind::cuda)) return call_on_host(op, arguments, device, on_cpu);
  const Bound bound = Bound::of(op, arguments);
  const Record record = [&](capture::FunctionalTrace& trace, const std::vector<Tensor>& tensors,
                            const std::vector<Expr>&) {
    size_t next = 0;
    capture::Arguments traced = with_tensors(arguments, [&](const Tensor&) { return tensors[next++]; });
    for (size_t k = 0; k < bound.positions.size(); ++k) {
      auto& argument = traced[bound.positions[k]];
      argument = trace.scalar_argument(trace.number(scalar_of(argument.number()), static_cast<int32_t>(k)));
    }
    return capture::dispatch(op, std::move(traced));
  };
  auto results = run(make_ranked_key(op, arguments).words(), op.schema.full_name(), device, bound, record);
  return results ? std::move(*results) : call_on_host(op, arguments, device, on_cpu);
}

std::vector<Tensor> EagerGpu::call_without_tensors(const graph::Op& op, const capture::Arguments& arguments,
                                                   Device device, capture::EagerBackend& on_cpu) {
  static_cast<void>(device::cuda_properties(device.index));  // without it the CPU cannot help, either
  if (lowering::is_host_function(op, Target::Kind::cuda)) return call_on_host(op, arguments, device, on_cpu);
  Bound bound;
  capture::Arguments given = arguments;
  for_each_integer(given, [&](Expr& e) { bound.integers.push_back(e.value()); });
  const Record record = [&](capture::FunctionalTrace&, const std::vector<Tensor>&,
                            const std::vector<Expr>& integers) {
    capture::Arguments traced = arguments;
    size_t next = 0;
    if (!integers.empty()) for_each_integer(traced, [&](Expr& e) { e = integers[next++]; });
    return capture::dispatch(op, std::move(traced));
  };
  auto results =
      run(make_sized_key(op, arguments, device).words(), op.schema.full_name(), device, bound, record);
  return results ? std::move(*results) : call_on_host(op, arguments, device, on_cpu);
}

bool EagerGpu::copy(const TensorView& source, const TensorView& target) {
  TensorView from = source, to = target;
  simplify_copy(from, to);
  Bound bound;
  bound.tensors = {tensor_over(to), tensor_over(from)};
  const std::vector<uint64_t> key{0, static_cast<uint64_t>(from.dtype), static_cast<uint64_t>(to.dtype),
                                  to.sizes.size(), static_cast<uint64_t>(to.device.index)};
  const auto done = run(key, "a copy within a GPU", to.device, bound,
                        [](capture::FunctionalTrace&, const std::vector<Tensor>& tensors,
                           const std::vector<Expr>&) -> std::vector<Tensor> {
                          tensors[0].copy_(tensors[1]);
                          return {};
                        });
  return done.has_value();
}

size_t EagerGpu::cached_programs() const {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [key, programs] : programs_) count += programs.size();
  return count;
}

}  // namespace stax::compiler
