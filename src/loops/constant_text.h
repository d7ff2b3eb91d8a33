// Constants as text that reads back to the same bits, and the signs of comparisons.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "loops/body.h"
#include "symbolic/ranges.h"

namespace stax::loops {

/// Shortest decimal that reads back as the same value; "inf", "-inf", "nan"; integers and bool as integers.
std::string constant_text(DType dtype, Constant constant);

/// Reads what constant_text() writes (and any decimal); nothing when `text` is not a number of that dtype.
std::optional<Constant> parse_constant(DType dtype, std::string_view text);

/// "==", "!=", "<" or "<=".
std::string_view sign_of(Relation relation);
/// Nothing for another text.
std::optional<Relation> relation_of(std::string_view sign);

}  // namespace stax::loops
