#include "examples/python_packages.h"

#include <algorithm>
#include <vector>

namespace fs = std::filesystem;

namespace {

/// The folder in one environment, that of its newest Python where it has several.
fs::path find_in_environment(const fs::path& environment, const fs::path& inside) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& python : fs::directory_iterator(environment / "lib", error)) {
    const fs::path folder = python.path() / "site-packages" / inside;
    if (fs::is_directory(folder, error)) found.push_back(folder);
  }
  return found.empty() ? fs::path() : *std::max_element(found.begin(), found.end());
}

}  // namespace

fs::path find_in_python_packages(const fs::path& inside) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& start : {fs::current_path(error), program}) {
    for (fs::path folder = start; !folder.empty(); folder = folder.parent_path()) {
      if (const fs::path found = find_in_environment(folder / ".venv", inside); !found.empty()) return found;
      if (folder == folder.root_path()) break;
    }
  }
  return {};
}
