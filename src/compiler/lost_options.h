// Options of a compiled function that is called while another one is traced: it becomes a part of that one.
#pragma once

#include <string>
#include <vector>

#include "stax/compile.h"

namespace stax::compiler {

/// Those that `inner` sets and `outer` does not bring about, as they are written: "dynamic = true". Both come
/// from compiled functions, whose `tuning` is never empty; `outer` may be null (an export, say).
std::vector<std::string> lost_options(const CompileOptions& inner, const CompileOptions* outer);

}  // namespace stax::compiler
