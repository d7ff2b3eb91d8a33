// Runs the plan of one loop node.
#pragma once

#include <atomic>
#include <mutex>
#include <span>

#include "loops/invocation.h"
#include "reference/node_plan.h"

namespace stax::reference {

/// The first index out of range: of the earliest node, there of the earliest block.
class IndexFailure {
 public:
  void record(int64_t node, int64_t block, int64_t index, int64_t size);
  bool any() const { return any_.load(std::memory_order_relaxed); }
  int64_t node() const { return node_; }
  int64_t index() const { return index_; }
  int64_t size() const { return size_; }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  int64_t node_ = 0, block_ = 0, index_ = 0, size_ = 0;
};

struct NodeRun {
  const NodePlan& plan;
  std::span<void* const> buffers;  // element 0 of each buffer of the program
  std::span<const loops::Constant> scalars;
  int64_t node = 0;  // position, for failures
  IndexFailure* failure = nullptr;
};

/// Runs all points of the node, over the thread pool where there is enough work.
void run_node(const NodeRun& run);

/// Memory that later runs use again; at least `bytes`, aligned to 64.
class Scratch {
 public:
  explicit Scratch(int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace stax::reference
