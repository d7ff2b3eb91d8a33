// The errors that Stax throws.
#pragma once

#include <stdexcept>
#include <string>

namespace stax {

/// Base of every error that Stax throws. The message says which operation and where, what was expected, what
/// came, and what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller's mistake: a wrong dtype, shape, index, option or file.
class UserError : public Error {
 public:
  using Error::Error;
};

/// A fault of Stax itself.
class InternalError : public Error {
 public:
  using Error::Error;
};

/// The machine's fault: a missing compiler, a full disk, no memory.
class RuntimeError : public Error {
 public:
  using Error::Error;
};

}  // namespace stax
