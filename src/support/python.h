// The Python of Stax: it works on generated GPU kernels by the package stax_triton, and has libraries of its
// own.
#pragma once

#include <string>
#include <vector>

namespace stax {

/// Path of the Python: `wanted`, else STAX_PYTHON, else that of the environment which `make setup` makes
/// beside the sources, else python3 of PATH. RuntimeError saying what to do where there is none.
std::string find_python(const std::string& wanted = "");

/// Folder that the package lies in: STAX_PYTHON_PATH, else what was installed with the program that runs,
/// else that of the sources, else of the prefix that installations have by default. RuntimeError listing the
/// folders searched where it lies in none.
std::string python_package_folder();

/// What a process that runs the package needs in its environment.
std::vector<std::string> python_environment(const std::string& package_folder);

/// SHA-256 over the names and contents of the package's files, as the package computes it of itself.
std::string python_package_hash(const std::string& package_folder);

}  // namespace stax
