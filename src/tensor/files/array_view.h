// What the readers of tensor files return and the writers take: a dense array that knows nothing of Tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stax/dtype.h"

namespace stax::files {

/// A dense array in memory, little-endian, aligned to its element size. Booleans are 0 or 1.
/// What a reader returns may lie in the mapped file itself: the mapping is private, so a holder of `owner`
/// may also write to the data, and the file does not change.
struct ArrayView {
  DType dtype = DType::float32;
  std::vector<int64_t> sizes;       ///< empty for a single number
  const std::byte* data = nullptr;  ///< may be null when nbytes is 0
  int64_t nbytes = 0;               ///< product of sizes times itemsize(dtype)
  std::shared_ptr<void> owner;      ///< keeps data alive; null when the caller does
  bool fortran_order = false;       ///< the first index varies fastest instead of the last
};

/// Product of sizes times item_size in bytes, or -1 when a size is negative or the product exceeds 2^63-1.
int64_t checked_bytes(const std::vector<int64_t>& sizes, int64_t item_size);

/// A view of `nbytes` bytes at `data`, which `owner` keeps alive. Copies only when it must: data that is not
/// aligned to the element size, and booleans that are neither 0 nor 1 (every other value means true).
ArrayView make_view(DType dtype, std::vector<int64_t> sizes, const std::byte* data,
                    std::shared_ptr<void> owner);

/// A fresh, zeroed, 64-byte aligned buffer.
std::shared_ptr<std::byte> allocate(int64_t nbytes);

/// The same array with the last index varying fastest; copies only when fortran_order matters.
ArrayView to_c_order(const ArrayView& view);

/// Throws UserError unless nbytes, sizes and dtype agree; `what` names the array in the message.
void check_view(const ArrayView& view, std::string_view what);

}  // namespace stax::files
