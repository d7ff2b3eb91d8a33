#include "tuning/invariant_product.h"

#include <algorithm>
#include <optional>

#include "device/cuda_allocator.h"
#include "device/cuda_device.h"
#include "support/check.h"
#include "support/log.h"
#include "tensor/tensor_impl.h"

namespace stax::tuning {

using kernels::LibraryMatrix;
using kernels::LibraryProduct;
using kernels::ProductProblem;

namespace {

/// The result that algorithms are chosen for: as many rows and columns.
constexpr int64_t kSquare = 1024;
/// Of addresses, and of the distances of lines and matrices, in bytes.
constexpr int64_t kAligned = 16;
/// Of rows and columns that an algorithm may ask for.
constexpr int64_t kUnit = 16;

int64_t round_up(int64_t elements, DType dtype) {
  const int64_t unit = std::max<int64_t>(1, kAligned / itemsize(dtype));
  return (elements + unit - 1) / unit * unit;
}

bool is_aligned(int64_t elements, DType dtype) {
  return elements * itemsize(dtype) % kAligned == 0;
}

}  // namespace

/// A batch of matrices, with its lines along `dense`, the last dimension but one (0) or the last (1).
class InvariantProduct::Lines {
 public:
  Lines(TensorView view, size_t dense) : view_(std::move(view)) {
    if (view_.dim() == 2) {
      view_.sizes.insert(view_.sizes.begin(), 1);
      view_.strides.insert(view_.strides.begin(), 0);
    }
    along_ = dense + 1;
    across_ = 2 - dense;
  }

  const TensorView& view() const { return view_; }
  bool along_last() const { return along_ == 2; }
  int64_t leading() const { return view_.strides[across_]; }
  int64_t batch_stride() const { return view_.strides[0]; }

  /// Whether lines and matrices begin at multiples of kAligned. What there is one of may be anywhere.
  bool regular() const {
    const auto at = [&](size_t d) {
      return view_.sizes[d] == 1 || is_aligned(view_.strides[d], view_.dtype);
    };
    return reinterpret_cast<uintptr_t>(view_.data) % kAligned == 0 && at(across_) && at(0);
  }

  /// Distances of what there is one of, as if there were more.
  void settle() {
    if (view_.sizes[across_] == 1) view_.strides[across_] = round_up(view_.sizes[along_], view_.dtype);
    view_.strides[along_] = 1;
    if (view_.sizes[0] == 1) view_.strides[0] = 0;
  }

  /// As many more rows (0) or columns (1) as make a multiple of kUnit.
  void extend(size_t dim) {
    int64_t& size = view_.sizes[dim + 1];
    size = (size + kUnit - 1) / kUnit * kUnit;
  }

  /// The same lines in `memory`, regular ones.
  Lines moved(void* memory) const {
    Lines out = *this;
    out.view_.data = memory;
    out.view_.strides[along_] = 1;
    out.view_.strides[across_] = round_up(view_.sizes[along_], view_.dtype);
    out.view_.strides[0] = out.view_.strides[across_] * view_.sizes[across_];
    return out;
  }
  /// Bytes of that memory.
  int64_t bytes() const {
    return view_.sizes[0] * view_.sizes[across_] * round_up(view_.sizes[along_], view_.dtype) *
           itemsize(view_.dtype);
  }

 private:
  TensorView view_;
  size_t along_, across_;
};

enum class InvariantProduct::Use : uint8_t { operand, result };

/// Lines as they lie, or a regular copy of them.
class InvariantProduct::Staged {
 public:
  Staged(int32_t device, Lines lines, Use use) : from_(lines), lines_(std::move(lines)) {
    if (!lines_.regular()) move(device, use);
    lines_.settle();
  }
  /// A copy with more rows (0) or columns (1), of which nothing is known: those in `extended`.
  Staged(int32_t device, Lines lines, Use use, std::initializer_list<size_t> extended)
      : from_(lines), lines_(std::move(lines)) {
    for (const size_t dim : extended) lines_.extend(dim);
    move(device, use);
    lines_.settle();
  }
  const Lines& lines() const { return lines_; }
  /// A result goes to where it belongs.
  void finish() const {
    if (memory_) copy_elements(inside(), from_.view());
  }

