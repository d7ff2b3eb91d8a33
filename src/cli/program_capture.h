// The programs that commands name: a built-in example, or a model's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/captured.h"

namespace stax::cli {

struct ProgramChoice {
  std::string program;           ///< name of a built-in example, or path of an .onnx file
  std::optional<int64_t> batch;  ///< length of a model's dimensions that have no fixed one
  bool dynamic = false;  ///< with symbolic sizes: of an example all, of a model those that its file names
};

/// Captures it. UserError, beginning with `command`, where there is no such program, or a batch for one that
/// has none.
capture::Captured capture_program(const std::string& command, const ProgramChoice& choice);

}  // namespace stax::cli
