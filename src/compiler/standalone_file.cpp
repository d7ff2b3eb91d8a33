#include "compiler/standalone_file.h"

#include <fmt/ranges.h>

#include "codegen/plain/printer.h"
#include "compiler/pipeline.h"
#include "support/check.h"

namespace stax::compiler {
namespace {

/// Says what is missing before the imports of the kernels fail.
constexpr std::string_view kHead =
    R"py(# Run by itself, this file checks its kernels and times them: PYTHONPATH=python python FILE [--help]
if __name__ == "__main__":
    try:
        from stax_triton import requirements
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"{error}: set PYTHONPATH to the folder python of Stax's sources (installed: share/stax/python)"
        ) from None
    requirements.check()

)py";

constexpr std::string_view kPlainHead = R"(import numpy as np
from stax_triton import plain

# What the kernels have to compute, from the loops that they were made from. Arguments are flat arrays, each axis
# of np.ogrid is a loop.
)";

std::vector<codegen::PlainArgument> arguments_of(const codegen::TileKernel& kernel) {
  std::vector<codegen::PlainArgument> arguments;
  for (const codegen::TilePointer& p : kernel.pointers) arguments.push_back({p.buffer, p.name});
  return arguments;
}

}  // namespace

std::string standalone_file(const Stages& stages) {
  const auto example = [&](Symbol s) {
    const auto known = stages.example.find(s);
    STAX_ASSERT(known != stages.example.end(), "size {} has no value in the example", s.str());
    return known->second;
  };
  std::string text(kHead), plain(kPlainHead);
  std::vector<std::string> pairs;
  for (const GpuKernel& kernel : stages.gpu_kernels) {
    text += codegen::print_triton(kernel.tile, false, kernel.launch_facts) + "\n\n";
    if (!kernel.first) {
      pairs.push_back(kernel.tile.name);
      continue;
    }
    const std::string name = "plain" + kernel.tile.name.substr(kernel.tile.name.find("_fused") + 6);
    plain += codegen::print_plain(stages.program, stages.schedule.groups[kernel.group], name,
                                  arguments_of(kernel.tile), example) +
             "\n\n";
    pairs.push_back(fmt::format("({}, {})", kernel.tile.name, name));
  }
  return text + plain +
         fmt::format(
             "if __name__ == \"__main__\":\n    from stax_triton import standalone\n\n    standalone.main(\n "
             "       {},\n    )\n",
             fmt::join(pairs, ",\n        "));
}

std::map<Symbol, int64_t> example_sizes(const loops::Program& program, const Sizes& sizes) {
  std::map<Symbol, int64_t> example;
  for (const loops::SymbolBinding& b : program.bindings) example[b.symbol] = sizes.likely(b.symbol);
  for (const loops::Node& node : program.nodes)
    for (const loops::ResultBinding& b : node.binds) example[b.symbol] = sizes.likely(b.symbol);
  return example;
}

}  // namespace stax::compiler
