// CompileOptions::batch_invariant on a GPU. Interpreted kernels do not show in which order threads add up, so
// there the comparison of bits says little; that nothing depends on the number of rows which could change
// that order is tested of what kernels are made of.
#include "support/batch_invariance.h"

#include <set>

#include "compiler/batch.h"
#include "compiler/pipeline.h"
#include "compiler/pipeline_gpu.h"
#include "gpu/gpu_testing.h"
#include "runtime/cuda_kernel.h"
#include "tuning/config_space.h"

namespace stax {
namespace {

const std::vector<std::string> kNone;

CompileOptions invariant(bool dynamic = false) {
  return {.dynamic = dynamic, .strict_native = true, .batch_invariant = true};
}

/// Interpreted kernels take long.
std::vector<int64_t> batches() {
  return on_real_gpu() ? std::vector<int64_t>{1, 3, 64} : std::vector<int64_t>{1};
}
int64_t all_rows() {
  return on_real_gpu() ? 1000 : 4;
}

std::vector<std::string> reductions_that_differ(int64_t width, DType dtype, const CompileOptions& options) {
  const int64_t rows = width > 10000 ? 100 : all_rows();
  return batches_that_differ(row_reductions(width), dtype, rows, batches(), options, kCUDA);
}
std::vector<std::string> networks_that_differ(DType dtype, const CompileOptions& options) {
  return batches_that_differ(networks(dtype, kCUDA), dtype, all_rows(), batches(), options, kCUDA);
}

class BatchInvarianceOnGpu : public GpuTest {};

TEST_F(BatchInvarianceOnGpu, OfALayer) {
  std::vector<RowNet> nets = networks(kBFloat16, kCUDA);
  nets.resize(1);
  EXPECT_EQ(batches_that_differ(nets, kBFloat16, 64, {1, 4}, invariant(), kCUDA), kNone);
}

TEST_F(BatchInvarianceOnGpu, IsNotThereUnlessAskedFor) {
  if (!on_real_gpu()) GTEST_SKIP() << "the interpreter adds up in one order";
  EXPECT_NE(reductions_that_differ(129, kFloat32, {}), kNone);
  EXPECT_NE(networks_that_differ(kBFloat16, {}), kNone);
}

TEST_F(BatchInvarianceOnGpu, OfProductsAndConvolutions) {
  for (const DType dtype : {kBFloat16, kFloat32}) {
    if (!on_real_gpu() && dtype == kBFloat16) continue;
    EXPECT_EQ(networks_that_differ(dtype, invariant()), kNone) << name(dtype);
  }
}

TEST_F(BatchInvarianceOnGpu, OfOtherNetworks) {
  if (!on_real_gpu()) GTEST_SKIP() << "takes minutes in the interpreter, and shows little there";
  EXPECT_EQ(batches_that_differ(other_networks(kBFloat16, kCUDA), kBFloat16, all_rows(), batches(),
                                invariant(), kCUDA),
            kNone);
}

TEST_F(BatchInvarianceOnGpu, OfReductionsAlongRows) {
  const std::vector<std::pair<int64_t, DType>> cases =
      on_real_gpu()
          ? std::vector<std::pair<int64_t, DType>>{{127, kBFloat16}, {128, kFloat32},   {1000, kFloat16},
                                                   {129, kFloat32},  {5001, kBFloat16}, {50257, kFloat32}}
          : std::vector<std::pair<int64_t, DType>>{{127, kFloat32}, {1100, kFloat32}};
  for (const auto& [width, dtype] : cases)
    EXPECT_EQ(reductions_that_differ(width, dtype, invariant()), kNone) << width << " " << name(dtype);
}

TEST_F(BatchInvarianceOnGpu, OfProgramsForAllSizes) {
  if (!on_real_gpu()) {
    EXPECT_EQ(reductions_that_differ(33, kFloat32, invariant(true)), kNone);
    return;
  }
  EXPECT_EQ(networks_that_differ(kBFloat16, invariant(true)), kNone);
  EXPECT_EQ(reductions_that_differ(129, kFloat32, invariant(true)), kNone);
}

/// What decides in which order a kernel adds up a row: its form, blocks and warps, and what the compiler is
/// told of its arguments.
std::string order_of_sums(const codegen::TileKernel& tile, const codegen::TritonSources& sources) {
  const std::vector<codegen::LaunchConfig> configs = tuning::candidates(tile);
  EXPECT_EQ(configs.size(), 1u) << "measured, the fastest is taken";
  EXPECT_FALSE(tile.peel) << "rows are cut where memory is aligned";
  const runtime::CudaKernel kernel(compiler::triton_compiler(), tile, configs[0], sources, 0, nullptr);
  for (const auto alignment : {codegen::Alignment::even, codegen::Alignment::aligned})
    EXPECT_TRUE(kernel.request({alignment}).divisible.empty());
  std::string order = fmt::format("form {} row block {} warps {}", static_cast<int>(tile.form),
                                  tile.axes.back().block, configs[0].warps);
  const bool along = tile.hint == codegen::ReductionHint::inner;
  for (const auto& [name, size] : configs[0].blocks) {
    EXPECT_TRUE(size == 1 || name != (along ? "XBLOCK" : "R0_BLOCK")) << name << " " << size;
    if (name != "XBLOCK") order += fmt::format(" {} {}", name, size);
  }
  return order;
}

/// Those of a network's kernels. One row may share a kernel with what is computed of weights alone.
std::set<std::string> orders_of_sums(const RowNet& net, int64_t rows) {
  std::vector<SymInt> sizes = {rows};
  sizes.insert(sizes.end(), net.row.begin(), net.row.end());
  const auto f = [&](const std::vector<Tensor>& x) { return std::vector<Tensor>{net.run(x[0])}; };
  const auto captured =
      compiler::trace_function(f, {empty(sizes, TensorOptions(kBFloat16).device(kCUDA))}, {}, kCUDA);
  const compiler::Stages stages =
      compiler::run_stages(captured.graph, *captured.env,
                           {.strict_native = true, .tuning = "coordinate_descent", .batch_invariant = true});
  std::set<std::string> out;
  for (const compiler::GpuKernel& kernel : stages.gpu_kernels)
    if (kernel.tile.form != codegen::TileForm::pointwise)
      out.insert(order_of_sums(kernel.tile, kernel.sources));
  return out;
}

TEST_F(BatchInvarianceOnGpu, OrdersOfSumsDoNotDependOnRows) {
  std::vector<RowNet> nets = networks(kBFloat16, kCUDA);
  for (RowNet& net : other_networks(kBFloat16, kCUDA)) nets.push_back(std::move(net));
  for (const int64_t width : {7, 128, 1000, 3000, 1 << 20})
    for (RowNet& net : row_reductions(width)) nets.push_back(std::move(net));
  int32_t with_sums = 0;
  for (const RowNet& net : nets) {
    const std::set<std::string> want = orders_of_sums(net, 64);
    with_sums += !want.empty();
    for (const int64_t rows : {1, 2, 5, 300, 65536}) {
      if (rows * net.row[0] > int64_t{1} << 29) continue;  // more memory than needs be
      EXPECT_EQ(orders_of_sums(net, rows), want) << net.name << " of " << rows << " rows of " << net.row[0];
    }
  }
  EXPECT_GT(with_sums, 12);
}

}  // namespace
}  // namespace stax
