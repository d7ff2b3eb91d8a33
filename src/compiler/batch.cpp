#include "compiler/batch.h"

#include <fmt/core.h>

#include "capture/functional_trace.h"
#include "support/check.h"

namespace stax::compiler {
namespace {

/// One module of the kernels of all stages, under names of their own.
void join_modules(std::vector<Stages*>& all) {
  std::vector<codegen::Kernel> kernels;
  for (size_t i = 0; i < all.size(); ++i) {
    for (codegen::Kernel& kernel : all[i]->kernels) {
      kernel.info.name = fmt::format("p{}_{}", i, kernel.info.name);
      kernels.push_back(kernel);
    }
  }
  if (kernels.empty()) return;
  const codegen::Module module = codegen::print_module(kernels);
  for (Stages* stages : all) {
    stages->source_of.assign(stages->kernels.size(), 0);
    stages->sources.clear();
    if (!stages->kernels.empty()) stages->sources.push_back(module.source);
  }
}

}  // namespace

capture::Captured trace_function(const TensorFunction& function, const std::vector<Tensor>& arguments,
                                 const capture::SymbolOptions& symbol_options, Device device) {
  capture::TraceOptions options;
  options.refuse_reads = true;
  const auto trace = capture::FunctionalTrace::start(std::move(options));
  trace->set_device(device);
  std::vector<const Tensor*> pointers;
  for (const Tensor& argument : arguments) pointers.push_back(&argument);
  capture::InputSymbols symbols = capture::make_symbols(trace->env(), pointers, {}, symbol_options);
  const capture::TraceScope scope(trace.get());
  std::vector<Tensor> traced;
  for (const Tensor& argument : arguments) {
    const size_t k = traced.size();
    traced.push_back(trace->argument(argument, static_cast<int32_t>(k), symbols.tensors[k]));
  }
  capture::Captured captured = trace->finish(function(traced));
  captured.symbols = std::move(symbols);
  return captured;
}

std::vector<BatchItem> compile_batch(std::vector<capture::Captured> captured, const std::string& target) {
  const PipelineOptions strict{.strict_native = true, .target = target}, lenient{.target = "cpu"};
  std::vector<BatchItem> items(captured.size());
  std::vector<Stages> stages(captured.size());
  std::vector<Stages*> native, on_gpu;
  for (size_t i = 0; i < captured.size(); ++i) {
    try {
      stages[i] = run_stages(captured[i].graph, *captured[i].env, strict);
      (stages[i].device == kCPU ? native : on_gpu).push_back(&stages[i]);
    } catch (const Error& error) {
      items[i].error = error.what();
    }
  }
  if (target == "cpu") join_modules(native);
  compile_ahead({on_gpu.data(), on_gpu.size()});
  for (size_t i = 0; i < captured.size(); ++i) {
    try {
      if (items[i].error.empty()) {
        try {
          Executables executables = build(stages[i], strict);
          items[i].program = CompiledProgram::make(captured[i], std::move(stages[i]), std::move(executables));
          continue;
        } catch (const Error& error) {
          items[i].error = error.what();
        }
      }
      items[i].program = CompiledProgram::make(std::move(captured[i]), lenient);
    } catch (const std::exception& error) {
      items[i].error = error.what();
    }
  }
  return items;
}

std::optional<std::vector<int64_t>> symbols_of(const Guards& guards, const std::vector<Tensor>& arguments,
                                               std::span<const int64_t> integers) {
  detail::Leaves leaves;
  for (const Tensor& argument : arguments) leaves.tensors.add(&argument);
  for (const int64_t integer : integers) leaves.integers.add(integer);
  const CallTensors call(leaves);
  std::vector<int64_t> registers(guards.registers() + 1), symbols(guards.symbols());
  if (!guards.hold(call, registers.data(), symbols.data())) return std::nullopt;
  return symbols;
}

std::vector<Tensor> run_program(const CompiledProgram& program, const std::vector<Tensor>& arguments,
                                std::span<const int64_t> symbols) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& argument : arguments) pointers.push_back(&argument);
  std::vector<Tensor> results(program.result_count());
  program.run(pointers, {}, results.data(), symbols);
  return results;
}

}  // namespace stax::compiler