 private:
  void move(int32_t device, Use use) {
    memory_.emplace(device, lines_.bytes());
    lines_ = lines_.moved(memory_->data());
    if (use == Use::operand) copy_elements(from_.view(), inside());
  }
  /// The part of the copy that is one.
  TensorView inside() const {
    TensorView view = lines_.view();
    view.sizes = from_.view().sizes;
    return view;
  }

  Lines from_, lines_;
  std::optional<device::DeviceMemory> memory_;
};

kernels::ProductProblem InvariantProduct::problem_of(const Lines& a, const Lines& b,
                                                     const Lines& result) const {
  const auto& sizes = result.view().sizes;
  const int64_t batch = sizes[0], m = sizes[1], n = sizes[2], k = a.view().sizes[2];
  ProductProblem p;
  p.dtype = a.view().dtype;
  p.result_dtype = result.view().dtype;
  p.tf32 = tf32_ && p.dtype == DType::float32;
  p.batch = batch;
  p.swapped = p.in_one_piece = true;
  const auto matrix = [&](const Lines& lines, int64_t along, int64_t across, bool transposed) {
    return LibraryMatrix{along, across, lines.leading(), batch == 1 ? 0 : lines.batch_stride(), transposed};
  };
  p.first = b.along_last() ? matrix(b, n, k, false) : matrix(b, k, n, true);
  p.second = a.along_last() ? matrix(a, k, m, false) : matrix(a, m, k, true);
  p.result = matrix(result, n, m, false);
  return p;
}

namespace {

/// The same sums for a square result.
ProductProblem square_of(ProductProblem p) {
  const int64_t k = p.first.transposed ? p.first.rows : p.first.columns;
  p.batch = 1;
  p.first = p.first.transposed ? LibraryMatrix{k, kSquare, round_up(k, p.dtype), 0, true}
                               : LibraryMatrix{kSquare, k, kSquare, 0, false};
  p.second = p.second.transposed ? LibraryMatrix{kSquare, k, kSquare, 0, true}
                                 : LibraryMatrix{k, kSquare, round_up(k, p.dtype), 0, false};
  p.result = {kSquare, kSquare, kSquare, 0, false};
  return p;
}

/// Which dimension an operand's lines run along: where both are dense, along k.
size_t dense_of(const TensorView& view, size_t k) {
  const size_t lead = view.sizes.size() - 2;
  const bool along_k = view.strides[lead + k] == 1 || view.sizes[lead + k] == 1;
  return along_k ? k : 1 - k;
}

TensorView on_device(TensorView view, int32_t device) {
  view.device = Device(DeviceType::cuda, device);
  return view;
}

}  // namespace

void InvariantProduct::run(const TensorView& a, const TensorView& b, const TensorView& result) const {
  device::use_cuda_device(device_);
  multiply(on_device(a, device_), on_device(b, device_), on_device(result, device_));
}

void InvariantProduct::multiply(const TensorView& a, const TensorView& b, const TensorView& result) const {
  const Lines left(a, dense_of(a, 1)), right(b, dense_of(b, 0)), to(result, 1);
  if (multiplied({device_, left, Use::operand}, {device_, right, Use::operand}, {device_, to, Use::result}))
    return;
  // Algorithms want whole units of rows and columns. What the added ones hold ends in elements that are
  // dropped.
  if (multiplied({device_, left, Use::operand, {0}}, {device_, right, Use::operand, {1}},
                 {device_, to, Use::result, {0, 1}}))
    return;
  multiply_blocks(left, right, to);
}

bool InvariantProduct::multiplied(const Staged& a, const Staged& b, const Staged& result) const {
  ProductProblem problem = problem_of(a.lines(), b.lines(), result.lines());
  const int64_t batch = problem.batch;
  const Ready* one = &ready(problem);
  int64_t calls = 1;
  if (!one->answer && batch > 1) {  // one matrix after another
    problem.batch = 1;
    for (LibraryMatrix* m : {&problem.first, &problem.second, &problem.result}) m->batch_stride = 0;
    one = &ready(problem);
    calls = batch;
  }
  if (!one->answer) return false;
  const auto matrix = [](const Staged& staged, int64_t i) {
    const TensorView& view = staged.lines().view();
    return static_cast<std::byte*>(view.data) + i * view.strides[0] * itemsize(view.dtype);
  };
  for (int64_t i = 0; i < calls; ++i)
    one->product->run({matrix(a, i), matrix(b, i), nullptr, matrix(result, i)}, *one->answer);
  result.finish();
  return true;
}

void InvariantProduct::multiply_blocks(const Lines& a, const Lines& b, const Lines& to) const {
  const ProductProblem problem = problem_of(a, b, to);
  const Ready& square = this->square(problem);
  log::print(log::Channel::autotune, "product {} is done in blocks of {} x {}", problem.str(), kSquare,
             kSquare);
  const ProductProblem& p = square.product->problem();
  const auto bytes = [](const LibraryMatrix& m, DType dtype) {
    return m.leading * m.columns * itemsize(dtype);
  };
  const device::DeviceMemory first(device_, bytes(p.first, p.dtype)),
      second(device_, bytes(p.second, p.dtype));
  const device::DeviceMemory third(device_, bytes(p.result, p.result_dtype));
  /// `view` at the beginning of a block; what the rest of it holds ends in rows and columns that are dropped.
  const auto within = [](TensorView view, const device::DeviceMemory& memory, size_t dense, int64_t leading) {
    view.data = memory.data();
    view.strides[dense] = 1;
    view.strides[3 - dense] = leading;
    return view;
  };
  for (int64_t i = 0; i < to.view().sizes[0]; ++i) {
    const TensorView x = part(a.view(), 0, i, 1), y = part(b.view(), 0, i, 1), z = part(to.view(), 0, i, 1);
    for (int64_t row = 0; row < z.sizes[1]; row += kSquare) {
      const int64_t rows = std::min(kSquare, z.sizes[1] - row);
      const TensorView some = part(x, 1, row, rows);
      copy_elements(some, within(some, second, p.second.transposed ? 1 : 2, p.second.leading));
      for (int64_t column = 0; column < z.sizes[2]; column += kSquare) {
        const int64_t columns = std::min(kSquare, z.sizes[2] - column);
        const TensorView weights = part(y, 2, column, columns);
        copy_elements(weights, within(weights, first, p.first.transposed ? 1 : 2, p.first.leading));
        square.product->run({second.data(), first.data(), nullptr, third.data()}, *square.answer);
        const TensorView target = part(part(z, 1, row, rows), 2, column, columns);
        copy_elements(within(target, third, 2, p.result.leading), target);
      }
    }
  }
}

const InvariantProduct::Ready& InvariantProduct::square(const ProductProblem& problem) const {
  const ProductProblem canonical = square_of(problem);
  const std::lock_guard lock(mutex_);
  Ready& known = all_[canonical];
  if (known.product) return known;
  auto product = std::make_shared<const LibraryProduct>(canonical, device_);
  known.answer = product->answers(1)[0];
  known.product = std::move(product);
  return known;
}

const InvariantProduct::Ready& InvariantProduct::ready(const ProductProblem& problem) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = all_.find(problem); found != all_.end()) return found->second;
  }
  const Ready& chosen = square(problem);
  Ready made;
  try {
    made.product = std::make_shared<const LibraryProduct>(problem, device_);
    made.answer = made.product->check(chosen.answer->algorithm);
  } catch (const RuntimeError&) {  // described, it is refused, too
    made.answer.reset();
  }
  const std::lock_guard lock(mutex_);
  return all_.try_emplace(problem, std::move(made)).first->second;
}

}  // namespace stax::tuning
