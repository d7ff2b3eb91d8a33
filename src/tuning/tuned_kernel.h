// Kernels on a GPU that choose their launch configuration by measuring, the first time they are launched.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/kernel_info.h"
#include "runtime/cuda_kernel.h"
#include "tuning/tune.h"

namespace stax::tuning {

/// A kernel of a plan. Thread-safe: launches that come while another thread measures wait for it.
class TunedKernel final : public codegen::KernelRunner {
 public:
  /// `bytes`: sizes of the buffers behind kernel.pointers. `strategy` is the name of a Strategy, or "none"
  /// for the likeliest candidate, unmeasured. `compiler` outlives it; `status` as for CudaKernel.
  TunedKernel(runtime::TritonCompiler& compiler, codegen::TileKernel kernel, std::string source,
              std::vector<Expr> bytes, int32_t device, std::shared_ptr<runtime::CudaStatus> status,
              std::string strategy);
  ~TunedKernel() override;

  /// What the first launch will need where `variant` fits it: the recorded configuration, otherwise all
  /// candidates.
  std::vector<runtime::TritonRequest> requests(runtime::CudaVariant variant) const;

  void run(const codegen::KernelCall& call) const override;

 private:
  class OnDevice;

  const runtime::CudaKernel& choose(const codegen::KernelCall& call) const;
  codegen::LaunchConfig measured(const codegen::KernelCall& call) const;
  std::unique_ptr<runtime::CudaKernel> with(codegen::LaunchConfig config) const;
  TuningKey key() const;

  runtime::TritonCompiler& compiler_;
  codegen::TileKernel kernel_;
  std::string source_;
  std::vector<Expr> bytes_;
  int32_t device_;
  std::shared_ptr<runtime::CudaStatus> status_;
  std::string strategy_;
  std::vector<codegen::LaunchConfig> start_;  // candidates, or what is taken without measuring
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const runtime::CudaKernel> kept_;
  mutable std::atomic<const runtime::CudaKernel*> chosen_ = nullptr;
};

}  // namespace stax::tuning
