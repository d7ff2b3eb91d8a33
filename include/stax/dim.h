// Declarations about sizes: which dimensions of a function's arguments may change between calls, and how far.
//
//   auto n = stax::Dim("n", {.min = 2, .max = 4096});
//   auto compiled = stax::compile(f, {.dynamic = true, .dynamic_shapes = {{{0, n}}, {{0, n}, {1, 64}}}});
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "stax/api.h"

namespace stax {

struct DimOptions {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  int64_t min = 0;
  int64_t max = kNoLimit;
  /// compile() only: one artifact for each range between neighbours, the first from `min` to the first edge,
  /// the last from the last edge to `max`. Upper edges belong to their range.
  std::vector<int64_t> buckets = {};
  /// compile() only: one artifact for each range (2^(k-1), 2^k].
  bool power_of_two_buckets = false;
};

/// What is declared about one dimension: a name with a range, a size derived from such a name, a fixed size,
/// or nothing (automatic). Two dimensions of one name have one size.
class STAX_API Dim {
 public:
  enum class Kind : uint8_t { named, fixed, automatic };

  /// UserError for a name that is no identifier, for min < 0, min > max or edges that do not ascend.
  Dim(std::string name, DimOptions options = {});
  Dim(const char* name, DimOptions options = {}) : Dim(std::string(name), std::move(options)) {}  // NOLINT
  /// The size that the example has; UserError where an example or a call has another.
  Dim(int64_t size);                                  // NOLINT: sizes are written plainly
  Dim(int size) : Dim(static_cast<int64_t>(size)) {}  // NOLINT
  /// Left to the compiler.
  static Dim automatic() { return Dim(Kind::automatic); }
  /// The size of the example, whatever it is: a later call with another size gets an artifact of its own.
  static Dim fixed() { return Dim(Kind::fixed); }

  /// A dimension that is always scale * name + offset; the scale is positive.
  friend STAX_API Dim operator*(int64_t scale, const Dim& dim);
  friend Dim operator*(const Dim& dim, int64_t scale) { return scale * dim; }
  friend STAX_API Dim operator+(const Dim& dim, int64_t offset);
  friend Dim operator+(int64_t offset, const Dim& dim) { return dim + offset; }
  friend Dim operator-(const Dim& dim, int64_t offset) { return dim + -offset; }

  Kind kind() const { return kind_; }
  const std::string& name() const { return name_; }
  /// Of the name, not of what is derived from it.
  const DimOptions& options() const { return options_; }
  int64_t scale() const { return scale_; }
  int64_t offset() const { return offset_; }
  /// The fixed size, or -1 for that of the example.
  int64_t size() const { return size_; }
  /// "n", "2*n + 1", "64", "automatic".
  std::string str() const;

 private:
  explicit Dim(Kind kind) : kind_(kind) {}
  Kind kind_ = Kind::named;
  std::string name_;
  DimOptions options_;
  int64_t scale_ = 1, offset_ = 0, size_ = -1;
};

/// By tensor among the arguments, in the order of the arguments, nested ones included: what is declared about
/// its dimensions. Tensors and dimensions that are not mentioned are automatic; negative dimensions count
/// from the end.
using DynamicShapes = std::vector<std::map<int64_t, Dim>>;

}  // namespace stax
