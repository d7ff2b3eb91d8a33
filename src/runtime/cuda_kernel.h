// Generated kernels on a GPU: their machine code, loaded, and their launches.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/kernel_info.h"
#include "codegen/tile/tile_kernel.h"
#include "codegen/triton/printer.h"
#include "device/cuda_device.h"
#include "runtime/triton_compiler.h"
#include "support/call_stack.h"

namespace stax::runtime {

/// The KernelStatus of a plan's kernels, in device memory, one for each stream. What they leave in it is
/// raised when the host next waits for that stream or the device, also when the plan is gone by then.
class CudaStatus {
 public:
  /// `origins` and `places`: of Plan, by node.
  CudaStatus(int32_t device, std::vector<std::string> origins, std::vector<CallStack> places);
  ~CudaStatus();
  CudaStatus(const CudaStatus&) = delete;
  CudaStatus& operator=(const CudaStatus&) = delete;

  /// For a kernel that is about to be launched in that stream.
  void* memory_for(const device::CudaStream& stream);

 private:
  class Pending;
  std::shared_ptr<Pending> pending_;
};

/// A kernel of a plan. Variants are compiled when they are first needed. Machine code stays loaded until the
/// process ends: a launch may still run when its plan goes.
class CudaKernel final : public codegen::KernelRunner {
 public:
  /// `status` where the kernel checks indices. `compiler` outlives it.
  CudaKernel(TritonCompiler& compiler, const codegen::TileKernel& kernel, codegen::LaunchConfig config,
             codegen::TritonSources sources, int32_t device, std::shared_ptr<CudaStatus> status);
  ~CudaKernel() override;

  /// What the compiler is asked for.
  TritonRequest request(codegen::LaunchVariant variant) const;
  /// Loads a variant. RuntimeError where the device refuses it, or has less shared memory than it needs.
  void load(codegen::LaunchVariant variant, std::shared_ptr<const CompiledTriton> compiled) const;

  /// The most special variant that fits a call.
  codegen::LaunchVariant variant_for(const codegen::KernelCall& call) const;

  /// Launches in the current stream of the device, and returns. What only sizes determine is laid out in
  /// call.block and used again as long as they stay the same. RuntimeError for more than 2^31 - 1 blocks.
  void run(const codegen::KernelCall& call) const override;

 private:
  struct Loaded {
    std::shared_ptr<const CompiledTriton> code;
    device::CudaFunction function = nullptr;
  };
  class Block;
  const Loaded& loaded(codegen::LaunchVariant variant) const;
  void lay_out_grid(const codegen::KernelCall& call, Block& block) const;
  void lay_out(const codegen::KernelCall& call, Block& block) const;
  void launch(const codegen::KernelCall& call, Block& block) const;

  TritonCompiler& compiler_;
  const codegen::TileKernel kernel_;
  codegen::TritonSources sources_;
  codegen::LaunchConfig config_;
  codegen::TileGrid grid_;
  int32_t device_, capability_;
  std::shared_ptr<CudaStatus> status_;
  std::vector<std::string> pointers_, sizes_;  // parameters: pointers; sizes that are not constants
  std::vector<char> symbolic_;                 // by axis: its extent is not a constant
  mutable std::mutex mutex_;
  mutable std::array<std::atomic<const Loaded*>, codegen::LaunchVariant::kCount> variants_{};  // by number
};

}  // namespace stax::runtime
