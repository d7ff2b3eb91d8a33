// Where in the user's program something was asked for: a call stack that is taken cheaply, as addresses, and
// put into words only when it is printed.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stax/error.h"

namespace stax {

/// A name of the compiler's as it is written in C++; what is none, as it is.
std::string demangled(const char* name);

class CallStack {
 public:
  CallStack() = default;
  /// This call and those that led to it, innermost first.
  static CallStack take();
  bool empty() const { return !frames_; }
  /// The innermost call outside Stax: "main.cpp:12" where the program has debug lines (found by addr2line),
  /// "function+0x1c" where only its exported name is known, else "".
  std::string user_place() const;

 private:
  std::shared_ptr<const std::vector<void*>> frames_;
};

/// A user error that ends with the place in the user's program: found out when somebody asks for the text.
class PlacedError final : public UserError {
 public:
  PlacedError(const std::string& message, CallStack stack);
  const char* what() const noexcept override;

 private:
  struct Text;
  std::shared_ptr<Text> text_;
};

/// Throws a user error that names the place, if there is one.
[[noreturn]] void throw_user_error_at(const CallStack& where, const std::string& message);

}  // namespace stax
