#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "device/cuda_device.h"
#include "support/check.h"
#include "tensor/device_copy.h"
#include "tensor/element.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

/// One dimension of a copy, strides in elements.
struct Dim {
  int64_t size, target, source;
};

/// The dimensions of a copy, innermost first: without those of length 1, and merged where both sides allow.
std::vector<Dim> loops_of(const TensorView& source, const TensorView& target) {
  std::vector<Dim> dims;
  for (size_t d = 0; d < target.sizes.size(); ++d) {
    if (target.sizes[d] != 1) dims.push_back({target.sizes[d], target.strides[d], source.strides[d]});
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return std::abs(a.target) < std::abs(b.target); });
  std::vector<Dim> merged;
  for (const Dim& dim : dims) {
    if (!merged.empty()) {
      Dim& inner = merged.back();
      if (dim.target == inner.target * inner.size && dim.source == inner.source * inner.size) {
        inner.size *= dim.size;
        continue;
      }
    }
    merged.push_back(dim);
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

/// Copies one run: n elements, strides in elements.
using RowCopy = void (*)(std::byte* target, int64_t target_stride, const std::byte* source,
                         int64_t source_stride, int64_t n);

template <class To, class From>
void copy_row(std::byte* target, int64_t target_stride, const std::byte* source, int64_t source_stride,
              int64_t n) {
  auto* out = reinterpret_cast<typename To::Stored*>(target);
  const auto* in = reinterpret_cast<const typename From::Stored*>(source);
  const auto convert = [](typename From::Stored v) {
    return To::store(cast_value<typename To::Value>(From::load(v)));
  };
  if (target_stride == 1 && source_stride == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = convert(in[i]);
  } else if (target_stride == 1 && source_stride == 0) {
    std::fill_n(out, n, convert(in[0]));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * target_stride] = convert(in[i * source_stride]);
  }
}

template <class T>
void move_row(std::byte* target, int64_t target_stride, const std::byte* source, int64_t source_stride,
              int64_t n) {
  auto* out = reinterpret_cast<T*>(target);
  const auto* in = reinterpret_cast<const T*>(source);
  if (target_stride == 1 && source_stride == 1) {
    std::memcpy(target, source, static_cast<size_t>(n) * sizeof(T));
  } else if (target_stride == 1 && source_stride == 0) {
    std::fill_n(out, n, in[0]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * target_stride] = in[i * source_stride];
  }
}

RowCopy find_row_copy(DType to, DType from) {
  if (to == from) {
    switch (itemsize(to)) {
      case 1:
        return move_row<uint8_t>;
      case 2:
        return move_row<uint16_t>;
      case 4:
        return move_row<uint32_t>;
      default:
        return move_row<uint64_t>;
    }
  }
  return visit_element(to, [&](auto target) -> RowCopy {
    return visit_element(
        from, [&](auto source) -> RowCopy { return copy_row<decltype(target), decltype(source)>; });
  });
}

/// Runs all rows of a loop nest, innermost dimension first in `dims`.
class Nest {
 public:
  Nest(const std::vector<Dim>& dims, RowCopy row, int64_t target_size, int64_t source_size)
      : dims_(dims), row_(row), target_size_(target_size), source_size_(source_size) {
    // Where the source runs along the second dimension, both are walked in tiles that stay in the cache.
    tiled_ = dims.size() > 1 && std::abs(dims[0].source) > 8 && std::abs(dims[1].source) == 1;
  }

  void run(std::byte* target, const std::byte* source) const { walk(dims_.size() - 1, target, source); }

 private:
  void walk(size_t level, std::byte* target, const std::byte* source) const {
    const Dim& dim = dims_[level];
    if (level == 0) {
      row_(target, dim.target, source, dim.source, dim.size);
    } else if (level == 1 && tiled_) {
      tiles(target, source);
    } else {
      for (int64_t i = 0; i < dim.size; ++i) {
        walk(level - 1, target + i * dim.target * target_size_, source + i * dim.source * source_size_);
      }
    }
  }

  void tiles(std::byte* target, const std::byte* source) const {
    constexpr int64_t kTile = 32;
    const Dim &inner = dims_[0], &outer = dims_[1];
    for (int64_t a = 0; a < outer.size; a += kTile) {
      for (int64_t b = 0; b < inner.size; b += kTile) {
        const int64_t rows = std::min(kTile, outer.size - a), length = std::min(kTile, inner.size - b);
        for (int64_t i = a; i < a + rows; ++i) {
          row_(target + (i * outer.target + b * inner.target) * target_size_, inner.target,
               source + (i * outer.source + b * inner.source) * source_size_, inner.source, length);
        }
      }
    }
  }

  const std::vector<Dim>& dims_;
  RowCopy row_;
  int64_t target_size_, source_size_;
  bool tiled_ = false;
};

bool on_cpu(const TensorView& view) {
  return view.device.type == DeviceType::cpu;
}

/// The elements of memory that a view reaches: [lowest, lowest + count) from its element 0.
struct Reach {
  int64_t lowest = 0, count = 0;
};

Reach reach_of(const TensorView& view) {
  int64_t low = 0, high = 0;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    const int64_t reach = (view.sizes[d] - 1) * view.strides[d];
    (reach < 0 ? low : high) += reach;
  }
  return {low, high - low + 1};
}

/// Elements of a dense view fill what they reach.
bool is_dense(const TensorView& view) {
  return reach_of(view).count == view.numel();
}

