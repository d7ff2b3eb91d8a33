// One run of a function under a trace, on behalf of compile().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/captured.h"
#include "compiler/program.h"
#include "stax/compile.h"

namespace stax::detail {

/// A number of a call as programs take it.
compiler::NumberCell cell_of(const Scalar& number);

/// What a trace of a call left.
struct TraceOutcome {
  std::optional<capture::Captured> captured;  // nothing: the function read a value, ...
  std::string read_where;                     // ... here
  std::vector<char> wanted;                   // by leaf of the result: see CallResults
};

/// Runs `call` under a new trace. Its results are the captured graph's; or, where the function read a value,
/// the call keeps them, made concrete. Where that is refused, reading is a UserError.
TraceOutcome trace(const Leaves& leaves, FunctionCall& call, const CompileOptions& compile_options,
                   const capture::SymbolOptions& symbol_options, bool refuse_reads);

/// Backend "debug" has no symbolic shapes: an input whose shape the program uses enters with all of it.
void fix_what_was_read(capture::Captured& captured);

/// UserError where the function holds for one value of a declared dimension only.
void check_declared(const capture::Captured& captured);

}  // namespace stax::detail
