// Replays files in child processes, so that a crash or an endless loop costs one call and not the run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/verify/replay.h"

namespace stax::cli {

struct FileReport {
  std::string path;
  std::string name;   ///< the operator, or the file's name where it cannot be read
  std::string error;  ///< why the file cannot be replayed
  std::vector<Outcome> outcomes;
};

struct WorkerOptions {
  ReplayMode mode = ReplayMode::reference;
  size_t processes = 1;
  size_t limit = 0;        ///< calls a file, 0 for all
  int call_seconds = 120;  ///< a call that takes longer has failed
  bool verbose = false;    ///< lets warnings through
};

/// Replays all files and hands over each report when its file is done, in the order of the paths.
void replay_files(const std::vector<std::string>& paths, const WorkerOptions& options,
                  const std::function<void(const FileReport&)>& report);

}  // namespace stax::cli
