// Launches of kernels over a driver that works on host memory; what Triton would make of them is given.
#include "runtime/cuda_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/cuda_allocator.h"
#include "loops/parse.h"
#include "runtime/plan_executor.h"
#include "stax/error.h"
#include "support/fake_cuda/fake_cuda.h"
#include "tensor/storage.h"

namespace stax::runtime {
namespace {

using codegen::Alignment;
using codegen::KernelCall;
using codegen::TileAxisKind;
using codegen::TileKernel;
using loops::Constant;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const bool used = (fake_cuda::use(), true);

/// Two pointers, a number, a size, and two axes.
TileKernel tile(const std::string& name, Expr y, Expr x) {
  TileKernel kernel;
  kernel.name = name;
  kernel.pointers = {{0, DType::float32, codegen::PointerRole::in, "in_ptr0"},
                     {1, DType::float32, codegen::PointerRole::out, "out_ptr0"}};
  kernel.scalars = {DType::float64};
  kernel.symbols = {Symbol{SymbolKind::size, 0}};
  kernel.axes = {{.kind = TileAxisKind::y, .numel = y}, {.kind = TileAxisKind::x, .numel = x}};
  return kernel;
}

std::shared_ptr<const CompiledTriton> code(const std::string& entry, int32_t shared_bytes = 0) {
  auto compiled = std::make_shared<CompiledTriton>();
  compiled->cubin = "code of " + entry;
  compiled->entry = entry;
  compiled->arguments = {"*fp32", "*fp32", "fp64", "i32", "i32", "i32"};
  compiled->warps = 8;
  compiled->shared_bytes = shared_bytes;
  return compiled;
}

class CudaKernelTest : public testing::Test {
 protected:
  void SetUp() override { fake_cuda::reset(); }

  void launch(const CudaKernel& kernel, std::vector<void*> buffers, std::vector<long> extents) {
    const Constant scalars[] = {Constant::of(0.5)};
    const std::vector<long> sizes = {extents[1]};
    KernelCall call{buffers, scalars};
    call.sizes = sizes;
    call.extents = extents;
    kernel.run(call);
  }

  const Expr size_ = Expr(Symbol{SymbolKind::size, 0});
  TritonCompiler compiler_{{.command = {"/nowhere/python"}}};
  codegen::LaunchConfig config_{{{"YBLOCK", 16}, {"XBLOCK", 32}}, 8, 1};
  void* const even_ = reinterpret_cast<void*>(0x1000);
  void* const odd_ = reinterpret_cast<void*>(0x1004);
};

TEST_F(CudaKernelTest, PassesArgumentsInTheOrderOfTheParameters) {
  const CudaKernel kernel(compiler_, tile("first", 40, size_), config_, {"source", {}}, 0, nullptr);
  kernel.load({Alignment::aligned}, code("first"));
  fake_cuda::argument_count("first", 8);
  launch(kernel, {even_, even_}, {40, 70});
  const auto launches = fake_cuda::launches();
  ASSERT_EQ(launches.size(), 1u);
  const fake_cuda::Launch& l = launches[0];
  EXPECT_THAT(std::vector<uint32_t>(l.grid, l.grid + 3), ElementsAre(3, 3, 1));  // 70 / 32, 40 / 16
  EXPECT_THAT(std::vector<uint32_t>(l.block, l.block + 3), ElementsAre(256, 1, 1));
  const uint64_t half = std::bit_cast<uint64_t>(0.5);
  // Pointers, the number, the size, the extents, and no scratch memory.
  EXPECT_THAT(l.arguments, ElementsAre(0x1000u, 0x1000u, half, 70u, 40u, 70u, 0u, 0u));
}

TEST_F(CudaKernelTest, TakesTheMostSpecialVariantThatFits) {
  const CudaKernel kernel(compiler_, tile("variants", 40, size_), config_, {"source", {}}, 0, nullptr);
  kernel.load({Alignment::even}, code("even"));
  kernel.load({Alignment::aligned}, code("aligned"));
  kernel.load({Alignment::general}, code("general"));
  launch(kernel, {even_, even_}, {40, 64});
  launch(kernel, {even_, even_}, {40, 65});
  launch(kernel, {even_, odd_}, {40, 64});
  std::vector<std::string> names;
  for (const auto& l : fake_cuda::launches()) names.push_back(l.kernel);
  EXPECT_THAT(names, ElementsAre("even", "aligned", "general"));
  EXPECT_THAT(kernel.request({Alignment::even}).divisible,
              ElementsAre("in_ptr0", "out_ptr0", "ks0", "xnumel"));
  EXPECT_THAT(kernel.request({Alignment::aligned}).divisible, ElementsAre("in_ptr0", "out_ptr0"));
  EXPECT_TRUE(kernel.request({Alignment::general}).divisible.empty());
  EXPECT_EQ(kernel.request({Alignment::general}).capability, 90);
}

TEST_F(CudaKernelTest, NothingIsLaunchedForNoElements) {
  const CudaKernel kernel(compiler_, tile("none", 40, size_), config_, {"source", {}}, 0, nullptr);
  launch(kernel, {even_, even_}, {40, 0});
  EXPECT_TRUE(fake_cuda::launches().empty());
}

TEST_F(CudaKernelTest, GridsThatTheDriverDoesNotTakeAreFolded) {
  const TileKernel of = tile("wide", size_, size_);
  const CudaKernel kernel(compiler_, of, config_, codegen::print_sources(of), 0, nullptr);
  kernel.load({Alignment::aligned}, code("wide"));
  kernel.load({Alignment::aligned, true}, code("folded"));
  launch(kernel, {even_, even_}, {16L * 65535, 65});
  launch(kernel, {even_, even_}, {16L * 65535 + 1, 65});
  const auto launches = fake_cuda::launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].kernel, "wide");
  EXPECT_THAT(std::vector<uint32_t>(launches[0].grid, launches[0].grid + 3), ElementsAre(3, 65535, 1));
  EXPECT_EQ(launches[1].kernel, "folded");
  EXPECT_THAT(std::vector<uint32_t>(launches[1].grid, launches[1].grid + 3), ElementsAre(3 * 65536, 1, 1));
  const std::vector<long> extents = {16L * 65535 + 1, 65};
  KernelCall call;
  call.extents = extents;
  EXPECT_EQ(kernel.variant_for(call), (codegen::LaunchVariant{Alignment::aligned, true}));
  // Blocks number one after another, those along x fastest.
  EXPECT_THAT(kernel.request({Alignment::aligned, true}).source,
              AllOf(HasSubstr("xoffset = (tl.program_id(0) % tl.cdiv(xnumel, XBLOCK)) * XBLOCK"),
                    HasSubstr("yoffset = (tl.program_id(0) // tl.cdiv(xnumel, XBLOCK)) * YBLOCK")));
}

