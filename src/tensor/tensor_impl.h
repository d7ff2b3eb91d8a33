// What stands behind a Tensor handle: metadata, and either memory (StridedImpl) or a value of a trace (which
// capture adds).
#pragma once

#include <atomic>
#include <memory>
#include <source_location>
#include <span>

#include "stax/tensor.h"
#include "tensor/storage.h"
#include "tensor/tensor_view.h"

namespace stax {

class StridedImpl;

/// Sizes and strides in one small array: no allocation up to rank 6.
class Extents {
 public:
  Extents() = default;
  explicit Extents(int64_t rank) { resize(rank); }
  Extents(const Extents& other) { *this = other; }
  Extents& operator=(const Extents& other);
  int64_t rank() const { return rank_; }
  void resize(int64_t rank);
  SymInt* sizes() { return data(); }
  SymInt* strides() { return data() + rank_; }
  const SymInt* sizes() const { return data(); }
  const SymInt* strides() const { return data() + rank_; }

 private:
  static constexpr int64_t kInline = 6;
  SymInt* data() { return heap_ ? heap_.get() : inline_; }
  const SymInt* data() const { return heap_ ? heap_.get() : inline_; }

  int64_t rank_ = 0;
  SymInt inline_[2 * kInline];
  std::unique_ptr<SymInt[]> heap_;
};

class TensorImpl {
 public:
  TensorImpl(DType dtype, Device device, Extents extents, SymInt offset)
      : dtype_(dtype), device_(device), extents_(std::move(extents)), offset_(offset) {}
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;
  virtual ~TensorImpl() = default;

  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  int64_t dim() const { return extents_.rank(); }
  SizeList sizes() const { return {extents_.sizes(), static_cast<size_t>(dim())}; }
  SizeList strides() const { return {extents_.strides(), static_cast<size_t>(dim())}; }
  SymInt offset() const { return offset_; }
  SymInt numel() const;

  /// The tensor with memory behind this one. A traced tensor evaluates its trace and becomes concrete; its
  /// metadata are numbers afterwards.
  virtual StridedImpl& concrete(const std::source_location& where) = 0;
  /// Whether this is a value of a trace.
  virtual bool is_traced() const { return false; }
  /// The only element as a number: traced tensors return a symbolic Scalar.
  virtual Scalar item(const std::source_location& where) = 0;
  /// The only element, an integer, as a size: traced tensors return a symbol without hint.
  virtual SymInt sym_item(const std::source_location& where);
  /// Called when the user's program asks for a length.
  virtual void on_size_read(int64_t /*dim*/, const std::source_location& /*where*/) {}
  /// Called when the user's program asks for the storage offset.
  virtual void on_offset_read() {}
  /// Identity of the memory that views share: the storage, or the traced value that owns it.
  virtual const void* storage_id() const = 0;

  int64_t use_count() const { return references_.load(std::memory_order_acquire); }

 protected:
  /// For traced tensors whose sizes become numbers, and for in-place updates of metadata.
  void set_meta(DType dtype, Extents extents, SymInt offset) {
    dtype_ = dtype;
    extents_ = std::move(extents);
    offset_ = offset;
  }

 private:
  friend void detail::retain(TensorImpl*) noexcept;
  friend void detail::release(TensorImpl*) noexcept;
  std::atomic<int32_t> references_{0};
  DType dtype_;
  Device device_;
  Extents extents_;
  SymInt offset_;
};

/// A tensor with memory: all metadata are numbers.
class StridedImpl final : public TensorImpl {
 public:
  StridedImpl(DType dtype, Extents extents, int64_t offset, StoragePtr storage)
      : TensorImpl(dtype, storage->device(), std::move(extents), SymInt(offset)),
        storage_(std::move(storage)) {}

  StridedImpl& concrete(const std::source_location&) override { return *this; }
  Scalar item(const std::source_location& where) override;
  const void* storage_id() const override { return storage_.get(); }

  int64_t size(int64_t dim) const { return sizes()[static_cast<size_t>(dim)]; }
  int64_t stride(int64_t dim) const { return strides()[static_cast<size_t>(dim)]; }
  int64_t element_count() const { return numel(); }
  bool is_contiguous() const;
  /// Whether two different indices may reach the same element (expanded tensors).
  bool may_overlap_itself() const;
  const StoragePtr& storage() const { return storage_; }
  /// Element 0.
  std::byte* data() const {
    return storage_->data() + static_cast<int64_t>(offset()) * stax::itemsize(dtype());
  }
  TensorView view() const;

 private:
  StoragePtr storage_;
};

/// Row-major strides of `sizes`, as a shape.
Extents dense_extents(std::span<const int64_t> sizes);
Extents extents_of(std::span<const int64_t> sizes, std::span<const int64_t> strides);

/// A new tensor whose elements are undefined.
Tensor new_tensor(DType dtype, std::span<const int64_t> sizes, Device device = {});
Tensor new_tensor(DType dtype, Extents extents, Device device = {});
/// A row-major copy of `tensor` in memory that never changes.
Tensor constant_copy(const Tensor& tensor);
/// Another look at `base`'s storage; offset in elements of dtype. User errors when it would reach outside.
Tensor new_view(const StridedImpl& base, DType dtype, Extents extents, int64_t offset);

/// The memory behind a tensor: a user error for undefined tensors.
StridedImpl& strided(const Tensor& tensor,
                     const std::source_location& where = std::source_location::current());

/// Copies `source` into `target` element by element, converting, also between devices; shapes must be equal.
/// Memory may not overlap unless both are the same view.
void copy_elements(const TensorView& source, const TensorView& target);
/// The tensor itself where it lies on the CPU, otherwise a copy there, with the same strides where it is
/// dense.
Tensor on_host(const Tensor& tensor);
/// Writes one number, converted, to every element.
void fill_elements(const TensorView& target, const Scalar& value);

}  // namespace stax
