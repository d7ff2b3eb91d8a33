#include "support/python.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "support/check.h"
#include "support/file.h"
#include "support/hash.h"

#ifndef STAX_SOURCE_FOLDER
#define STAX_SOURCE_FOLDER ""
#endif
#ifndef STAX_DATA_FOLDER
#define STAX_DATA_FOLDER ""
#endif

namespace stax {

namespace fs = std::filesystem;

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::string find_python(const std::string& wanted) {
  const std::string named = wanted.empty() ? variable("STAX_PYTHON") : wanted;
  if (!named.empty()) {
    const auto path = find_program(named);
    STAX_RUNTIME_CHECK(path.has_value(),
                       "the Python {} was not found or is not executable; set STAX_PYTHON to the path of a "
                       "Python 3.10 or newer that has Triton",
                       named);
    return *path;
  }
  if (const auto path = find_program(STAX_SOURCE_FOLDER "/.venv/bin/python")) return *path;
  const auto path = find_program("python3");
  STAX_RUNTIME_CHECK(
      path.has_value(),
      "kernels for GPUs need Python 3.10 or newer with Triton, and there is no python3 on PATH; "
      "install one (apt-get install python3 python3-venv), or set STAX_PYTHON to the path of one");
  return *path;
}

std::string python_package_folder() {
  std::vector<std::string> folders;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back((program.parent_path().parent_path() / "share/stax/python").string());
  folders.insert(folders.end(), {STAX_SOURCE_FOLDER "/python", STAX_DATA_FOLDER "/python"});
  if (const std::string chosen = variable("STAX_PYTHON_PATH"); !chosen.empty()) folders = {chosen};
  std::string searched;
  for (const std::string& folder : folders) {
    if (fs::exists(folder + "/stax_triton/__init__.py", error)) return folder;
    searched += (searched.empty() ? "" : ", ") + folder;
  }
  throw_runtime_error(fmt::format(
      "the Python package stax_triton, which works on generated GPU kernels, was not found in {}; "
      "set STAX_PYTHON_PATH to the folder that holds it",
      searched));
}

std::vector<std::string> python_environment(const std::string& package_folder) {
  const std::string more = variable("PYTHONPATH");
  return {"PYTHONPATH=" + package_folder + (more.empty() ? "" : ":" + more),
          "PYTHONSAFEPATH=1",  // nothing is imported from the folder that the program happens to run in
          "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"};
}

std::string python_package_hash(const std::string& package_folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(package_folder + "/stax_triton", error))
    if (file.path().extension() == ".py") paths.push_back(file.path());
  std::ranges::sort(paths);
  std::string text;
  for (const fs::path& path : paths) {
    const std::string content = read_file(path.string()).value_or("");
    text += fmt::format("{} {}\n", path.filename().string(), content.size()) + content;
  }
  return sha256_hex(text);
}

}  // namespace stax
