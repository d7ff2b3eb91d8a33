// Checks that throw stax::Error. Every check carries a message: what was expected, what came, what to do.
#pragma once

#include <fmt/core.h>

#include "stax/error.h"

namespace stax {

[[noreturn]] void throw_user_error(std::string message);
[[noreturn]] void throw_runtime_error(std::string message);
[[noreturn]] void throw_internal_error(const char* file, int line, const char* condition,
                                       std::string message);

}  // namespace stax

/// The caller's mistake unless `condition` holds.
#define STAX_CHECK(condition, ...)                          \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::stax::throw_user_error(::fmt::format(__VA_ARGS__)); \
  } while (false)

/// A fault of Stax unless `condition` holds.
#define STAX_ASSERT(condition, ...)                                                             \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::stax::throw_internal_error(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)

/// The machine's fault unless `condition` holds.
#define STAX_RUNTIME_CHECK(condition, ...)                     \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::stax::throw_runtime_error(::fmt::format(__VA_ARGS__)); \
  } while (false)
