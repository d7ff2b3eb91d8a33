// Where the repository's Python environment keeps what its packages ship.
#pragma once

#include <filesystem>

/// The folder `inside` (relative, such as "magika/models") of the packages in `.venv`, which is looked for in
/// the current folder, in the program's own, and in every folder above them. Empty where there is none.
std::filesystem::path find_in_python_packages(const std::filesystem::path& inside);
