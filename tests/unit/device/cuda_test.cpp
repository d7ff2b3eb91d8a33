// The device layer over a driver that works on host memory.
#include "stax/cuda.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "device/cuda_allocator.h"
#include "device/cuda_device.h"
#include "device/target.h"
#include "stax/error.h"
#include "stax/factories.h"
#include "stax/functions.h"
#include "support/fake_cuda/fake_cuda.h"
#include "support/file.h"

namespace stax::device {
namespace {

const bool used = (fake_cuda::use(), true);

class CudaTest : public testing::Test {
 protected:
  void SetUp() override { fake_cuda::reset(); }
};

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const RuntimeError& error) {
    return error.what();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST_F(CudaTest, PropertiesAndTargetAreThoseOfTheDevice) {
  EXPECT_EQ(cuda_device_count(), 2);
  EXPECT_TRUE(cuda::is_available());
  const CudaProperties& p = cuda_properties(1);
  EXPECT_EQ(p.name, "Fake GPU");
  EXPECT_EQ(p.capability, 90);
  EXPECT_EQ(p.processors, 132);
  EXPECT_EQ(p.shared_bytes, 227 << 10);
  EXPECT_EQ(cuda_target_name(0), "cuda:sm_90");
  const Target target = cuda_target_of(0);
  EXPECT_EQ(target.kind, Target::Kind::cuda);
  EXPECT_EQ(target.processors, 132);
  EXPECT_EQ(target.cache_bytes, 60 << 20);
  EXPECT_NE(error_of([] { cuda_properties(2); }).find("no device cuda:2"), std::string::npos);
}

TEST_F(CudaTest, ErrorsNameTheCallAndTheDriversWords) {
  fake_cuda::fail("cuStreamCreate", 719);
  const std::string words = error_of([] { pooled_cuda_stream(0); });
  EXPECT_NE(words.find("cuStreamCreate fails: a failure that a test asked for (error 719)"),
            std::string::npos)
      << words;
}

TEST(CudaDriverDeathTest, AMissingLibraryIsNamed) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("STAX_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
        std::string words = error_of([] { CudaAllocator::of(0).allocate(4); });
        if (cuda::is_available() || cuda::unavailable_reason() != words) words = "two reasons";
        fprintf(stderr, "%s\n", words.c_str());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "no CUDA: the driver's library /nowhere/libcuda.so.1 cannot be opened");
}

/// That alone: no warning that the CPU takes over, which it cannot.
TEST(CudaDriverDeathTest, ATensorThereIsRefusedWithoutAWarning) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("STAX_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
        for (const auto& make :
             {+[] { randn({4}, kCUDA); }, +[] { arange(3, kCUDA); }, +[] { zeros({2}, kCUDA); }})
          fprintf(stderr, "%s\n", error_of(make).substr(0, 7).c_str());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^no CUDA\nno CUDA\nno CUDA\n$");
}

/// The first call of the driver for a context fails, later ones do not: that error, and what was started
/// meanwhile.
std::string words_of_first_context() {
  const TemporaryFolder folder(temporary_root(), "stax-test-");
  const std::string python = folder.path() + "/python", started = folder.path() + "/started";
  std::ofstream(python) << "#!/bin/sh\necho $2 >> " << started << "\nsleep 20\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  setenv("STAX_CACHE_DIR", (folder.path() + "/cache").c_str(), 1);
  setenv("STAX_PYTHON", python.c_str(), 1);
  fake_cuda::fail("cuDevicePrimaryCtxRetain", 719);
  const std::string error = error_of([] { use_cuda_device(1); });
  for (int k = 0; k < 20000 && read_file(started).value_or("").empty(); ++k) usleep(1000);
  use_cuda_device(0);
  use_cuda_device(1);
  return error.substr(0, 24) + ": " + read_file(started).value_or("nothing\n");
}

// What compiles kernels starts, once, while the driver makes its context: here, before the driver fails to.
TEST(CudaDriverDeathTest, WhatTakesLongStartsBeforeTheFirstContext) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        fprintf(stderr, "%s", words_of_first_context().c_str());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^cuDevicePrimaryCtxRetain: stax_triton.compile_worker\n$");
}

TEST_F(CudaTest, FreedBlocksAreReusedByTheirStream) {
  CudaAllocator allocator(0);
  const CudaStream first{0, nullptr}, second = pooled_cuda_stream(0);
  void* a = allocator.allocate(1000, first);
  allocator.deallocate(a, 1000);
  void* other = allocator.allocate(1000, second);
  EXPECT_NE(other, a);
  EXPECT_EQ(allocator.allocate(1000, first), a);
  EXPECT_EQ(allocator.stats().driver_requests, 2);
  // Much smaller requests get blocks of their own.
  allocator.deallocate(a, 1000);
  EXPECT_NE(allocator.allocate(100, first), a);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
}

