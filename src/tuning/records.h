// What was measured, kept in the disk cache: the one store of configurations of kernels and of ways to do
// products.
#pragma once

#include <optional>

#include "runtime/code_cache.h"
#include "stax/error.h"
#include "support/json.h"

namespace stax::tuning {

/// Records are found under their `facts`: everything that what was chosen depends on, its kind and the
/// version of the record's form among it. What is damaged or cannot be read counts as missing.
class TuningRecords {
 public:
  /// `cache` outlives it.
  explicit TuningRecords(const runtime::CodeCache& cache) : cache_(cache) {}

  /// What `read` makes of the record: an optional, empty where the record does not fit. Where `read` raises
  /// an Error it was written by another version.
  template <class Read>
  auto find(const Json& facts, const Read& read) const -> decltype(read(facts)) {
    try {
      if (const std::optional<Json> record = find(facts)) return read(*record);
    } catch (const Error&) {
      // Measured anew.
    }
    return std::nullopt;
  }
  void put(const Json& facts, const Json& record) const;

 private:
  std::optional<Json> find(const Json& facts) const;

  const runtime::CodeCache& cache_;
};

}  // namespace stax::tuning
