// What operators and their results are called where programs are shown in the notation of Python.
#pragma once

#include <optional>
#include <string_view>

namespace stax::compiler {

/// A binary operator between its operands, and the name of its result.
struct Infix {
  const char* name = nullptr;
  const char* symbol = nullptr;
};
/// Of an operator by its full name; nothing for those that are written as calls.
std::optional<Infix> infix_of(std::string_view op);

/// Whether an operator's home is nn.functional.
bool is_neural(std::string_view op);

/// Names that Python has already, and its keywords: values get a number behind them.
bool is_python_name(std::string_view name);

}  // namespace stax::compiler
