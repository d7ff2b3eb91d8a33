// Matrix products: float32 by oneDNN, or by plain loops where a call of it would cost more than the product;
// half types widened to float32, which also accumulates; float64 and integers by plain loops.
#include <algorithm>
#include <array>

#include "device/thread_pool.h"
#include "kernels/element.h"
#include "kernels/multiply.h"
#include "kernels/onednn.h"
#include "kernels/registry.h"

namespace stax::kernels {
namespace {

// Below this many multiplications a product costs less than a call of oneDNN.
constexpr int64_t kSmall = 32 * 32 * 32;
// Multiplications that are worth a task of their own.
constexpr int64_t kTask = int64_t{1} << 18;

using Strides = std::array<int64_t, 3>;  // batch, row, column

struct Shape {
  int64_t batch, m, n, k;
  int64_t work() const { return m * n * std::max<int64_t>(k, 1); }
};

template <class T>
struct Operand {
  T* data;
  Strides strides;
};

Strides strides_of(const TensorView& t) {
  if (t.dim() == 2) return {0, t.strides[0], t.strides[1]};
  return {t.strides[0], t.strides[1], t.strides[2]};
}

template <class To, class From>
std::vector<To> pack(const Operand<const From>& x, int64_t batch, int64_t rows, int64_t columns) {
  std::vector<To> out(static_cast<size_t>(batch * rows * columns));
  To* to = out.data();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < rows; ++i) {
      const From* from = x.data + b * x.strides[0] + i * x.strides[1];
      for (int64_t j = 0; j < columns; ++j) *to++ = static_cast<To>(widen(from[j * x.strides[2]]));
    }
  }
  return out;
}

template <class T>
auto kernel() {
  const MultiplyKernels& kernels = multiply_kernels();
  if constexpr (std::is_same_v<T, float>) return kernels.f32;
  if constexpr (std::is_same_v<T, double>) return kernels.f64;
  if constexpr (std::is_same_v<T, uint32_t>) return kernels.u32;
  if constexpr (std::is_same_v<T, uint64_t>) return kernels.u64;
}

// Columns of b and c are dense.
template <class T>
void multiply_loops(const Shape& s, const Operand<const T>& a, const Operand<const T>& b,
                    const Operand<T>& c) {
  const auto run = kernel<T>();
  const auto rows = [&](int64_t batch, int64_t first, int64_t last) {
    run({a.data + batch * a.strides[0] + first * a.strides[1], a.strides[1], a.strides[2],
         b.data + batch * b.strides[0], b.strides[1], c.data + batch * c.strides[0] + first * c.strides[1],
         c.strides[1], last - first, s.n, s.k});
  };
  if (s.m < 8 && s.work() > 2 * kTask) {
    // Few rows: the columns are shared out.
    const int64_t width = std::max<int64_t>(64, kTask / std::max<int64_t>(1, s.m * s.k) / 64 * 64);
    const int64_t bands = (s.n + width - 1) / width;
    device::ThreadPool::global().parallel_for(0, s.batch * bands, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t batch = t / bands, j = t % bands * width;
        run({a.data + batch * a.strides[0], a.strides[1], a.strides[2], b.data + batch * b.strides[0] + j,
             b.strides[1], c.data + batch * c.strides[0] + j, c.strides[1], s.m, std::min(width, s.n - j),
             s.k});
      }
    });
    return;
  }
  if (s.batch * s.work() <= kTask) {
    for (int64_t batch = 0; batch < s.batch; ++batch) rows(batch, 0, s.m);
    return;
  }
  const int64_t block = std::clamp<int64_t>(kTask * s.m / s.work(), 4, s.m > 4 ? s.m : 4);
  const int64_t blocks = (s.m + block - 1) / block;
  const int64_t grain = std::max<int64_t>(1, kTask / std::max<int64_t>(1, s.work() / blocks));
  device::ThreadPool::global().parallel_for(0, s.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % blocks * block;
      rows(t / blocks, first, std::min(first + block, s.m));
    }
  });
}

/// Rows [0, k) of some columns of b, one after another.
template <class T, class From>
void pack_panel(const From* from, const Strides& strides, int64_t k, int64_t columns, T* to) {
  constexpr int64_t kRun = 16;  // elements of a column that lie together are read together
  for (int64_t first = 0; first < k; first += kRun) {
    const int64_t end = std::min(first + kRun, k);
    if (strides[2] == 1) {
      for (int64_t i = first; i < end; ++i)
        for (int64_t j = 0; j < columns; ++j)
          to[i * columns + j] = static_cast<T>(widen(from[i * strides[1] + j]));
      continue;
    }
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = first; i < end; ++i)
        to[i * columns + j] = static_cast<T>(widen(from[i * strides[1] + j * strides[2]]));
  }
}

