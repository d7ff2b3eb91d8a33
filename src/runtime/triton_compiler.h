// Compiles generated Triton kernels to machine code of a GPU: in a pool of Python processes that keep Triton
// imported, through the disk cache. Needs no GPU.
//
// A launch passes the kernel's arguments that are not constexpr, in the order of its parameters, and after
// them two pointers: to global scratch memory and to profile scratch memory, null where their size is 0. (A
// kernel of Triton 3.4 does not take the second; a launch that gives it anyway is right, too.)
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/tile/tile_kernel.h"
#include "runtime/code_cache.h"
#include "support/json.h"

namespace stax::runtime {

/// All that determines the machine code of one kernel, beside the versions of what compiles it.
struct TritonRequest {
  std::string source;  ///< the generated file
  std::string kernel;  ///< name of the kernel in it
  int32_t capability = 90;
  codegen::LaunchConfig config;
  bool wide_index = false;             ///< sizes are passed as 64-bit integers, otherwise as 32-bit ones
  std::vector<std::string> divisible;  ///< arguments (pointers and sizes) that are multiples of 16
};

struct CompiledTriton {
  std::string cubin;
  std::string entry;                   ///< name of the function in it
  std::vector<std::string> arguments;  ///< types in the order of a launch: "*fp32", "i32", "i64", "fp64"
  int32_t scratch_pointers = 2;        ///< that it takes after them
  int32_t warps = 4;                   ///< of 32 threads: the size of a block of threads
  int32_t shared_bytes = 0;            ///< dynamic shared memory that a launch has to give
  int32_t registers = 0;               ///< of a thread
  int32_t spill_bytes = 0;             ///< that a thread stores to and loads from local memory in their lack
  int64_t global_scratch_bytes = 0, global_scratch_alignment = 1;    ///< for each instance of the grid
  int64_t profile_scratch_bytes = 0, profile_scratch_alignment = 1;  ///< likewise
  double seconds = 0;  ///< that Triton took, when it compiled it
};

/// One of the two is set.
struct TritonOutcome {
  std::shared_ptr<const CompiledTriton> kernel;
  std::string error;
  bool from_cache = false;
};

struct TritonCompilerOptions {
  int32_t workers = 0;       ///< processes at most; 0: one a processor
  std::string python;        ///< as for find_python()
  std::string cache_folder;  ///< empty: CodeCache::default_folder()
  int64_t cache_bytes = int64_t{1} << 30;
  std::chrono::milliseconds time_limit{120'000};  ///< for one kernel, and for the start of a worker
  std::vector<std::string> command;               ///< started instead of Python with the package's worker
};

/// Thread-safe. Requests that are equal are compiled once; two processes may both compile one, and either
/// result is kept. Processes start at the first need, and end with this object.
class TritonCompiler {
 public:
  explicit TritonCompiler(TritonCompilerOptions options = {});
  ~TritonCompiler();

  /// From this object's memory, from the disk, or compiled now. RuntimeError naming the kernel where Triton
  /// refuses it, where there is no Python or no Triton that can be used (saying what to install), and where
  /// workers end, hang or answer nonsense twice, with their command and the end of what they wrote.
  std::shared_ptr<const CompiledTriton> compile(const TritonRequest& request);

  /// The same for several kernels, in as many processes as there are for; results parallel to `requests`.
  /// Errors of single kernels are results. `progress`, where given, is called by one thread at a time with
  /// the number of kernels done.
  std::vector<TritonOutcome> compile(std::span<const TritonRequest> requests,
                                     const std::function<void(size_t)>& progress = {});

  /// Starts a process that imports Triton meanwhile, unless one is there. Returns at once, and leaves errors
  /// to compile().
  void start();
  /// The same where the cache folder does not know the version of Triton, so that the first kernel needs one.
  void start_where_unknown();

  /// Version of Triton. RuntimeError as compile(). Where the cache folder knows it, no process is started.
  std::string triton_version();
  /// What a process says of itself: members "python", "triton", "files" (arrays that begin with a path) and
  /// "package". RuntimeError as compile().
  Json describe();
  const CodeCache& cache() const;
  /// Kernels that Triton compiled, and processes started, so far.
  int64_t compiled() const;
  int64_t started() const;
  /// That Triton took for them, together.
  double seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stax::runtime
