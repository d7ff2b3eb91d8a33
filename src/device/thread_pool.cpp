#include "device/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "device/cpu_info.h"
#include "support/environment.h"

namespace stax::device {

namespace {

constexpr int kSpins = 200;          // pauses before a thread sleeps: several microseconds
constexpr int kChunksPerThread = 4;  // finer shares even out threads that are slowed down by others

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// std::atomic<int> is the 4-byte word itself, which the system call needs.
static_assert(sizeof(std::atomic<int>) == sizeof(int));
void sleep_while(std::atomic<int>& word, int value) {
  syscall(SYS_futex, reinterpret_cast<int*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(std::atomic<int>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<int*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace

/// The threads and the one loop they may work on.
///
/// `members` counts the threads inside the loop and says whether others may still join (kOpen) and whether
/// the caller sleeps until it is 0 (kWaiting). A thread joins before it reads the loop's fields, and the
/// caller writes them only while the loop is closed and empty, so late threads see no loop or a whole one,
/// and nobody waits for a thread that has not joined.
struct ThreadPool::Team {
  static constexpr int kOpen = 1 << 30, kWaiting = 1 << 29, kCount = kWaiting - 1;

  explicit Team(int workers) : workers_(workers) {}

  ~Team() {
    stopping_ = true;
    announce(workers_);
    for (std::thread& thread : threads_) thread.join();
  }

  bool try_acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  /// Runs the loop on the caller and the workers; the caller has acquired the team.
  void run(int64_t begin, int64_t end, int64_t chunk, void (*fn)(void*, int64_t, int64_t), void* context) {
    start_threads();
    fn_ = fn;
    context_ = context;
    end_ = end;
    chunk_ = chunk;
    next_.store(begin, std::memory_order_relaxed);
    members_.store(kOpen, std::memory_order_release);
    announce(static_cast<int>(std::min<int64_t>(workers_, (end - begin - 1) / chunk)));
    work();
    members_.fetch_and(~kOpen, std::memory_order_acq_rel);
    wait_for_members();
    if (std::exception_ptr error = std::exchange(error_, nullptr)) {
      failed_.store(false, std::memory_order_relaxed);
      release();
      std::rethrow_exception(error);
    }
    release();
  }

 private:
  void start_threads() {
    if (!threads_.empty()) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's own threads' business
    try {
      for (int i = 0; i < workers_; ++i) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // The system gives no more threads; those that there are, or the caller alone, do the work.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void announce(int count) {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) wake(epoch_, count);
  }

  void serve() {
    int seen = 0;
    while (!stopping_) {
      if (join()) {
        work();
        leave();
      }
      seen = wait_for_news(seen);
    }
  }

  /// Returns the epoch once it differs from `seen`.
  int wait_for_news(int seen) {
    for (int i = 0; i < kSpins; ++i) {
      if (const int now = epoch_.load(std::memory_order_acquire); now != seen) return now;
      pause();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    int now;
    while ((now = epoch_.load(std::memory_order_seq_cst)) == seen) sleep_while(epoch_, seen);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return now;
  }

  bool join() {
    int members = members_.load(std::memory_order_relaxed);
    while ((members & kOpen) != 0)
      if (members_.compare_exchange_weak(members, members + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  void leave() {
    const int before = members_.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kCount) == 1 && (before & kWaiting) != 0) wake(members_, 1);
  }

  void wait_for_members() {
    for (int i = 0; i < kSpins; ++i) {
      if ((members_.load(std::memory_order_acquire) & kCount) == 0) return;
      pause();
    }
    int members = members_.fetch_or(kWaiting, std::memory_order_acq_rel) | kWaiting;
    while ((members & kCount) != 0) {
      sleep_while(members_, members);
      members = members_.load(std::memory_order_acquire);
    }
  }

  void work() {
    while (true) {
      const int64_t begin = next_.load(std::memory_order_relaxed) >= end_
                                ? end_
                                : next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= end_) return;
      try {
        fn_(context_, begin, std::min(end_, begin + chunk_));
      } catch (...) {
        if (!failed_.exchange(true)) error_ = std::current_exception();
        next_.store(end_, std::memory_order_relaxed);
      }
    }
  }

  const int workers_;
  std::vector<std::thread> threads_;
  std::atomic<bool> busy_{false}, stopping_{false}, failed_{false};
  std::exception_ptr error_;
  alignas(64) std::atomic<int> epoch_{0};  // counts loops; idle threads sleep on it
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<int> members_{0};
  alignas(64) std::atomic<int64_t> next_{0};  // first iteration nobody has taken
  void (*fn_)(void*, int64_t, int64_t) = nullptr;
  void* context_ = nullptr;
  int64_t end_ = 0, chunk_ = 1;
};

ThreadPool::ThreadPool(int size) : size_(std::max(1, size)), team_(new Team(size_ - 1)) {}

ThreadPool::~ThreadPool() {
  delete team_.load();
}

ThreadPool& ThreadPool::global() {
  // Never destroyed: its threads may outlive the program's static objects.
  static ThreadPool* const pool = [] {
    const std::optional<int32_t> wanted = environment_count("STAX_NUM_THREADS", 4096);
    return new ThreadPool(wanted ? *wanted : available_processors());
  }();
  // The threads do not exist in a child process, and its copy of their team may be in any state: it is left
  // alone.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { pool->team_.store(new Team(pool->size_ - 1)); });
  static_cast<void>(registered);
  return *pool;
}

void ThreadPool::parallel_for(int64_t begin, int64_t end, int64_t grain, void (*fn)(void*, int64_t, int64_t),
                              void* context) {
  if (begin >= end) return;
  const int64_t count = end - begin;
  grain = std::max<int64_t>(1, grain);
  Team* team = team_.load(std::memory_order_acquire);
  if (size_ == 1 || count <= grain || !team->try_acquire()) {
    fn(context, begin, end);
    return;
  }
  const int64_t shares = int64_t{size_} * kChunksPerThread;
  const int64_t chunk = std::max(grain, (count + shares - 1) / shares);
  team->run(begin, end, chunk, fn, context);
}

}  // namespace stax::device
