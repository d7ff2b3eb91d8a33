#include <cstdlib>
#include <vector>

#include "reference/node_runner.h"
#include "support/check.h"

namespace stax::reference {

namespace {

constexpr int64_t kKept = int64_t{64} << 20;  // bytes kept for the next run, a thread

struct Pool {
  struct Piece {
    std::byte* data;
    int64_t bytes;
  };
  std::vector<Piece> pieces;
  int64_t bytes = 0;
  ~Pool() {
    for (const Piece& p : pieces) std::free(p.data);
  }
};

/// Recycled memory only: nothing that a result depends on.
thread_local Pool pool;

}  // namespace

Scratch::Scratch(int64_t bytes) {
  if (bytes == 0) return;
  for (size_t i = pool.pieces.size(); i-- > 0;) {
    if (pool.pieces[i].bytes < bytes) continue;
    data_ = pool.pieces[i].data;
    bytes_ = pool.pieces[i].bytes;
    pool.bytes -= bytes_;
    pool.pieces.erase(pool.pieces.begin() + static_cast<int64_t>(i));
    return;
  }
  bytes_ = (bytes + 4095) / 4096 * 4096;
  data_ = static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(bytes_)));
  STAX_RUNTIME_CHECK(data_ != nullptr,
                     "[reference] expected {} bytes for intermediates, got none; free memory or use smaller "
                     "inputs",
                     bytes_);
}

Scratch::~Scratch() {
  if (!data_) return;
  if (bytes_ > kKept || pool.pieces.size() >= 8) {
    std::free(data_);
    return;
  }
  while (!pool.pieces.empty() && pool.bytes + bytes_ > kKept) {
    pool.bytes -= pool.pieces.front().bytes;
    std::free(pool.pieces.front().data);
    pool.pieces.erase(pool.pieces.begin());
  }
  pool.pieces.push_back({data_, bytes_});
  pool.bytes += bytes_;
}

}  // namespace stax::reference
