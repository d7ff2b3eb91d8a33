// stax compile: the kernels of programs as machine code of GPUs, with no GPU present.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <charconv>
#include <chrono>

#include "cli/commands.h"
#include "cli/program_capture.h"
#include "compiler/pipeline.h"
#include "device/target.h"
#include "runtime/triton_compiler.h"
#include "support/check.h"
#include "support/progress.h"
#include "tuning/launch_config.h"

namespace stax::cli {
namespace {

/// A kernel to compile, and what a row says of it beforehand.
struct Row {
  std::string program, target, form;
  runtime::TritonRequest request;
};

int32_t capability_of(const std::string& target) {
  cuda_target_named(target);  // refuses what is none
  int32_t capability = 0;
  const std::string_view digits = std::string_view(target).substr(std::string_view("cuda:sm_").size());
  std::from_chars(digits.data(), digits.data() + digits.size(), capability);
  return capability;
}

std::string_view form_name(codegen::TileForm form) {
  constexpr std::string_view kNames[] = {"pointwise", "persistent", "looped"};
  return kNames[static_cast<size_t>(form)];
}

std::string config_text(const codegen::LaunchConfig& config) {
  std::string text;
  for (const auto& [block, size] : config.blocks) text += fmt::format("{} {}, ", block, size);
  return text + fmt::format("{} warps", config.warps);
}

void add_rows(const std::string& program, const std::string& target, const CompileKernelsOptions& options,
              std::vector<Row>& rows) {
  const int32_t capability = capability_of(target);
  const capture::Captured captured = capture_program("compile", {program, options.batch, options.dynamic});
  const compiler::Stages stages =
      compiler::run_stages(captured.graph, *captured.env, {.strict_native = true, .target = target});
  for (const compiler::GpuKernel& kernel : stages.gpu_kernels) {
    const codegen::TileKernel& tile = kernel.tile;
    runtime::TritonRequest request{.source = kernel.sources.plain,
                                   .kernel = tile.name,
                                   .capability = capability,
                                   .config = tuning::default_config(tile),
                                   .wide_index = tile.wide_index};
    for (const codegen::TilePointer& pointer : tile.pointers) request.divisible.push_back(pointer.name);
    rows.push_back({program, target, std::string(form_name(tile.form)), std::move(request)});
  }
}

void print_row(const Row& row, const runtime::TritonOutcome& outcome) {
  const std::string name = fmt::format("{} {} {}", row.program, row.target, row.request.kernel);
  if (!outcome.kernel) {
    fmt::print("{}: failed: {}\n", name, outcome.error);
    return;
  }
  const runtime::CompiledTriton& kernel = *outcome.kernel;
  const std::string time =
      outcome.from_cache ? "from the cache" : fmt::format("{:.1f} ms", kernel.seconds * 1e3);
  fmt::print("{}: {}, {}: {} registers, {} bytes spilled, {} bytes shared, {} bytes of code, {}\n", name,
             row.form, config_text(row.request.config), kernel.registers, kernel.spill_bytes,
             kernel.shared_bytes, kernel.cubin.size(), time);
}

}  // namespace

int compile_kernels(const CompileKernelsOptions& options) {
  std::vector<Row> rows;
  for (const std::string& program : options.programs)
    for (const std::string& target : options.targets) add_rows(program, target, options, rows);
  std::vector<runtime::TritonRequest> requests;
  for (const Row& row : rows) requests.push_back(row.request);
  runtime::TritonCompiler compiler({.workers = options.jobs});
  const auto start = std::chrono::steady_clock::now();
  std::vector<runtime::TritonOutcome> outcomes;
  {
    Progress progress("compiling kernels", requests.size());
    outcomes = compiler.compile(requests, [&](size_t done) { progress.report(done); });
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  int64_t failed = 0, cached = 0;
  for (size_t k = 0; k < rows.size(); ++k) {
    print_row(rows[k], outcomes[k]);
    failed += outcomes[k].kernel == nullptr;
    cached += outcomes[k].from_cache;
  }
  fmt::print("{} kernels: {} compiled, {} from the cache, {} failed, in {:.3f} s with {} processes\n",
             rows.size(), compiler.compiled(), cached, failed, seconds.count(), compiler.started());
  return failed == 0 ? 0 : 1;
}

}  // namespace stax::cli
