#include "compiler/lost_options.h"

#include <fmt/core.h>

#include "tuning/search.h"

namespace stax::compiler {

std::vector<std::string> lost_options(const CompileOptions& inner, const CompileOptions* outer) {
  CompileOptions none;
  none.tuning = tuning::default_strategy();
  const CompileOptions& around = outer != nullptr ? *outer : none;
  std::vector<std::string> lost;
  const auto flag = [&](const char* name, bool asked, bool given) {
    if (asked && !given) lost.push_back(fmt::format("{} = true", name));
  };
  const auto word = [&](const char* name, const std::string& asked, const std::string& usual,
                        const std::string& given) {
    if (asked != usual && asked != given) lost.push_back(fmt::format("{} = \"{}\"", name, asked));
  };
  flag("dynamic", inner.dynamic, around.dynamic);
  if (!inner.dynamic_shapes.empty()) lost.emplace_back("dynamic_shapes");
  // strict_native implies fullgraph.
  flag("fullgraph", inner.fullgraph, around.fullgraph || around.strict_native);
  flag("strict_native", inner.strict_native, around.strict_native);
  word("backend", inner.backend, none.backend, around.backend);
  word("tuning", inner.tuning, none.tuning, around.tuning);
  word("matmul_precision", inner.matmul_precision, none.matmul_precision, around.matmul_precision);
  flag("batch_invariant", inner.batch_invariant, around.batch_invariant);
  return lost;
}

}  // namespace stax::compiler
