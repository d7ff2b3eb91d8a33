// x.index({...}) and x.index_put_({...}, value): numbers, slices, None, Ellipsis and bools become views;
// index tensors are left to the operators index and index_put.
#include "stax/indexing.h"

#include <cstring>

#include "capture/dispatch.h"
#include "ops/table.h"
#include "stax/operators.h"
#include "stax/options.h"
#include "support/check.h"
#include "tensor/tensor_impl.h"

namespace stax {

TensorIndex::TensorIndex(const char* dots) : kind_(Kind::ellipsis) {
  STAX_CHECK(std::strcmp(dots, "...") == 0, "index: expected \"...\", got \"{}\"", dots);
}

namespace {

using capture::Call;
using Indices = std::span<const TensorIndex>;
using OptionalTensors = std::vector<std::optional<Tensor>>;

const graph::Op& row(std::string_view name) {
  return ops::table().at(name);
}

Tensor select_at(const Tensor& x, int64_t dim, const SymInt& index) {
  static const graph::Op& op = row("select.int");
  return Call(op, 3).add(x).add(dim).add(index).one();
}

Tensor slice(const Tensor& x, int64_t dim, const Slice& s) {
  static const graph::Op& op = row("slice.Tensor");
  return Call(op, 5).add(x).add(dim).add(s.start()).add(s.stop()).add(s.step().value_or(SymInt(1))).one();
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  static const graph::Op& op = row("unsqueeze");
  return Call(op, 2).add(x).add(dim).one();
}

/// Dimensions of the indexed tensor that an entry consumes.
int64_t consumed(const TensorIndex& index) {
  switch (index.kind()) {
    case TensorIndex::Kind::none:
    case TensorIndex::Kind::ellipsis:
    case TensorIndex::Kind::boolean:
      return 0;
    case TensorIndex::Kind::integer:
    case TensorIndex::Kind::slice:
      return 1;
    case TensorIndex::Kind::tensor:
      break;
  }
  return index.tensor().dtype() == DType::boolean ? index.tensor().dim() : 1;
}

/// A mask as one tensor of positions a dimension.
std::vector<Tensor> positions(const Tensor& mask) {
  static const graph::Op& nonzero = row("nonzero");
  const Tensor found = Call(nonzero, 1).add(mask).one();
  std::vector<Tensor> columns;
  for (int64_t d = 0; d < mask.dim(); ++d) columns.push_back(select_at(found, 1, d));
  return columns;
}

/// The view that the plain entries select, and the index tensors that are left, by its dimensions.
struct Split {
  Tensor view;
  OptionalTensors tensors;
  bool masks_only = true;  // no index tensor but masks
  bool has_tensors = false;
};

class Splitter {
 public:
  Splitter(const Tensor& x, Indices indices, bool keep_masks) : keep_masks_(keep_masks) {
    split_.view = x;
    int64_t used = 0;
    int ellipses = 0, index_tensors = 0;
    for (const TensorIndex& index : indices) {
      used += consumed(index);
      ellipses += index.kind() == TensorIndex::Kind::ellipsis;
      index_tensors +=
          index.kind() == TensorIndex::Kind::tensor || index.kind() == TensorIndex::Kind::boolean;
    }
    STAX_CHECK(ellipses <= 1, "index: expected at most one Ellipsis, got {}", ellipses);
    STAX_CHECK(used <= x.dim(), "index: {} indices for a tensor of rank {}", used, x.dim());
    rest_ = x.dim() - used;
    bools_are_tensors_ = index_tensors > 1;
    for (const TensorIndex& index : indices) apply(index);
  }

  Split take() {
    while (!split_.tensors.empty() && !split_.tensors.back()) split_.tensors.pop_back();
    return std::move(split_);
  }

 private:
  void apply(const TensorIndex& index) {
    switch (index.kind()) {
      case TensorIndex::Kind::none:
        split_.view = unsqueeze(split_.view, dim_);
        skip(1);
        break;
      case TensorIndex::Kind::ellipsis:
        skip(rest_);
        break;
      case TensorIndex::Kind::integer:
        split_.view = select_at(split_.view, dim_, index.integer());
        break;
      case TensorIndex::Kind::boolean:
        apply_bool(index.integer());
        break;
      case TensorIndex::Kind::slice:
        split_.view = slice(split_.view, dim_, index.slice());
        skip(1);
        break;
      case TensorIndex::Kind::tensor:
        apply_tensor(index.tensor());
        break;
    }
  }

  /// A bool is a mask without dimensions: alone a new dimension of length 1 or 0, beside index tensors one
  /// that they are broadcast with.
  void apply_bool(const SymInt& length) {
    split_.view = unsqueeze(split_.view, dim_);
    if (!bools_are_tensors_) {
      split_.view = slice(split_.view, dim_, Slice(SymInt(0), length));
      skip(1);
      return;
    }
    static const graph::Op& full = row("full");
    split_.has_tensors = true;
    split_.masks_only = false;
    push(Call(full, 3).add(IntList(length)).add(Scalar(0)).add(on_device(kInt64)).one());
  }

