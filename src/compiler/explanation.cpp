// What a compiled function says of itself.
#include <ostream>

#include "compiler/core_state.h"
#include "compiler/trace_call.h"

namespace stax {
namespace detail {

using compiler::CallTensors;
using compiler::Key;

std::vector<Artifact> CompiledCore::artifacts() const {
  std::vector<Artifact> out;
  const int n = state_->count.load(std::memory_order_acquire);
  for (int k = 0; k < n; ++k) {
    const Entry& entry = *state_->entries[static_cast<size_t>(k)];
    Artifact artifact{entry.key.str(), entry.conditions(), {}, "eager", {}, {}};
    if (entry.program) {
      const compiler::Stages& stages = entry.program->stages();
      artifact.target = stages.target;
      artifact.graph = stages.graph.str();
      if (stages.fallback.empty() && !(stages.kernels.empty() && stages.gpu_kernels.empty()))
        artifact.plan = compiler::plan_of(stages).str();
      for (const codegen::Kernel& kernel : stages.kernels) {
        artifact.kernels.push_back({kernel.info.name, codegen::print_module(std::span(&kernel, 1)).source});
      }
      for (const compiler::GpuKernel& kernel : stages.gpu_kernels)
        artifact.kernels.push_back({kernel.tile.name, kernel.sources.plain});
    }
    out.push_back(std::move(artifact));
  }
  return out;
}

Explanation CompiledCore::explain(const Leaves& leaves, FunctionCall& call) const {
  const CallTensors tensors(leaves);
  Explanation out;
  out.key = Key::of(leaves, tensors).str();
  SymbolValues symbols;
  const Entry* entry = state_->find(leaves, tensors, symbols);
  out.cached = entry != nullptr;
  const int n = state_->count.load(std::memory_order_acquire);
  for (int k = 0; k < n; ++k) {
    const std::string misfit = state_->entries[static_cast<size_t>(k)]->misfit(leaves, tensors);
    if (!misfit.empty()) out.misfits.push_back(fmt::format("artifact {}: {}", k, misfit));
  }
  std::optional<compiler::Stages> fresh;
  const compiler::Stages* stages = nullptr;
  if (entry && !entry->program) {
    out.fallback = entry->eager_reason;
    return out;
  }
  if (entry) {
    stages = &entry->program->stages();
  } else {
    TraceOutcome outcome = trace(leaves, call, state_->options, state_->symbol_options(), true);
    fresh = compiler::run_stages(outcome.captured->graph, *outcome.captured->env, state_->pipeline_options());
    stages = &*fresh;
  }
  out.captured = stages->captured.str();
  out.graph = stages->graph.str();
  out.fallback = stages->fallback;
  for (const schedule::Decision& d : stages->schedule.decisions) {
    out.decisions.push_back(
        fmt::format("{} {} and {}: {}", d.fused ? "fused" : "kept apart", d.first, d.second, d.reason));
  }
  for (std::string& line : compiler::choices_in_words(*stages)) out.decisions.push_back(std::move(line));
  for (const codegen::KernelInfo& info : compiler::infos_of(*stages)) out.kernels.push_back(info.name);
  return out;
}

}  // namespace detail

std::string Explanation::str() const {
  std::string text =
      fmt::format("arguments: {}\n{}\n", key, cached ? "an artifact fits" : "no artifact fits");
  const auto list = [&](std::string_view title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text += fmt::format("{}:\n", title);
    for (const std::string& line : lines) text += "  " + line + "\n";
  };
  list("artifacts that do not fit", misfits);
  if (!captured.empty()) text += "recorded:\n" + captured;
  if (!graph.empty()) text += "after the passes:\n" + graph;
  list("decisions", decisions);
  list("kernels", kernels);
  if (!fallback.empty()) text += "no kernels: " + fallback + "\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) {
  return out << explanation.str();
}

}  // namespace stax
