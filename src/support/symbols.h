// Functions of a library that was opened at run time.
#pragma once

#include <dlfcn.h>

#include <string>

namespace stax {

/// Finds functions by name, and notes those that are not there.
class Symbols {
 public:
  /// `library`: of dlopen().
  explicit Symbols(void* library) : library_(library) {}

  /// The function's address; null where the library lacks it.
  void* find(const char* name) {
    void* symbol = dlsym(library_, name);
    if (symbol == nullptr) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
    return symbol;
  }
  /// What was not found: "cuInit, cuDeviceGet". Empty where nothing is missing.
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace stax
