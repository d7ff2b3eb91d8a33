// Classes of sizes: which lengths share a configuration.
#include "tuning/size_classes.h"

#include <gtest/gtest.h>

#include <set>

namespace stax::tuning {
namespace {

using codegen::TileAxisKind;

codegen::TileKernel rows_kernel(int64_t rows, int64_t columns, int64_t block = 0) {
  codegen::TileKernel kernel;
  kernel.axes = {
      {.kind = TileAxisKind::x, .numel = Expr(Symbol{SymbolKind::size, 0}), .size_hint = rows},
      {.kind = TileAxisKind::r0, .numel = Expr(Symbol{SymbolKind::size, 1}), .size_hint = columns}};
  kernel.axes[1].block = block;
  return kernel;
}

size_t class_of(const SizeClasses& classes, long rows, long columns) {
  const long extents[] = {rows, columns};
  return classes.of(extents);
}

TEST(SizeClasses, AFactorOfEightIsAnotherClass) {
  const SizeClasses classes(rows_kernel(4096, 1024));
  EXPECT_EQ(classes.count(), 25u);
  for (const long rows : {2049L, 4000L, 4096L, 8192L}) EXPECT_EQ(class_of(classes, rows, 1024), 0u);
  EXPECT_EQ(classes.words(0), "");
  EXPECT_EQ(classes.words(class_of(classes, 4096, 128)), "r0 / 8");
  EXPECT_EQ(classes.words(class_of(classes, 512, 8192)), "x / 8, r0 * 8");
  EXPECT_EQ(classes.words(class_of(classes, 32768, 1000)), "x * 8");
  EXPECT_EQ(classes.words(class_of(classes, 1, 1L << 40)), "x / 64, r0 * 64");
  EXPECT_EQ(classes.words(class_of(classes, 64, 65536)), "x / 64, r0 * 64");
}

TEST(SizeClasses, EachHasANumberOfItsOwn) {
  const SizeClasses classes(rows_kernel(4096, 1024));
  std::set<size_t> numbers;
  for (const long rows : {64L, 512L, 4096L, 32768L, 262144L})
    for (const long columns : {16L, 128L, 1024L, 8192L, 65536L})
      numbers.insert(class_of(classes, rows, columns));
  EXPECT_EQ(numbers.size(), 25u);
  EXPECT_EQ(*numbers.rbegin(), 24u);
}

TEST(SizeClasses, HintsAreThoseOfTheClass) {
  const codegen::TileKernel kernel = rows_kernel(4096, 16);
  const SizeClasses classes(kernel);
  const codegen::TileKernel other = classes.hinted(kernel, class_of(classes, 40000, 1));
  EXPECT_EQ(other.axes[0].size_hint, 32768);
  EXPECT_EQ(other.axes[1].size_hint, 2);
  EXPECT_EQ(classes.hinted(kernel, class_of(classes, 1, 1)).axes[1].size_hint, 2);
  EXPECT_EQ(classes.hinted(kernel, class_of(classes, 50, 100)).axes[0].size_hint, 64);
}

TEST(SizeClasses, NumbersAndFixedBlocksHaveNone) {
  codegen::TileKernel kernel = rows_kernel(4096, 1024, 1024);
  EXPECT_EQ(SizeClasses(kernel).count(), 5u);
  kernel.axes[0].numel = 4096;
  const SizeClasses classes(kernel);
  EXPECT_EQ(classes.count(), 1u);
  EXPECT_EQ(class_of(classes, 4096, 7), 0u);
}

}  // namespace
}  // namespace stax::tuning
