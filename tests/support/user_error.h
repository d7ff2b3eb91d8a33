// What a call that is refused says.
#pragma once

#include <string>

#include "stax/error.h"

namespace stax {

/// The message of the UserError that `call` raises; "no error" where it raises none.
template <class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace stax
