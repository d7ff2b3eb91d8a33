// What kernels that are measured ask the compiler for, over the driver for tests.
#include "tuning/tuned_kernel.h"

#include <gtest/gtest.h>

#include "codegen/triton/printer.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/file.h"

namespace stax::tuning {
namespace {

const bool driver_used = (fake_cuda::use(), true);

codegen::TileKernel transposition(int64_t rows) {
  codegen::TileKernel kernel;
  kernel.name = "transposed";
  kernel.axes = {{.kind = codegen::TileAxisKind::y, .numel = rows, .size_hint = 1 << 24},
                 {.kind = codegen::TileAxisKind::x, .numel = 33, .size_hint = 64}};
  return kernel;
}

int64_t block_along_y(const runtime::TritonRequest& request) {
  for (const auto& [name, size] : request.config.blocks)
    if (name == "YBLOCK") return size;
  return 0;
}

// What is measured is what will be launched: a grid takes 65,535 blocks along y.
TEST(TunedKernel, MeasuresFoldedGridsWhereALaunchNeedsThem) {
  fake_cuda::reset();
  const TemporaryFolder folder(temporary_root(), "stax-tuned-");
  runtime::TritonCompiler compiler(
      {.cache_folder = folder.path() + "/cache", .command = {"/nowhere/python"}});
  constexpr int64_t kRows = int64_t{65536} * 32;
  const codegen::TileKernel tile = transposition(kRows);
  const TunedKernel kernel(compiler, tile, codegen::print_sources(tile), {}, 0, nullptr, "none");
  const auto source = [&](long rows) {
    const auto requests = kernel.requests(codegen::Alignment::aligned, std::vector<long>{rows, 33});
    EXPECT_EQ(requests.size(), 1u);
    EXPECT_EQ(block_along_y(requests.at(0)), 32);
    return requests.at(0).source;
  };
  EXPECT_EQ(source(kRows), codegen::print_triton(tile, true));
  EXPECT_EQ(source(kRows - 32), codegen::print_triton(tile));
  EXPECT_NE(source(kRows), source(kRows - 32));
}

}  // namespace
}  // namespace stax::tuning
