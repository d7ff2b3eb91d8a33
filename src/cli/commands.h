// The commands of the `stax` program. Each throws stax::Error for what went wrong and returns the exit
// status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stax::cli {

struct VerifyOptions {
  std::vector<std::string> paths;  ///< files of recorded calls, or folders of them
  std::string mode;                ///< "reference" or "compiled"
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
};
/// Runs a model and writes its outputs.
int run(const RunOptions& options);

}  // namespace stax::cli