/// By the loops, for panels of columns of b, which are packed for some rows of a at a time. The columns of c
/// are dense.
template <class T, class From>
void multiply_panels(const Shape& s, const Operand<const T>& a, const Operand<const From>& b,
                     const Operand<T>& c) {
  constexpr int64_t kColumns = 64, kRows = 128, kElements = int64_t{1} << 18;
  const int64_t width = std::clamp<int64_t>(kElements / std::max<int64_t>(s.k, 1) / 16 * 16, 16, kColumns);
  const int64_t panels = (s.n + width - 1) / width, blocks = (s.m + kRows - 1) / kRows;
  const int64_t work = std::min(s.m, kRows) * width * std::max<int64_t>(s.k, 1);
  const auto run = kernel<T>();
  device::ThreadPool::global().parallel_for(
      0, s.batch * panels * blocks, std::max<int64_t>(1, kTask / work), [&](int64_t begin, int64_t end) {
        std::vector<T> panel(static_cast<size_t>(s.k * width));
        for (int64_t t = begin; t < end; ++t) {
          const int64_t row = t % blocks * kRows, j = t / blocks % panels * width,
                        batch = t / (blocks * panels);
          const int64_t rows = std::min(kRows, s.m - row), columns = std::min(width, s.n - j);
          pack_panel(b.data + batch * b.strides[0] + j * b.strides[2], b.strides, s.k, columns, panel.data());
          run({a.data + batch * a.strides[0] + row * a.strides[1], a.strides[1], a.strides[2], panel.data(),
               columns, c.data + batch * c.strides[0] + row * c.strides[1] + j, c.strides[1], rows, columns,
               s.k});
        }
      });
}

/// Who multiplies: the loops add up an element in the order of k, whatever the sizes are; what oneDNN does
/// depends on them.
enum class By : uint8_t { fastest, loops };

template <class T>
void multiply(const Shape& s, Operand<const T> a, Operand<const T> b, const Operand<T>& c, By by) {
  std::vector<T> a_packed, b_packed;
  if constexpr (std::is_same_v<T, float>) {
    if (by == By::fastest && s.k > 0 && s.work() >= kSmall) {
      if (!onednn::reads_directly(a.strides, s.batch, s.m, s.k)) {
        a_packed = pack<T>(a, s.batch, s.m, s.k);
        a = {a_packed.data(), {s.m * s.k, s.k, 1}};
      }
      if (!onednn::reads_directly(b.strides, s.batch, s.k, s.n)) {
        b_packed = pack<T>(b, s.batch, s.k, s.n);
        b = {b_packed.data(), {s.k * s.n, s.n, 1}};
      }
      onednn::matmul({s.batch, s.m, s.n, s.k, a.strides, b.strides, c.strides}, a.data, b.data, c.data);
      return;
    }
  }
  if (by == By::loops) return multiply_panels<T, T>(s, a, b, c);
  if (b.strides[2] != 1 && s.n > 1) {
    b_packed = pack<T>(b, s.batch, s.k, s.n);
    b = {b_packed.data(), {s.k * s.n, s.n, 1}};
  }
  multiply_loops(s, a, b, c);
}

template <class Stored>
using ComputeFor =
    std::conditional_t<std::is_same_v<Stored, Float16> || std::is_same_v<Stored, BFloat16>, float,
                       std::conditional_t<std::is_floating_point_v<Stored>, Stored,
                                          std::conditional_t<sizeof(Stored) == 8, uint64_t, uint32_t>>>;

// Products of a dtype that is computed in another one.
template <class Compute, class In, class Out>
void multiply_converted(const Shape& s, const Operand<const In>& a, const Operand<const In>& b,
                        const Operand<Out>& c, By by) {
  const std::vector<Compute> wide_a = pack<Compute>(a, s.batch, s.m, s.k);
  const Operand<const Compute> left = {wide_a.data(), {s.m * s.k, s.k, 1}};
  const auto multiply_to = [&](const Operand<Compute>& to) {
    if (by == By::loops) return multiply_panels<Compute, In>(s, left, b, to);
    const std::vector<Compute> wide_b = pack<Compute>(b, s.batch, s.k, s.n);
    multiply<Compute>(s, left, {wide_b.data(), {s.k * s.n, s.n, 1}}, to, by);
  };
  if constexpr (std::is_same_v<Compute, Out>) {
    if (c.strides[2] == 1) return multiply_to(c);
  }
  std::vector<Compute> wide_c(static_cast<size_t>(s.batch * s.m * s.n));
  multiply_to({wide_c.data(), {s.m * s.n, s.n, 1}});
  const Compute* from = wide_c.data();
  for (int64_t batch = 0; batch < s.batch; ++batch) {
    for (int64_t i = 0; i < s.m; ++i) {
      Out* to = c.data + batch * c.strides[0] + i * c.strides[1];
      for (int64_t j = 0; j < s.n; ++j) to[j * c.strides[2]] = narrow<Out>(*from++);
    }
  }
}

