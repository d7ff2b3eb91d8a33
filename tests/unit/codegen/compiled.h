// Compiles a loop program's text to CPU kernels and runs them, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/cpp/printer.h"
#include "device/cpu_info.h"
#include "loops/parse.h"
#include "runtime/host_compiler.h"
#include "schedule/schedule.h"

namespace stax::codegen {

inline runtime::HostCompiler& test_compiler() {
  static runtime::HostCompiler compiler;
  return compiler;
}

/// A program, scheduled, printed and compiled.
class Compiled {
 public:
  struct Options {
    int64_t cache_bytes = 32 << 20;
    device::CpuTarget cpu = device::cpu_target();
    int32_t phases = 1;
  };
  explicit Compiled(std::string_view text) : Compiled(text, Options{}) {}
  Compiled(std::string_view text, const Options& options) : program(loops::parse_program(text)) {
    loops::verify(program);
    schedule::Target target{.processors = 2,
                            .vector_bytes = options.cpu.vector_bytes,
                            .cache_bytes = options.cache_bytes,
                            .phases = options.phases};
    schedule = schedule::make_schedule(program, target);
    module = emit_module(program, schedule.groups, target);
    runtime::CompileFlags flags;
    flags.target = options.cpu.flags;
    library_ = test_compiler().compile(module.source, flags);
  }

  /// Runs every kernel over its parallel domain, cut in `pieces` calls. Buffers by name; the others are
  /// allocated.
  KernelStatus run(const std::map<std::string, void*>& given,
                   const std::vector<loops::Constant>& scalars = {}, int pieces = 1,
                   const std::map<Symbol, int64_t>& symbols = {}) const {
    auto value = [&](Expr e) { return evaluate(e, [&](Symbol s) { return symbols.at(s); }); };
    std::vector<std::vector<double>> storage;  // aligned for every dtype
    std::vector<void*> pointers;
    for (const loops::Buffer& b : program.buffers) {
      if (auto it = given.find(b.name); it != given.end()) {
        pointers.push_back(it->second);
        continue;
      }
      int64_t elements = 1;
      for (size_t d = 0; d < b.sizes.size(); ++d) elements += (value(b.sizes[d]) - 1) * value(b.strides[d]);
      storage.emplace_back(static_cast<size_t>(std::max<int64_t>(elements, 1)) + 8);
      pointers.push_back(storage.back().data());
    }
    KernelStatus status;
    for (const KernelInfo& info : module.kernels) {
      std::vector<void*> buffers;
      for (loops::BufferId b : info.buffers) buffers.push_back(pointers[b]);
      std::vector<char> scratch(static_cast<size_t>(value(info.scratch_bytes)) + 64);
      buffers.push_back(
          reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64));
      std::vector<long> sizes;
      for (Symbol s : info.symbols) sizes.push_back(symbols.at(s));
      const auto entry = reinterpret_cast<KernelEntry>(library_->symbol(info.name));
      long first = 0;
      const auto run_phase = [&](long points) {
        for (int k = 0; k < pieces; ++k)
          entry(buffers.data(), sizes.data(), scalars.data(), &status.node, first + points * k / pieces,
                first + points * (k + 1) / pieces);
        first += points;
      };
      run_phase(value(info.parallel_extent));
      for (const KernelPhase& phase : info.later) run_phase(value(phase.extent));
    }
    return status;
  }

  loops::Program program;
  schedule::Schedule schedule;
  Module module;

 private:
  std::shared_ptr<runtime::Module> library_;
};

/// Deterministic values in [lo, hi).
template <class T>
std::vector<T> numbers(size_t n, double lo = -2, double hi = 2, uint64_t seed = 1) {
  std::vector<T> out(n);
  for (T& x : out) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(lo + (hi - lo) * static_cast<double>(seed >> 33) / 2147483648.0);
  }
  return out;
}

}  // namespace stax::codegen
