// What the processor can do, in fixed names, so that keys of compiled kernels mean the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stax::device {

/// An instruction set that kernels are compiled for.
struct CpuTarget {
  std::string name;  ///< "x86-64-v4", "x86-64-v3", "x86-64" or "generic" (another architecture)
  std::vector<std::string>
      flags;  ///< for the host compiler; never -march=native, whose meaning depends on the machine
  int vector_bytes =
      16;  ///< 64 for x86-64-v4 (AVX-512 F, BW, CD, DQ, VL), 32 for v3 (AVX2, FMA, F16C), else 16
};

/// The best target that this processor and its operating system support.
const CpuTarget& cpu_target();

/// The target of that name. Throws UserError listing the names for another one.
CpuTarget cpu_target_named(std::string_view name);

/// Bytes of the last-level cache (8 MiB where the system does not say).
int64_t last_level_cache_bytes();

/// Processors this process may run on.
int available_processors();

}  // namespace stax::device
