#include "device/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stax::device {
namespace {

TEST(ThreadPool, CoversEveryIterationOnce) {
  ThreadPool pool(4);
  for (int64_t count : {0, 1, 2, 3, 7, 64, 1000, 12345}) {
    for (int64_t grain : {1, 3, 64, 100000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(count) + 10);
      pool.parallel_for(10, count + 10, grain, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (size_t i = 0; i < hits.size(); ++i)
        ASSERT_EQ(hits[i], i >= 10 ? 1 : 0) << count << " " << grain << " " << i;
    }
  }
}

TEST(ThreadPool, RangesAreAtLeastTheGrainButForTheLast) {
  ThreadPool pool(3);
  std::atomic<int> small{0};
  pool.parallel_for(0, 1001, 50, [&](int64_t b, int64_t e) { small += e - b < 50; });
  EXPECT_LE(small, 1);
}

TEST(ThreadPool, WritesOfWorkersAreSeenByTheCaller) {
  ThreadPool pool(4);
  std::vector<int64_t> values(512);
  for (int64_t round = 1; round <= 2000; ++round) {
    pool.parallel_for(0, 512, 16, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) values[static_cast<size_t>(i)] += i;
    });
  }
  for (int64_t i = 0; i < 512; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], 2000 * i);
}

TEST(ThreadPool, NestedCallsRunAndEnd) {
  ThreadPool pool(4);
  std::atomic<int> total{0};
  pool.parallel_for(0, 8, 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      pool.parallel_for(0, 10, 1, [&](int64_t x, int64_t y) { total += int(y - x); });
  });
  EXPECT_EQ(total, 80);
}

TEST(ThreadPool, SeveralCallersAtATime) {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round)
        pool.parallel_for(0, 100, 10, [&](int64_t b, int64_t e) { total += e - b; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 300 * 100);
}

TEST(ThreadPool, ExceptionsReachTheCallerAndThePoolGoesOn) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.parallel_for(0, 100, 1,
                                   [&](int64_t b, int64_t e) {
                                     if (b <= 57 && 57 < e) throw std::runtime_error("57");
                                   }),
                 std::runtime_error);
    std::atomic<int64_t> total{0};
    pool.parallel_for(0, 100, 1, [&](int64_t b, int64_t e) { total += e - b; });
    EXPECT_EQ(total, 100);
  }
}

TEST(ThreadPool, SurvivesFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends a forked child that starts threads";
#endif
  ThreadPool& pool = ThreadPool::global();
  auto sum = [&] {
    std::atomic<int64_t> total{0};
    pool.parallel_for(0, 1000, 1, [&](int64_t b, int64_t e) { total += e - b; });
    return total.load();
  };
  EXPECT_EQ(sum(), 1000);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(sum() == 1000 && sum() == 1000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(sum(), 1000);
}

}  // namespace
}  // namespace stax::device
