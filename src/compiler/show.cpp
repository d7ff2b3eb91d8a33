#include "compiler/show.h"

#include "capture/functional_trace.h"

namespace stax::compiler {

Stages stages_of(const TensorFunction& function, std::span<const Tensor> inputs,
                 const PipelineOptions& options) {
  const auto trace = capture::FunctionalTrace::start(capture::TraceOptions{.refuse_reads = true});
  capture::Captured captured;
  {
    const capture::TraceScope scope(trace.get());
    std::vector<Tensor> arguments;
    for (const Tensor& input : inputs) {
      arguments.push_back(trace->argument(input, static_cast<int32_t>(arguments.size())));
    }
    const std::vector<Tensor> results = function(arguments);
    captured = trace->finish(results);
  }
  return run_stages(std::move(captured.graph), *captured.env, options);
}

}  // namespace stax::compiler
