// The Python with Triton that tests of generated kernels use.
#pragma once

#include <unistd.h>

#include <cstdlib>

#include "support/process.h"

namespace stax {

inline constexpr const char* kNoTriton =
    "no Python with Triton: neither STAX_PYTHON nor .venv of `make setup`";

/// True where there is one; STAX_PYTHON then names it.
inline bool use_triton_python() {
  const char* chosen = std::getenv("STAX_PYTHON");
  if (chosen == nullptr || *chosen == '\0') {
    if (access(STAX_TEST_PYTHON, X_OK) != 0) return false;
    setenv("STAX_PYTHON", STAX_TEST_PYTHON, 1);
  }
  static const bool has_triton =
      run_process({std::getenv("STAX_PYTHON"), "-c", "import triton, numpy"}).exit_code == 0;
  return has_triton;
}

}  // namespace stax