TEST_F(CudaTest, CountsWhatIsAllocatedAndKept) {
  const size_t before = fake_cuda::memory_in_use();
  CudaAllocator allocator(0);
  void* a = allocator.allocate(int64_t{3} << 20);
  EXPECT_EQ(allocator.stats().in_use_bytes, 3 << 20);
  allocator.deallocate(a, 0);
  EXPECT_EQ(allocator.stats().in_use_bytes, 0);
  EXPECT_EQ(allocator.stats().reserved_bytes, 3 << 20);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().reserved_bytes, 0);
  EXPECT_EQ(fake_cuda::memory_in_use(), before);
}

TEST_F(CudaTest, KeptBlocksAreGivenBackBeforeMemoryIsShort) {
  CudaAllocator allocator(0);
  fake_cuda::memory_limit(fake_cuda::memory_in_use() + (8 << 20));
  void* a = allocator.allocate(6 << 20);
  allocator.deallocate(a, 0);
  void* b = allocator.allocate(8 << 20);  // only fits once the first block is gone
  EXPECT_EQ(allocator.stats().reserved_bytes, 8 << 20);
  const std::string words = error_of([&] { allocator.allocate(1 << 20); });
  EXPECT_NE(
      words.find(
          "out of memory on cuda:0: cannot allocate 1048576 bytes. 8388608 bytes in 1 blocks are in use"),
      std::string::npos)
      << words;
  EXPECT_NE(words.find("the largest blocks have 8388608 bytes"), std::string::npos) << words;
  allocator.deallocate(b, 0);
  EXPECT_NE(allocator.allocate(1 << 20), nullptr);
}

TEST_F(CudaTest, SizesThatNoMachineHasAreRefused) {
  EXPECT_NE(error_of([] { CudaAllocator::of(0).allocate(-4); }).find("-4 bytes"), std::string::npos);
}

TEST_F(CudaTest, CopiesArriveAndOnlyThoseToTheHostWait) {
  CudaAllocator& allocator = CudaAllocator::of(0);
  std::vector<float> given = {1, 2, 3, 4}, got(4);
  void* there = allocator.allocate(16);
  void* second = allocator.allocate(16);
  copy_to_device(there, given.data(), 16, 0);
  copy_on_device(second, 0, there, 0, 16);
  EXPECT_EQ(fake_cuda::calls(), (std::vector<std::string>{"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2"}));
  copy_to_host(got.data(), second, 16, 0);
  EXPECT_EQ(got, given);
  EXPECT_EQ(fake_cuda::calls().back(), "cuStreamSynchronize");
  allocator.deallocate(there, 16);
  allocator.deallocate(second, 16);
}

TEST_F(CudaTest, GuardsPutStreamsAndDevicesBack) {
  const cuda::Stream stream = cuda::getStreamFromPool(1);
  {
    const cuda::StreamGuard guard(stream);
    EXPECT_EQ(cuda::current_device(), 1);
    EXPECT_EQ(cuda::getCurrentCUDAStream(1), stream);
    const cuda::DeviceGuard inner(0);
    EXPECT_EQ(cuda::current_device(), 0);
  }
  EXPECT_EQ(cuda::current_device(), 0);
  EXPECT_EQ(cuda::getCurrentCUDAStream(1), cuda::getDefaultCUDAStream(1));
}

TEST_F(CudaTest, EventsOrderStreams) {
  cuda::Event event(true), end(true);
  EXPECT_TRUE(event.query());
  event.record(cuda::getStreamFromPool(0));
  event.block(cuda::getDefaultCUDAStream(0));
  end.record(cuda::getDefaultCUDAStream(0));
  end.synchronize();
  EXPECT_EQ(fake_cuda::calls(), (std::vector<std::string>{"cuEventRecord", "cuStreamWaitEvent",
                                                          "cuEventRecord", "cuEventSynchronize"}));
  EXPECT_FLOAT_EQ(event.elapsed_time(end), 0.5f);
  EXPECT_NE(error_of([&] { cuda::Event().elapsed_time(end); }), "");
}

struct Raises : DeferredCheck {
  void check(const CudaStream* stream) override {
    if (stream != nullptr && stream->handle != nullptr) return;  // it was the default one
    if (std::exchange(pending, false)) throw UserError("found by a kernel");
  }
  bool finished() const override { return !pending; }
  bool pending = true;
};

TEST_F(CudaTest, DeferredErrorsAreRaisedWhereTheHostWaits) {
  const auto check = std::make_shared<Raises>();
  add_deferred_check(0, check);
  EXPECT_EQ(error_of([] { cuda::getStreamFromPool(0).synchronize(); }), "");
  EXPECT_EQ(error_of([] { cuda::synchronize(0); }), "found by a kernel");
  EXPECT_EQ(error_of([] { cuda::synchronize(0); }), "");
  EXPECT_EQ(check.use_count(), 1);  // what is finished is forgotten
  check->pending = true;
  add_deferred_check(0, check);
  cuda::Event event;
  event.record(cuda::getDefaultCUDAStream(0));
  EXPECT_EQ(error_of([&] { event.synchronize(); }), "found by a kernel");
}

}  // namespace
}  // namespace stax::device
