// Sizes for which a kernel keeps configurations of their own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/tile/tile_kernel.h"

namespace stax::tuning {

/// Along each axis whose length changes: about as long as the hint, about 8 or 64 times as long, or so much
/// shorter; what is longer or shorter yet counts as 64 times. Class 0 is that of the hints; it is the only
/// one where all lengths are numbers.
class SizeClasses {
 public:
  explicit SizeClasses(const codegen::TileKernel& kernel);

  size_t count() const { return count_; }
  /// `extents`: lengths of the axes.
  size_t of(std::span<const long> extents) const {
    size_t number = 0;
    for (const Axis& axis : axes_) number = number * kSteps + step(axis, extents[axis.at]);
    return number;
  }
  /// `kernel` with the hints of a class.
  codegen::TileKernel hinted(codegen::TileKernel kernel, size_t number) const;
  /// "x * 8, r0 / 64"; nothing for class 0.
  std::string words(size_t number) const;

 private:
  static constexpr size_t kSteps = 5;
  struct Axis {
    size_t at;     // among the kernel's
    int32_t hint;  // log2, rounded up
    std::string name;
  };
  /// 0 for lengths like the hint, then 8 times, 64 times, an eighth, a 64th.
  static size_t step(const Axis& axis, long length);
  /// Powers of 8, by axis.
  std::vector<int32_t> powers(size_t number) const;

  std::vector<Axis> axes_;
  size_t count_ = 1;
};

}  // namespace stax::tuning
