// What the tests of the host compiler and its cache share: a folder of their own, and functions to compile.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/host_compiler.h"
#include "support/file.h"

namespace stax::runtime {

/// Source of `int answer()`, which returns `value`.
inline std::string source_returning(int value) {
  return "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return " +
         std::to_string(value) + "; }\n";
}

/// What the `answer()` of a module returns.
inline int answer(const Module& module) {
  return reinterpret_cast<int (*)()>(module.symbol("answer"))();
}

/// A test with a temporary folder, in which the cache lies.
class CacheTest : public ::testing::Test {
 protected:
  std::string folder() const { return temporary_.path(); }
  std::string cache() const { return folder() + "/cache"; }
  HostCompilerOptions options(std::string program = "") const {
    return {.program = std::move(program), .cache_folder = cache()};
  }
  /// An executable script; returns its path.
  std::string script(const std::string& name, const std::string& body) const {
    const std::string path = folder() + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

 private:
  TemporaryFolder temporary_{temporary_root(), "stax-test-"};
};

}  // namespace stax::runtime
