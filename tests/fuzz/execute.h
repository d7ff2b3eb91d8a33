// Runs programs by the reference executor and as compiled code.
#pragma once

#include <memory>
#include <optional>

#include "codegen/cpp/printer.h"
#include "codegen/tile/tile_kernel.h"
#include "device/cpu_info.h"
#include "fuzz/program.h"
#include "lowering/lowering.h"
#include "runtime/host_compiler.h"
#include "runtime/plan_executor.h"
#include "runtime/triton_interpreter.h"

namespace stax::fuzz {

/// What a run left: the results, then the inputs. Empty where an index was out of range.
struct Outcome {
  bool failed = false;
  std::vector<Array> results, inputs;
};

/// A program lowered once, for both.
struct Prepared {
  Program program;
  lowering::Lowered lowered;
};
Prepared prepare(Program program, const Target& target = {});
/// Loops, schedule and kernels as text, for looking at one program.
std::string details(const Prepared& prepared, const device::CpuTarget& cpu);

Outcome run_reference(const Prepared& prepared);
/// The program with noise, by the reference executor; its inputs do not include the noise.
Outcome run_noisy(const Program& program, uint64_t noise_seed);

/// A program's Triton kernels, with blocks as they are launched by default, or, by the program's seed, with
/// smaller ones, so that loops run and grids have several blocks.
struct TritonProgram {
  codegen::Plan plan;  // without runners
  std::vector<codegen::TileKernel> kernels;
  std::vector<std::string> sources;
  std::vector<codegen::LaunchConfig> configs;
};
TritonProgram triton_program(const Prepared& prepared, const Target& target);

/// What a run left: `inputs` as they are then, `outputs` the memory of Program::outputs.
Outcome outcome_of(const Prepared& prepared, std::vector<Array> inputs, const std::vector<void*>& outputs);
/// Values of the program's scalars, by their numbers.
std::vector<loops::Constant> scalars_of(const loops::Program& program);

/// The program's Triton kernels, made for `target`, in Triton's interpreter.
Outcome run_interpreted(const Prepared& prepared, const Target& target,
                        runtime::TritonInterpreter& interpreter);
/// The sources of these kernels.
std::string triton_details(const Prepared& prepared, const Target& target);

/// Compiles the kernels of many programs in one run of the host compiler.
class Batch {
 public:
  Batch(runtime::HostCompiler& compiler, const device::CpuTarget& cpu) : compiler_(compiler), cpu_(cpu) {}
  /// Adds a program; `prepared` has to live as long as the batch.
  void add(const Prepared& prepared);
  int64_t kernels() const { return static_cast<int64_t>(kernels_.size()); }
  /// Compiles what was added. Throws where the host compiler refuses it.
  void compile();
  /// Runs program number `k` of the batch.
  Outcome run(size_t k) const;

 private:
  struct Entry {
    const Prepared* prepared;
    codegen::Plan plan;
  };
  runtime::HostCompiler& compiler_;
  device::CpuTarget cpu_;
  std::vector<codegen::Kernel> kernels_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<runtime::PlanExecutor>> executors_;
};

}  // namespace stax::fuzz