/// The memory that a view of a device reaches, in host memory.
class HostCopy {
 public:
  explicit HostCopy(const TensorView& view) : original_(view), view_(view), reach_(reach_of(view)) {
    const int64_t width = itemsize(view.dtype);
    bytes_.resize(static_cast<size_t>(reach_.count * width));
    view_.data = bytes_.data() - reach_.lowest * width;
    view_.device = kCPU;
  }
  void download() { device::copy_to_host(bytes_.data(), first(), size(), original_.device.index); }
  void upload() const { device::copy_to_device(first(), bytes_.data(), size(), original_.device.index); }
  const TensorView& view() const { return view_; }

 private:
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  void* first() const {
    return static_cast<std::byte*>(original_.data) + reach_.lowest * itemsize(original_.dtype);
  }
  const TensorView& original_;
  TensorView view_;
  Reach reach_;
  std::vector<std::byte> bytes_;
};

/// Copies of dense memory in which the elements lie alike.
bool copy_whole(const TensorView& source, const TensorView& target) {
  if (source.dtype != target.dtype || !is_dense(source) || !is_dense(target)) return false;
  for (size_t d = 0; d < source.sizes.size(); ++d) {
    if (source.sizes[d] > 1 && source.strides[d] != target.strides[d]) return false;
  }
  const int64_t width = itemsize(source.dtype), low = reach_of(source).lowest * width;
  const int64_t bytes = source.numel() * width;
  void* to = static_cast<std::byte*>(target.data) + low;
  const void* from = static_cast<const std::byte*>(source.data) + low;
  if (on_cpu(source)) {
    device::copy_to_device(to, from, bytes, target.device.index);
  } else if (on_cpu(target)) {
    device::copy_to_host(to, from, bytes, source.device.index);
  } else {
    device::copy_on_device(to, target.device.index, from, source.device.index, bytes);
  }
  return true;
}

/// The same elements one after another in memory of their device.
std::optional<StoragePtr> gathered(const TensorView& source, TensorView& dense) {
  StoragePtr memory(Storage::allocate(source.numel() * itemsize(source.dtype), source.device));
  dense = source;
  dense.data = memory->data();
  int64_t stride = 1;
  for (size_t d = dense.sizes.size(); d-- > 0; stride *= dense.sizes[d]) dense.strides[d] = stride;
  if (!copy_by_kernel(source, dense)) return std::nullopt;
  return memory;
}

/// Within a GPU by its kernels; else elements are converted, and their places changed, in host memory.
void copy_across(const TensorView& source, const TensorView& target) {
  if (copy_whole(source, target)) return;
  if (source.device == target.device && copy_by_kernel(source, target)) return;
  if (TensorView dense; !on_cpu(source) && !is_dense(source)) {
    if (const auto memory = gathered(source, dense)) return copy_elements(dense, target);
  }
  std::optional<HostCopy> from, to;
  if (!on_cpu(source)) from.emplace(source).download();
  if (!on_cpu(target)) {
    to.emplace(target);
    if (!is_dense(target)) to->download();
  }
  copy_elements(from ? from->view() : source, to ? to->view() : target);
  if (to) to->upload();
}

}  // namespace

void copy_elements(const TensorView& source, const TensorView& target) {
  STAX_ASSERT(source.sizes == target.sizes, "shapes differ");
  if (target.numel() == 0) return;
  if (!on_cpu(source) || !on_cpu(target)) return copy_across(source, target);
  const std::vector<Dim> dims = loops_of(source, target);
  const RowCopy row = find_row_copy(target.dtype, source.dtype);
  Nest(dims, row, itemsize(target.dtype), itemsize(source.dtype))
      .run(static_cast<std::byte*>(target.data), static_cast<const std::byte*>(source.data));
}

Tensor on_host(const Tensor& tensor) {
  const StridedImpl& from = strided(tensor);
  if (from.device() == kCPU) return tensor;
  const TensorView view = from.view();
  const bool dense = from.element_count() > 0 && is_dense(view) && reach_of(view).lowest == 0;
  const Tensor copy = dense ? new_tensor(from.dtype(), extents_of(view.sizes, view.strides))
                            : new_tensor(from.dtype(), view.sizes);
  copy_elements(view, strided(copy).view());
  return copy;
}

namespace {

/// One element, as it lies in memory, into all places of a view of a GPU.
void fill_across(const std::byte* element, const TensorView& target) {
  const int64_t width = itemsize(target.dtype);
  if (is_dense(target)) {
    std::byte* first = static_cast<std::byte*>(target.data) + reach_of(target).lowest * width;
    if (device::fill_on_device(first, element, width, target.numel(), target.device.index)) return;
  }
  const StoragePtr there(Storage::allocate(width, target.device));
  device::copy_to_device(there->data(), element, width, target.device.index);
  copy_elements({there->data(), target.dtype, target.sizes, std::vector<int64_t>(target.sizes.size(), 0),
                 target.device},
                target);
}

}  // namespace

void fill_elements(const TensorView& target, const Scalar& value) {
  alignas(8) std::byte element[8];
  visit_element(target.dtype, [&](auto e) {
    using E = decltype(e);
    using Value = typename E::Value;
    const Value v = value.is_floating_point() ? cast_value<Value>(value.floating())
                                              : cast_value<Value>(value.to<int64_t>());
    const auto stored = E::store(v);
    std::memcpy(element, &stored, sizeof(stored));
  });
  if (target.numel() == 0) return;
  if (!on_cpu(target)) return fill_across(element, target);
  const TensorView source{element, target.dtype, target.sizes, std::vector<int64_t>(target.sizes.size(), 0)};
  copy_elements(source, target);
}

}  // namespace stax