  void apply_tensor(const Tensor& tensor) {
    split_.has_tensors = true;
    if (tensor.dtype() != DType::boolean) {
      STAX_CHECK(is_integral(tensor.dtype()), "index: expected an index tensor of integers or bool, got {}",
                 name(tensor.dtype()));
      split_.masks_only = false;
      push(tensor);
      return;
    }
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      const SymInt want = split_.view.sizes()[static_cast<size_t>(dim_ + d)];
      STAX_CHECK(tensor.sizes()[static_cast<size_t>(d)] == want,
                 "index: a mask of length {} for a dimension of length {}",
                 tensor.sizes()[static_cast<size_t>(d)].str(), want.str());
    }
    if (keep_masks_) {
      push(tensor);
      skip(tensor.dim() - 1);
      return;
    }
    for (const Tensor& column : positions(tensor)) push(column);
  }

  /// Index tensors of the CPU go with tensors of any device.
  void push(const Tensor& tensor) {
    split_.tensors.emplace_back(tensor.is_cpu() ? tensor.to(split_.view.device()) : tensor);
    ++dim_;
  }
  TensorOptions on_device(DType dtype) const { return TensorOptions(dtype).device(split_.view.device()); }
  void skip(int64_t count) {
    for (int64_t i = 0; i < count; ++i) split_.tensors.emplace_back();
    dim_ += count;
  }

  Split split_;
  bool keep_masks_, bools_are_tensors_ = false;
  int64_t dim_ = 0, rest_ = 0;
};

Tensor get(const Tensor& x, Indices indices) {
  Split split = Splitter(x, indices, false).take();
  if (!split.has_tensors) return split.view;
  static const graph::Op& op = row("index.Tensor");
  return Call(op, 2).add(split.view).add(OptionalTensorList(split.tensors)).one();
}

/// `value` without leading dimensions of length 1 that `rank` has no room for.
Tensor without_leading_ones(Tensor value, int64_t rank) {
  while (value.dim() > rank && value.sizes()[0] == 1) value = select_at(value, 0, 0);
  return value;
}

void put_at(const Tensor& x, Indices indices, const Tensor& value, bool accumulate = false) {
  // A single mask and a single value: no positions have to be found.
  const Split masked = Splitter(x, indices, true).take();
  if (!masked.has_tensors) {
    const Tensor fitting = without_leading_ones(value, masked.view.dim());
    capture::write(masked.view, accumulate ? masked.view + fitting : fitting, "index_put_");
    return;
  }
  if (masked.masks_only && masked.tensors.size() == 1 && value.dim() == 0 &&
      masked.tensors[0]->dim() == masked.view.dim()) {
    static const graph::Op& where = row("where.self");
    const Tensor converted = value.to(masked.view.dtype());
    const Tensor chosen = accumulate ? masked.view + converted : converted;
    capture::write(masked.view, Call(where, 3).add(*masked.tensors[0]).add(chosen).add(masked.view).one(),
                   "index_put_");
    return;
  }
  const Split split = Splitter(x, indices, false).take();
  static const graph::Op& op = row("index_put");
  const Tensor converted = value.to(split.view.dtype());
  capture::write(
      split.view,
      Call(op, 4).add(split.view).add(OptionalTensorList(split.tensors)).add(converted).add(accumulate).one(),
      "index_put_");
}

Tensor as_tensor(const Tensor& x, const Scalar& value) {
  static const graph::Op& full = row("full");
  return Call(full, 3).add(IntList()).add(value).add(TensorOptions(x.dtype()).device(x.device())).one();
}

}  // namespace

Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return get(*this, {indices.begin(), indices.size()});
}
Tensor Tensor::index(const std::vector<TensorIndex>& indices) const {
  return get(*this, indices);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value) {
  put_at(*this, {indices.begin(), indices.size()}, value);
  return *this;
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) {
  return index_put_(indices, as_tensor(*this, value));
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value, bool accumulate) {
  put_at(*this, {indices.begin(), indices.size()}, value, accumulate);
  return *this;
}
Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Tensor& value, bool accumulate) {
  put_at(*this, indices, value, accumulate);
  return *this;
}
Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Tensor& value) {
  put_at(*this, indices, value);
  return *this;
}
Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Scalar& value) {
  return index_put_(indices, as_tensor(*this, value));
}

Tensor Tensor::operator[](int64_t index) const {
  return select_at(*this, 0, index);
}
Tensor Tensor::operator[](const SymInt& index) const {
  return select_at(*this, 0, index);
}
Tensor Tensor::operator[](const Tensor& index) const {
  return this->index({index});
}
Tensor Tensor::operator[](const TensorIndex& index) const {
  return this->index({index});
}

}  // namespace stax
