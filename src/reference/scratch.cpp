#include <cstdlib>
#include <mutex>
#include <vector>

#include "reference/node_runner.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::reference {

namespace {

constexpr int64_t kKept = int64_t{64} << 20;  // bytes kept for later runs
constexpr size_t kPieces = 64;

struct Piece {
  std::byte* data;
  int64_t bytes;
};

/// Recycled memory only: nothing that a result depends on. A thread that meets another here does without.
class Recycler {
 public:
  Piece take(int64_t bytes) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    for (size_t i = lock ? pieces_.size() : 0; i-- > 0;) {
      if (pieces_[i].bytes < bytes) continue;
      const Piece piece = pieces_[i];
      kept_ -= piece.bytes;
      pieces_.erase(pieces_.begin() + static_cast<int64_t>(i));
      return piece;
    }
    return {nullptr, 0};
  }
  /// False where the piece is not kept.
  bool put(Piece piece) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || pieces_.size() >= kPieces || kept_ + piece.bytes > kKept) return false;
    pieces_.push_back(piece);
    kept_ += piece.bytes;
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Piece> pieces_;
  int64_t kept_ = 0;
};

Recycler& recycler() {
  static Recycler& instance = *new Recycler;  // outlives every thread
  return instance;
}

}  // namespace

Scratch::Scratch(int64_t bytes) {
  if (bytes == 0) return;
  const Piece piece = recycler().take(bytes);
  data_ = piece.data;
  bytes_ = piece.bytes;
  if (data_) return;
  bytes_ = (bytes + 4095) / 4096 * 4096;
  data_ = static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(bytes_)));
  STAX_RUNTIME_CHECK(data_ != nullptr,
                     "[reference] expected {} for intermediates, got none; free memory or use smaller "
                     "inputs",
                     counted(bytes_, "byte"));
}

Scratch::~Scratch() {
  if (data_ && !recycler().put({data_, bytes_})) std::free(data_);
}

}  // namespace stax::reference
