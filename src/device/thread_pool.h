// Threads that share the iterations of a loop with their caller.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace stax::device {

/// A pool of size() - 1 threads, started by the first loop that needs them. One loop runs on the pool at a
/// time: a call from inside a loop, or from another thread meanwhile, runs on its own thread alone.
class ThreadPool {
 public:
  /// The pool of the process: STAX_NUM_THREADS threads, else one for each available processor. A child
  /// process made by fork gets threads of its own.
  static ThreadPool& global();

  /// A pool of its own, joined when it goes; not to be used in a child after fork.
  explicit ThreadPool(int size);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Threads that work on a loop, the caller's included.
  int size() const { return size_; }

  /// Calls fn(context, b, e) for disjoint ranges that cover [begin, end), of at least `grain` iterations (>=
  /// 1) but for the last. Returns when all are done. The first exception that a call throws stops ranges not
  /// yet begun and is thrown here.
  void parallel_for(int64_t begin, int64_t end, int64_t grain,
                    void (*fn)(void* context, int64_t b, int64_t e), void* context);

  /// The same for a callable: body(b, e).
  template <class Body>
  void parallel_for(int64_t begin, int64_t end, int64_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    parallel_for(
        begin, end, grain, [](void* context, int64_t b, int64_t e) { (*static_cast<Plain*>(context))(b, e); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  struct Team;
  int size_;
  std::atomic<Team*> team_;
};

}  // namespace stax::device
