#include "device/cpu_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "device/cpu_info.h"
#include "stax/error.h"

namespace stax::device {
namespace {

using ::testing::HasSubstr;

std::string message_of(CpuAllocator& allocator, int64_t bytes) {
  try {
    allocator.allocate(bytes);
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CpuAllocator, BlocksAreAlignedLargeEnoughAndDistinct) {
  CpuAllocator allocator(1 << 20);
  std::vector<std::pair<char*, int64_t>> blocks;
  for (int64_t bytes :
       {0, 1, 63, 64, 65, 80, 81, 96, 97, 100, 127, 128, 129, 1000, 4097, 65537, 1 << 20, (5 << 20) + 1}) {
    auto* block = static_cast<char*>(allocator.allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
    std::memset(block, static_cast<int>(blocks.size()), static_cast<size_t>(bytes));
    blocks.emplace_back(block, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (int64_t k = 0; k < blocks[i].second; ++k) ASSERT_EQ(blocks[i].first[k], static_cast<char>(i));
    allocator.deallocate(blocks[i].first, blocks[i].second);
  }
  EXPECT_EQ(allocator.stats().in_use_bytes, 0);
}

TEST(CpuAllocator, RecyclesABlockOfTheSameClass) {
  CpuAllocator allocator(int64_t{64} << 20);
  void* first = allocator.allocate(int64_t{20} << 20);
  allocator.deallocate(first, int64_t{20} << 20);
  EXPECT_EQ(allocator.allocate((int64_t{20} << 20) - 100), first);
  EXPECT_EQ(allocator.stats().system_requests, 1);
  allocator.deallocate(first, (int64_t{20} << 20) - 100);
}

TEST(CpuAllocator, KeepsAtMostItsLimitAndDropsWhatWasUsedLongestAgo) {
  CpuAllocator allocator(3000);
  void* old = allocator.allocate(1024);
  void* recent = allocator.allocate(2048);
  allocator.deallocate(old, 1024);
  allocator.deallocate(recent, 2048);
  EXPECT_LE(allocator.stats().cached_bytes, 3000);
  EXPECT_EQ(allocator.allocate(2048), recent);
  allocator.deallocate(recent, 2048);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().cached_bytes, 0);
}

TEST(CpuAllocator, ImpossibleSizesAreClearErrors) {
  CpuAllocator allocator(1 << 20);
  EXPECT_THAT(message_of(allocator, -8), HasSubstr("cannot allocate a buffer"));
  EXPECT_THAT(message_of(allocator, std::numeric_limits<int64_t>::max()),
              HasSubstr("9223372036854775807 bytes"));
  EXPECT_EQ(allocator.stats().in_use_bytes, 0);
}

TEST(CpuAllocator, ManyThreads) {
  CpuAllocator allocator(1 << 22);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 2000; ++i) {
        const int64_t bytes = static_cast<int64_t>(random() % 50000);
        auto* block = static_cast<unsigned char*>(allocator.allocate(bytes));
        if (bytes > 0) block[0] = block[bytes - 1] = static_cast<unsigned char>(t);
        std::this_thread::yield();
        if (bytes > 0) {
          EXPECT_EQ(block[0], t);
        }
        allocator.deallocate(block, bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.stats().in_use_bytes, 0);
}

TEST(CpuInfo, TargetsHaveFixedNames) {
  EXPECT_EQ(cpu_target_named("x86-64-v4").vector_bytes, 64);
  EXPECT_EQ(cpu_target_named("x86-64-v3").vector_bytes, 32);
  EXPECT_EQ(cpu_target_named("generic").vector_bytes, 16);
  EXPECT_THROW(cpu_target_named("native"), UserError);
  for (const std::string& flag : cpu_target().flags) EXPECT_EQ(flag.find("native"), std::string::npos);
  EXPECT_GE(last_level_cache_bytes(), 256 << 10);
  EXPECT_GE(available_processors(), 1);
}

}  // namespace
}  // namespace stax::device