template <class In, class Out>
void product(const TensorView& x, const TensorView& y, const TensorView& z, By by) {
  using Compute = ComputeFor<In>;
  const int64_t lead = x.dim() - 2;
  const Shape s = {lead == 0 ? 1 : z.sizes[0], z.sizes[lead], z.sizes[lead + 1], x.sizes[lead + 1]};
  if (z.numel() == 0) return;
  const Operand<const In> a = {static_cast<const In*>(x.data), strides_of(x)};
  const Operand<const In> b = {static_cast<const In*>(y.data), strides_of(y)};
  const Operand<Out> c = {static_cast<Out*>(z.data), strides_of(z)};
  if constexpr (std::is_same_v<Compute, In> && std::is_same_v<Compute, Out>) {
    if (c.strides[2] == 1 || s.n == 1) {
      multiply<Compute>(s, a, b, c, by);
      return;
    }
  }
  multiply_converted<Compute>(s, a, b, c, by);
}

// A product of float32 with a constant right factor: packed for oneDNN, or with dense columns for the loops.
class PackedProduct final : public PreparedExternal {
 public:
  PackedProduct(const Shape& shape, const Operand<const float>& a, const Operand<const float>& b,
                const Strides& c)
      : shape_(shape), b_(b) {
    if (shape.m >= kFewRows && shape.work() >= kSmall &&
        onednn::reads_directly(a.strides, 1, shape.m, shape.k)) {
      if (!onednn::reads_directly(b_.strides, 1, shape.k, shape.n)) make_dense();
      packed_ = onednn::PackedMatmul::make({1, shape.m, shape.n, shape.k, a.strides, b_.strides, c}, b_.data);
      dense_ = {};
    } else if (b_.strides[2] != 1) {
      make_dense();
    }
  }

  void run(Arguments arguments, Results results) const override {
    const auto* a = static_cast<const float*>(arguments[0].tensor().data);
    auto* c = static_cast<float*>(results[0].data);
    if (packed_) return packed_->run(a, c);
    multiply_loops<float>(shape_, {a, strides_of(arguments[0].tensor())}, b_, {c, strides_of(results[0])});
  }

 private:
  // Below this many rows the right factor is read once in any case, so that packing it gains nothing.
  static constexpr int64_t kFewRows = 8;

  void make_dense() {
    dense_ = pack<float>(b_, 1, shape_.k, shape_.n);
    b_ = {dense_.data(), {shape_.k * shape_.n, shape_.n, 1}};
  }

  Shape shape_;
  Operand<const float> b_;
  std::vector<float> dense_;
  std::unique_ptr<const onednn::PackedMatmul> packed_;
};

}  // namespace

Prepared prepare_product(Arguments arguments, Results results) {
  const TensorView &x = arguments[0].tensor(), &y = arguments[1].tensor(), &z = results[0];
  if (y.data == nullptr || x.dtype != DType::float32 || z.numel() == 0 || x.sizes[1] == 0) return nullptr;
  if (z.strides[1] != 1 && z.sizes[1] != 1) return nullptr;
  return std::make_unique<PackedProduct>(
      Shape{1, z.sizes[0], z.sizes[1], x.sizes[1]}, Operand<const float>{nullptr, strides_of(x)},
      Operand<const float>{static_cast<const float*>(y.data), strides_of(y)}, strides_of(z));
}

namespace {

void multiply_by(By by, Arguments arguments, Results results) {
  const TensorView &x = arguments[0].tensor(), &y = arguments[1].tensor(), &z = results[0];
  with_element_type(x.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    if constexpr (std::is_same_v<typename decltype(type)::Compute, float>) {
      if (z.dtype == DType::float32) return product<Stored, float>(x, y, z, by);
    }
    product<Stored, Stored>(x, y, z, by);
  });
}

}  // namespace

void multiply_matrices(Arguments arguments, Results results) {
  multiply_by(By::fastest, arguments, results);
}

void multiply_matrices_in_order(Arguments arguments, Results results) {
  multiply_by(By::loops, arguments, results);
}

}  // namespace stax::kernels