TEST_F(CudaKernelTest, GridsOfMoreThanTwoToTheThirtyOneBlocksAreRefused) {
  const TileKernel of = tile("huge", size_, size_);
  const CudaKernel kernel(compiler_, of, config_, codegen::print_sources(of), 0, nullptr);
  kernel.load({Alignment::aligned, true}, code("huge"));
  launch(kernel, {even_, even_}, {16L * ((1L << 30) - 1), 63});
  try {
    launch(kernel, {even_, even_}, {16L << 30, 63});
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("2147483648 blocks (2 x 1073741824 x 1), and a grid has 2147483647"));
  }
}

TEST_F(CudaKernelTest, WhatSizesDetermineIsLaidOutOnce) {
  const CudaKernel kernel(compiler_, tile("kept", 40, size_), config_, {"source", {}}, 0, nullptr);
  kernel.load({Alignment::aligned}, code("kept"));
  kernel.load({Alignment::general}, code("kept_general"));
  for (const char* name : {"kept", "kept_general"}) fake_cuda::argument_count(name, 8);
  std::unique_ptr<codegen::LaunchBlock> block;
  const auto run = [&](void* out, double number, long x) {
    const codegen::LaunchBlock* before = block.get();
    void* const buffers[] = {even_, out};
    const Constant scalars[] = {Constant::of(number)};
    const long sizes[] = {x}, extents[] = {40, x};
    KernelCall call{buffers, scalars};
    call.sizes = sizes;
    call.extents = extents;
    call.block = &block;
    kernel.run(call);
    return block.get() == before;
  };
  EXPECT_FALSE(run(even_, 0.5, 70));
  // What is not laid out again is as a launch left it.
  *fake_cuda::launches().at(0).places.at(4) = 41;
  EXPECT_TRUE(run(even_, 1.5, 70));
  EXPECT_TRUE(run(odd_, 1.5, 70));
  EXPECT_TRUE(run(even_, 1.5, 70));
  run(even_, 1.5, 71);
  const auto launches = fake_cuda::launches();
  ASSERT_EQ(launches.size(), 5u);
  EXPECT_EQ(launches[1].kernel, "kept");
  const uint64_t number = std::bit_cast<uint64_t>(1.5);
  EXPECT_THAT(launches[1].arguments, ElementsAre(0x1000u, 0x1000u, number, 70u, 41u, 70u, 0u, 0u));
  EXPECT_EQ(launches[2].kernel, "kept_general");
  EXPECT_THAT(launches[2].arguments, ElementsAre(0x1000u, 0x1004u, number, 70u, 41u, 70u, 0u, 0u));
  EXPECT_EQ(launches[3].kernel, "kept");
  EXPECT_THAT(launches[4].arguments, ElementsAre(0x1000u, 0x1000u, number, 71u, 40u, 71u, 0u, 0u));
  for (int k = 0; k < 2; ++k) EXPECT_THROW(run(even_, 1.5, 1L << 50), RuntimeError);  // nothing is kept
}

