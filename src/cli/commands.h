// The commands of the `stax` program. Each throws stax::Error for what went wrong and returns the exit
// status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stax::cli {

struct VerifyOptions {
  std::vector<std::string> paths;  ///< files of recorded calls, or folders of them
  std::string mode;                ///< "reference", "compiled" or "dynamic"
  std::string op;                  ///< only this operator (with all its variants); "" for all
  int64_t limit = 0;               ///< at most so many calls of a file; 0 for all
  int64_t jobs = 0;                ///< processes at a time; 0 for one a core
  bool json = false;
  bool verbose = false;  ///< says why each call failed or is unknown
};
/// Replays recorded calls. 1 when one failed.
int verify(const VerifyOptions& options);

struct RunOptions {
  std::string model;                ///< an .onnx file
  std::vector<std::string> inputs;  ///< NAME=FILE.npy
  std::string output_dir;           ///< receives NAME.npy for each output
  std::string device = "cpu";
  bool eager = false;    ///< operator by operator, without compiling
  bool dynamic = false;  ///< compiled for all lengths of the model's symbolic dimensions
};
/// Runs a model and writes its outputs.
int run(const RunOptions& options);

struct ShowOptions {
  std::string program;  ///< a built-in example, or an .onnx file
  std::string target;   ///< "cpu", or "cuda:sm_90"
  std::string stage;    ///< "graph", "loops", "schedule", "kernels", "cpp", "triton" or "plan"
  /// Length of a model's dimensions that have no fixed one; not given: 1. Examples have none.
  std::optional<int64_t> batch;
  bool dynamic = false;  ///< with symbolic sizes: of an example all, of a model those that its file names
};
/// Prints a program at one stage of its compilation.
int show(const ShowOptions& options);

struct CompileKernelsOptions {
  std::vector<std::string> programs;  ///< built-in examples, or .onnx files
  std::vector<std::string> targets;   ///< "cuda:sm_90"
  std::optional<int64_t> batch;       ///< as in ShowOptions
  bool dynamic = false;
  int32_t jobs = 0;  ///< processes at a time; 0 for one a core
};
/// Compiles the kernels of programs for GPUs, which need not be there, and says what came of each. 1 when one
/// failed.
int compile_kernels(const CompileKernelsOptions& options);

struct BenchOptions {
  std::string model;                ///< an .onnx file
  std::vector<std::string> inputs;  ///< NAME=FILE.npy; none: zeros
  std::optional<int64_t> batch;     ///< as in ShowOptions, where there are no files
  double seconds = 2;               ///< to measure for
  bool json = false;
};
/// Times a model.
int bench(const BenchOptions& options);

/// Lists the built-in examples.
int list_examples();

/// The disk cache of compiled kernels: its entries, its size, emptying it.
int cache_list();
int cache_size();
int cache_clear();

/// Says what this machine can do, and how to get what is missing. 1 where there is no working compiler for
/// kernels of the CPU.
int doctor();

}  // namespace stax::cli
