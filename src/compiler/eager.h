// Eager evaluation: one operator at a time, on tensors with memory.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "capture/dispatch.h"
#include "compiler/call_key.h"
#include "compiler/eager_gpu.h"

namespace stax::compiler {

struct EagerProgram;

/// Views come from their row's meta rule; external and dynamic operators call their kernels; everything else
/// is lowered once per layout and then runs in the reference executor. Thread-safe.
class Eager final : public capture::EagerBackend {
 public:
  Eager();
  ~Eager() override;
  std::vector<Tensor> call(const graph::Op& op, const capture::Arguments& arguments) override;
  std::vector<Tensor> call_on(const graph::Op& op, const capture::Arguments& arguments,
                              Device device) override;
  /// Within a GPU: copy_by_kernel().
  bool copy(const TensorView& source, const TensorView& target) { return on_gpu_.copy(source, target); }

  /// Programs kept now.
  size_t cached_programs() const;

 private:
  std::shared_ptr<const EagerProgram> find(const CallKey& key, uint64_t hash) const;
  void insert(const CallKey& key, uint64_t hash, std::shared_ptr<const EagerProgram> program);
  /// The program of all counts, once enough programs for single counts or numbers were made; null before.
  std::shared_ptr<const EagerProgram> find_general(const graph::Op& op, const capture::Arguments& arguments,
                                                   int64_t count);
  std::vector<Tensor> call_lowered(const graph::Op& op, const capture::Arguments& arguments);

  static constexpr size_t kShards = 16;
  static constexpr size_t kShardLimit = 512;  // programs; a full shard starts again
  static constexpr int kSpecialPrograms = 8;  // of one flat call, before one program serves all counts
  struct Entry {
    std::vector<uint64_t> key;
    std::shared_ptr<const EagerProgram> program;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_multimap<uint64_t, Entry> entries;
    std::unordered_map<uint64_t, int> made;  // special programs by hash of the general key
  };
  std::array<Shard, kShards> shards_;
  EagerGpu on_gpu_;
};

}  // namespace stax::compiler
