// Files of exported programs.
//
// "STAXPROG", version (4 bytes), length of the text (8), length of the data (8), SHA-256 of everything else
// (32), the text (JSON: contract, graph, results), the data (elements of constants). Numbers are
// little-endian. Expressions are stored as Expr::str() prints them, floating-point numbers as their bits.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/export_state.h"
#include "support/json.h"

namespace stax::compiler {

inline constexpr std::string_view kExportMagic = "STAXPROG";
inline constexpr uint32_t kExportVersion = 2;
inline constexpr size_t kExportChecksumAt = 28, kExportHeader = 60;
inline constexpr const char* kRelationTexts[] = {"==", "!=", "<", "<="};

/// The bytes of a file.
std::string export_file(const detail::ExportedState& state);

/// The program that a file's text describes. Believes nothing: what operators make of their arguments is
/// computed anew and compared, and whatever reaches into memory is checked. UserError saying what is wrong.
std::shared_ptr<const detail::ExportedState> export_state(const Json& text, std::string_view data);

}  // namespace stax::compiler
