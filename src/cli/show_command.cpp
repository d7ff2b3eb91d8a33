// stax show: a program at any stage of its compilation.
#include <cstdio>

#include "cli/commands.h"
#include "cli/program_capture.h"
#include "compiler/pipeline.h"

namespace stax::cli {

int show(const ShowOptions& options) {
  const capture::Captured captured =
      capture_program("show", {options.program, options.batch, options.dynamic});
  const compiler::Stages stages =
      compiler::run_stages(captured.graph, *captured.env, {.strict_native = true, .target = options.target});
  std::fputs(compiler::stage_text(stages, options.stage).c_str(), stdout);
  return 0;
}

}  // namespace stax::cli
