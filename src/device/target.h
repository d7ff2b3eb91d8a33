// What lowering, scheduling and code generation read of the machine that a program is compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stax {

struct Target {
  enum class Kind : uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int32_t processors = 1;          // cores or multiprocessors
  int32_t threads_each = 1;        // 2048 for the GPUs of the specification's listings
  int32_t vector_bytes = 32;       // CPU vector width
  int64_t cache_bytes = 32 << 20;  // last-level cache
  /// Loop nests that one kernel may run one after another, each once the one before is done: 1 where the
  /// threads of a kernel cannot wait for each other, as on a GPU.
  int32_t phases = 1;
  int64_t row_bytes = 256 << 10;  // of a row that is kept close between passes over it
  bool narrow_indices = false;    // arithmetic with 32 bits is faster than with 64
  /// Sums are added up in an order that the length of a row determines alone: nothing that changes it may be
  /// decided by how many rows there are, by the hints of sizes, or by what is fused.
  bool batch_invariant = false;
};

/// The target called "cuda:sm_90", as it is without a device to ask; UserError for a name that is none,
/// listing those that are.
Target cuda_target_named(std::string_view name);

/// That of a device of this machine, and its name: "cuda:sm_90". Errors as device::cuda_properties().
Target cuda_target_of(int32_t device);
std::string cuda_target_name(int32_t device);

}  // namespace stax
