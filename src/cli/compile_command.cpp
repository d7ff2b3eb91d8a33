// stax compile: the kernels of programs as machine code of GPUs, with no GPU present.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>

#include "cli/commands.h"
#include "cli/program_capture.h"
#include "compiler/pipeline.h"
#include "runtime/triton_compiler.h"
#include "support/check.h"
#include "support/plural.h"
#include "support/progress.h"
#include "tuning/launch_config.h"

namespace stax::cli {
namespace {

/// Those that show takes besides the CPU, whose kernels are compiled where they run.
constexpr std::string_view kGpuTargets[] = {"cuda:sm_80", "cuda:sm_90", "cuda:sm_100"};

/// A kernel to compile, and what a row says of it beforehand.
struct Row {
  std::string program, target, form;
  runtime::TritonRequest request;
};

int32_t capability_of(const std::string& target) {
  STAX_CHECK(std::ranges::find(kGpuTargets, target) != std::end(kGpuTargets),
             "compile: '{}' is no GPU to compile for; there are: {}", target, fmt::join(kGpuTargets, ", "));
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
  return text + counted(config.warps, "warp");
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

/// `said`: the error that was printed last; what is wrong with the machine fails each kernel alike.
void print_row(const Row& row, const runtime::TritonOutcome& outcome, std::string& said) {
  const std::string name = fmt::format("{} {} {}", row.program, row.target, row.request.kernel);
  if (!outcome.kernel) {
    fmt::print("{}: failed: {}\n", name, outcome.error == said ? "as the one before" : outcome.error);
    said = outcome.error;
    return;
  }
  const runtime::CompiledTriton& kernel = *outcome.kernel;
  const std::string time =
      outcome.from_cache ? "from the cache" : fmt::format("{:.1f} ms", kernel.seconds * 1e3);
  fmt::print("{}: {}, {}: {}, {} spilled, {} shared, {} of code, {}\n", name, row.form,
             config_text(row.request.config), counted(kernel.registers, "register"),
             counted(kernel.spill_bytes, "byte"), counted(kernel.shared_bytes, "byte"),
             counted(kernel.cubin.size(), "byte"), time);
}

}  // namespace

int compile_kernels(const CompileKernelsOptions& options) {
  STAX_CHECK(options.jobs >= 0, "compile: --jobs is to be at least 0, not {}", options.jobs);
  std::vector<Row> rows;
  for (const std::string& target : options.targets) capability_of(target);  // before any work
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
  std::string said;
  for (size_t k = 0; k < rows.size(); ++k) {
    print_row(rows[k], outcomes[k], said);
    failed += outcomes[k].kernel == nullptr;
    cached += outcomes[k].from_cache;
  }
  fmt::print("{}: {} compiled, {} from the cache, {} failed, in {:.3f} s with {}\n",
             counted(rows.size(), "kernel"), compiler.compiled(), cached, failed, seconds.count(),
             counted(compiler.started(), "process", "processes"));
  return failed == 0 ? 0 : 1;
}

}  // namespace stax::cli