TEST_F(CudaKernelTest, SharedMemoryIsAskedForAndLimited) {
  const CudaKernel kernel(compiler_, tile("shared", 40, size_), config_, {"source", {}}, 0, nullptr);
  EXPECT_THROW(kernel.load({Alignment::general}, code("too_much", 228 << 10)), RuntimeError);
  kernel.load({Alignment::aligned}, code("much", 200 << 10));
  EXPECT_EQ(fake_cuda::shared_limit("much"), 200 << 10);
  launch(kernel, {even_, even_}, {40, 65});
  EXPECT_EQ(fake_cuda::launches().at(0).shared_bytes, 200u << 10);
}

/// A kernel of a plan that records its buffers.
struct Recorder : codegen::KernelRunner {
  explicit Recorder(std::string n) : name(std::move(n)) {}
  void run(const KernelCall& call) const override {
    for (void* buffer : call.buffers)
      EXPECT_GE(fake_cuda::memory_offset(reinterpret_cast<uint64_t>(buffer)), 256u);
    fake_cuda::on_launch({});
    runs.push_back(name);
  }
  std::string name;
  static inline std::vector<std::string> runs;
};

// out0 = flip(in0 + 1), by two kernels.
constexpr std::string_view kAddAndFlip = R"(
buffer in0 float32 [40] input
buffer out0 float32 [40] output
buffer buf0 float32 [40] intermediate
node op0 "add" [i0 < 40]
  v0 = load float32 in0[i0]
  v1 = constant float32 1.0
  v2 = add float32 v0 v1
  store buf0[i0] v2
node op1 "flip" [i0 < 40]
  v0 = load float32 buf0[39 - i0]
  store out0[i0] v0
)";

TEST_F(CudaKernelTest, PlansRunInOrderAndLeaveNothingBehindWhereMemoryIsShort) {
  const loops::Program program = loops::parse_program(kAddAndFlip);
  const schedule::Schedule s = schedule::make_schedule(program, {.kind = Target::Kind::cuda});
  std::vector<codegen::KernelInfo> infos;
  for (const schedule::Group& g : s.groups) infos.push_back({.name = g.name, .buffers = {0, 1}});
  codegen::Plan plan = codegen::make_plan(program, s, infos);
  std::vector<std::string> names;
  for (codegen::PlanKernel& k : plan.kernels) {
    names.push_back(k.info.name);
    k.runner = std::make_shared<Recorder>(k.info.name);
  }
  device::CudaAllocator allocator(0);
  Machine machine{nullptr, &allocator};
  machine.find_external = [](std::string_view) -> kernels::ExternalFunction { return nullptr; };
  machine.device = kCUDA;
  const PlanExecutor executor(std::move(plan), machine);
  const StoragePtr in(Storage::allocate(160, kCUDA));
  const int64_t sizes[] = {40}, strides[] = {1};
  const InputTensor inputs[] = {{in->data(), DType::float32, sizes, strides}};
  OutputTensor outputs[1];
  RunOutputs out{outputs, {}};
  Recorder::runs.clear();
  executor.run({inputs, {}}, out);
  EXPECT_EQ(Recorder::runs, names);
  EXPECT_EQ(allocator.stats().in_use_bytes, 512);  // the result
  allocator.deallocate(outputs[0].data, outputs[0].bytes);
  allocator.empty_cache();
  fake_cuda::fail("cuMemAlloc_v2", device::kCudaOutOfMemory, 1);
  fake_cuda::memory_limit(fake_cuda::memory_in_use() + 512);
  EXPECT_THROW(executor.run({inputs, {}}, out), RuntimeError);
  EXPECT_EQ(allocator.stats().in_use_bytes, 0);
}

}  // namespace
}  // namespace stax::runtime
