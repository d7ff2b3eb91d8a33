// The programs that commands name: a built-in example, or a model's file.
#pragma once

#include <string>

#include "capture/captured.h"

namespace stax::cli {

struct ProgramChoice {
  std::string program;   ///< name of a built-in example, or path of an .onnx file
  int64_t batch = 1;     ///< length of a model's dimensions that have no fixed one
  bool dynamic = false;  ///< with symbolic sizes: of an example all, of a model those that its file names
};

/// Captures it. UserError, beginning with `command`, where there is no such program.
capture::Captured capture_program(const std::string& command, const ProgramChoice& choice);

}  // namespace stax::cli
