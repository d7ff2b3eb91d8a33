// Compiles test kernels on top of the prelude, for every vector shape that this machine can run.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/cpp/prelude.h"
#include "device/cpu_info.h"
#include "runtime/host_compiler.h"

namespace stax::codegen {

struct Shape {
  int vector_bytes;
  int lanes;
};
inline void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.vector_bytes << "x" << shape.lanes;
}

/// Shapes of `itemsize` 4 and 8 (and their smaller elements) for each instruction set of this machine.
inline std::vector<Shape> runnable_shapes() {
  std::vector<Shape> shapes;
  for (int bytes : {16, 32, 64})
    if (bytes <= device::cpu_target().vector_bytes)
      for (int itemsize : {4, 8}) shapes.push_back({bytes, bytes / itemsize});
  return shapes;
}

inline std::vector<std::string> target_flags(int vector_bytes) {
  for (const char* name : {"x86-64-v4", "x86-64-v3"})
    if (auto target = device::cpu_target_named(name); target.vector_bytes == vector_bytes)
      return target.flags;
  return {};
}

inline std::shared_ptr<runtime::Module> compile_text(Shape shape, const std::string& text) {
  static TemporaryFolder folder(temporary_root(), "stax-prelude-");
  static runtime::HostCompiler compiler({.cache_folder = folder.path() + "/cache"});
  return compiler.compile(text, {.target = target_flags(shape.vector_bytes)});
}

/// Compiles `body` (kernels marked STAX_EXPORT) behind the prelude that it needs.
inline std::shared_ptr<runtime::Module> compile_kernels(Shape shape, const std::string& body) {
  return compile_text(
      shape, prelude({shape.vector_bytes, shape.lanes, prelude_names(body)}) +
                 "#define STAX_EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n" + body);
}

class PreludeTest : public ::testing::TestWithParam<Shape> {
 protected:
  std::shared_ptr<runtime::Module> compile(const std::string& body) const {
    return compile_kernels(GetParam(), body);
  }
  int lanes() const { return GetParam().lanes; }
};

}  // namespace stax::codegen
