// Triton compiles every launch configuration that tuning may measure, for programs of each form of kernel.
#include <gtest/gtest.h>

#include "compiler/batch.h"
#include "compiler/pipeline.h"
#include "runtime/triton_compiler.h"
#include "stax/stax.h"
#include "support/file.h"
#include "support/triton_python.h"
#include "tuning/config_space.h"

namespace stax {
namespace {

struct CompiledProgram {
  const char* name;
  compiler::TensorFunction function;
  std::vector<std::vector<int64_t>> sizes;
  DType dtype = kFloat32;
};

const CompiledProgram kPrograms[] = {
    {"tiles", [](const auto& t) { return std::vector{t[0].t() + t[1]}; }, {{100, 70}, {70, 100}}},
    {"half types",
     [](const auto& t) { return std::vector{gelu(t[0]) * sigmoid(t[0])}; },
     {{4099}},
     kBFloat16},
    {"short rows", [](const auto& t) { return std::vector{softmax(t[0], -1)}; }, {{64, 100}}},
    {"rows of three passes",
     [](const auto& t) {
       const Tensor centred = t[0] - t[0].amax(-1, true);
       return std::vector{centred / centred.square().mean(-1, true)};
     },
     {{600, 9001}}},
    {"many rows", [](const auto& t) { return std::vector{softmax(t[0], -1)}; }, {{65536, 1000}}},
    {"long rows", [](const auto& t) { return std::vector{softmax(t[0], -1)}; }, {{4096, 50257}}},
    {"columns", [](const auto& t) { return std::vector{t[0].square().sum(0)}; }, {{4096, 300}}},
    {"everything",
     [](const auto& t) {
       return std::vector{var(t[0], {0, 1}, 1)};
     },
     {{300, 70001}}},
    {"positions", [](const auto& t) { return std::vector{t[0].argmax(-1)}; }, {{300, 5003}}},
    {"scans", [](const auto& t) { return std::vector{cumsum(t[0], -1)}; }, {{8, 100003}}},
    {"checked indices",
     [](const auto& t) {
       const Tensor at = t[1].to(kInt64);
       return std::vector{gather(t[0], -1, at), index_add(t[0], 0, at.select(1, 0), t[1])};
     },
     {{30, 40}, {30, 40}}},
    {"unsigned integers",
     [](const auto& t) {
       const Tensor x = relu(t[0]), most = t[0].amax(-1, true);
       return std::vector{floor_divide(x, t[0]), fmod(t[0], x), remainder(x, most), pow(x, most),
                          gcd(x, most)};
     },
     {{50, 60}},
     kUInt8},
    {"sums of nothing",
     [](const auto& t) {
       return std::vector{t[0].permute({1, 0, 2}).reshape({0}).sum()};
     },
     {{0, 7, 4}}},
    {"columns of nothing",
     [](const auto& t) {
       return std::vector{t[0].sum({0, 2})};
     },
     {{5, 7, 0}}},
};

/// A request for each kernel of the program in each of its candidates.
std::vector<runtime::TritonRequest> requests_of(const CompiledProgram& program, bool dynamic) {
  std::vector<Tensor> inputs;
  for (const auto& sizes : program.sizes) inputs.push_back(empty(sizes, program.dtype));
  capture::SymbolOptions symbols;
  symbols.dynamic = dynamic;
  const capture::Captured captured = compiler::trace_function(program.function, inputs, symbols);
  const compiler::Stages stages =
      compiler::run_stages(captured.graph, *captured.env, {.strict_native = true, .target = "cuda:sm_90"});
  std::vector<runtime::TritonRequest> requests;
  for (const compiler::GpuKernel& kernel : stages.gpu_kernels)
    for (const codegen::LaunchConfig& config : tuning::candidates(kernel.tile))
      requests.push_back({.source = kernel.sources.plain,
                          .kernel = kernel.tile.name,
                          .capability = 90,
                          .config = config,
                          .wide_index = kernel.tile.wide_index});
  return requests;
}

TEST(CandidatesOfKernels, AreCompiledByTriton) {
  if (!use_triton_python())
    GTEST_SKIP() << "no Python with Triton: neither STAX_PYTHON nor .venv of `make setup`";
  const TemporaryFolder folder(temporary_root(), "stax-candidates-");
  runtime::TritonCompiler compiler({.cache_folder = folder.path()});
  std::vector<runtime::TritonRequest> requests;
  std::vector<std::string> names;
  for (const CompiledProgram& program : kPrograms)
    for (runtime::TritonRequest& request : requests_of(program, program.name == std::string("long rows"))) {
      names.push_back(std::string(program.name) + ", " + tuning::to_string(request.config));
      requests.push_back(std::move(request));
    }
  bool keeps = false, limits = false;
  for (const runtime::TritonRequest& request : requests) {
    keeps = keeps || request.config.kept > 0;
    limits = limits || request.config.registers > 0;
  }
  EXPECT_TRUE(keeps && limits);
  const auto outcomes = compiler.compile(requests);
  for (size_t k = 0; k < outcomes.size(); ++k) {
    SCOPED_TRACE(names[k]);
    ASSERT_NE(outcomes[k].kernel, nullptr) << outcomes[k].error;
    if (requests[k].config.registers > 0) {
      EXPECT_LE(outcomes[k].kernel->registers, requests[k].config.registers);
    }
  }
}

}  // namespace
}  // namespace stax
