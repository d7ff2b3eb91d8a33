#include "tensor/files/array_view.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "support/check.h"
#include "support/plural.h"

namespace stax::files {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the file readers take the machine to be little-endian");

bool has_odd_booleans(const std::byte* data, int64_t count) {
  return std::any_of(data, data + count, [](std::byte byte) { return byte > std::byte{1}; });
}

}  // namespace

int64_t checked_bytes(const std::vector<int64_t>& sizes, int64_t item_size) {
  // A zero-size array with otherwise huge sizes is refused too: its strides would overflow.
  int64_t total = item_size;
  bool empty = false;
  for (int64_t size : sizes) {
    if (size < 0) return -1;
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(total, size, &total)) {
      return -1;
    }
  }
  return empty ? 0 : total;
}

std::shared_ptr<std::byte> allocate(int64_t nbytes) {
  const size_t rounded = (static_cast<size_t>(nbytes) + 63) / 64 * 64;
  void* data = std::aligned_alloc(64, std::max<size_t>(rounded, 64));
  STAX_RUNTIME_CHECK(data != nullptr, "tensor files: cannot allocate {}", counted(nbytes, "byte"));
  std::memset(data, 0, std::max<size_t>(rounded, 64));
  return {static_cast<std::byte*>(data), [](std::byte* p) { std::free(p); }};
}

ArrayView make_view(DType dtype, std::vector<int64_t> sizes, const std::byte* data,
                    std::shared_ptr<void> owner) {
  ArrayView view{dtype, std::move(sizes), data, 0, std::move(owner)};
  view.nbytes = checked_bytes(view.sizes, itemsize(dtype));
  STAX_ASSERT(view.nbytes >= 0, "sizes of an array were not checked");
  const bool misaligned = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(itemsize(dtype)) != 0;
  const bool odd = dtype == DType::boolean && has_odd_booleans(data, view.nbytes);
  if (view.nbytes == 0 || (!misaligned && !odd)) return view;
  auto copy = allocate(view.nbytes);
  if (odd) {
    for (int64_t i = 0; i < view.nbytes; ++i) copy.get()[i] = std::byte{data[i] != std::byte{0}};
  } else {
    std::memcpy(copy.get(), data, static_cast<size_t>(view.nbytes));
  }
  view.data = copy.get();
  view.owner = std::move(copy);
  return view;
}

ArrayView to_c_order(const ArrayView& view) {
  ArrayView out = view;
  out.fortran_order = false;
  if (!view.fortran_order || view.nbytes == 0 || view.sizes.size() < 2) return out;
  const int64_t item = itemsize(view.dtype);
  const auto rank = static_cast<int>(view.sizes.size());
  auto copy = allocate(view.nbytes);
  std::vector<int64_t> strides(rank), index(rank, 0);
  int64_t stride = item;
  for (int d = 0; d < rank; ++d) {
    strides[d] = stride;
    stride *= view.sizes[d];
  }
  int64_t source = 0;
  for (int64_t target = 0; target < view.nbytes; target += item) {
    std::memcpy(copy.get() + target, view.data + source, static_cast<size_t>(item));
    for (int d = rank - 1; d >= 0; --d) {
      source += strides[d];
      if (++index[d] < view.sizes[d]) break;
      source -= strides[d] * view.sizes[d];
      index[d] = 0;
    }
  }
  out.data = copy.get();
  out.owner = std::move(copy);
  return out;
}

void check_view(const ArrayView& view, std::string_view what) {
  const int64_t expected = checked_bytes(view.sizes, itemsize(view.dtype));
  STAX_CHECK(expected >= 0, "{}: expected sizes that are not negative and whose product fits in 63 bits",
             what);
  STAX_CHECK(view.nbytes == expected, "{}: expected {} for its sizes and dtype {}, got {}", what,
             counted(expected, "byte"), name(view.dtype), view.nbytes);
  STAX_CHECK(view.data != nullptr || view.nbytes == 0, "{}: expected data, got a null pointer", what);
}

}  // namespace stax::files
