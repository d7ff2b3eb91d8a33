// Functions that libmvec or libm compute, and those that have no library: erfinv and digamma.
#include "codegen/cpp/prelude_table.h"

namespace stax::codegen {
void add_library_snippets(SnippetTable&) {}
void add_math_snippets(SnippetTable&) {}
}  // namespace stax::codegen
