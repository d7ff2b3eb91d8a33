// opgen FOLDER: writes FOLDER/stax/functions.h, tensor_methods.inc and the sources behind them. Files that
// would not change keep their time stamps.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ops/table.h"
#include "tools/opgen/generate.h"

namespace {

constexpr int kShards = 4;

void write_if_different(const std::filesystem::path& path, const std::string& text) {
  std::ifstream existing(path, std::ios::binary);
  std::stringstream old;
  old << existing.rdbuf();
  if (existing && old.str() == text) return;
  existing.close();
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: opgen FOLDER\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / "stax";
    std::filesystem::create_directories(folder);
    const auto generated = stax::opgen::generate(stax::ops::table().rows(), kShards);
    write_if_different(folder / "functions.h", generated.functions);
    write_if_different(folder / "tensor_methods.inc", generated.methods);
    for (size_t i = 0; i < generated.sources.size(); ++i) {
      write_if_different(folder / fmt::format("functions_{}.cpp", i), generated.sources[i]);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "opgen: {}\n", error.what());
    return 1;
  }
  return 0;
}
