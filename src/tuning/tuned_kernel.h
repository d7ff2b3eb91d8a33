// Kernels on a GPU that choose their launch configuration by measuring, the first time they are launched.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/kernel_info.h"
#include "runtime/cuda_kernel.h"
#include "tuning/size_classes.h"
#include "tuning/tune.h"

namespace stax::tuning {

/// A kernel of a plan. Where sizes change, each class of sizes (SizeClasses) has a configuration of its own,
/// measured at its first launch. Thread-safe: launches that come while another thread measures wait for it.
class TunedKernel final : public codegen::KernelRunner {
 public:
  /// `bytes`: sizes of the buffers behind kernel.pointers. `strategy` is the name of a Strategy, or "none"
  /// for the likeliest candidate, unmeasured. `compiler` outlives it; `status` as for CudaKernel.
  TunedKernel(runtime::TritonCompiler& compiler, codegen::TileKernel kernel, codegen::TritonSources sources,
              std::vector<Expr> bytes, int32_t device, std::shared_ptr<runtime::CudaStatus> status,
              std::string strategy);
  ~TunedKernel() override;

  /// What a launch with these extents, which are like the hints, will need where `alignment` fits it: the
  /// recorded configuration, otherwise all candidates.
  std::vector<runtime::TritonRequest> requests(codegen::Alignment alignment,
                                               std::span<const long> extents) const;

  void run(const codegen::KernelCall& call) const override;

 private:
  class OnDevice;
  /// What is looked at for a class of sizes.
  struct Start {
    codegen::TileKernel kernel;  // with its hints
    TuningKey key;
    std::vector<codegen::LaunchConfig> configs;  // candidates, or what is taken without measuring
    bool settled = false;                        // nothing is left to measure: configs has one
  };

  Start start(size_t size_class) const;
  const runtime::CudaKernel& choose(const codegen::KernelCall& call, size_t size_class) const;
  codegen::LaunchConfig measured(const codegen::KernelCall& call, const Start& start) const;
  std::unique_ptr<runtime::CudaKernel> with(codegen::LaunchConfig config) const;

  runtime::TritonCompiler& compiler_;
  codegen::TileKernel kernel_;
  codegen::TritonSources sources_;
  std::vector<Expr> bytes_;
  int32_t device_;
  std::shared_ptr<runtime::CudaStatus> status_;
  std::string strategy_;
  SizeClasses classes_;
  Start first_;  // of class 0
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<const runtime::CudaKernel>> kept_;  // by configuration
  mutable std::vector<std::atomic<const runtime::CudaKernel*>> chosen_;             // by class of sizes
};

}  // namespace stax::tuning
