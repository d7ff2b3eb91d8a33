// Singular values by one-sided Jacobi rotations (Hestenes, 1958; Demmel and Veselic, 1992): pairs of columns
// are rotated until all are orthogonal; then their lengths are the singular values.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/element.h"
#include "kernels/registry.h"
#include "kernels/rows.h"

namespace stax::kernels {
namespace {

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Rotates columns a and b of length n into orthogonal ones. False where they are so already.
bool rotate(double* a, double* b, int64_t n) {
  const double aa = dot(a, a, n), bb = dot(b, b, n), ab = dot(a, b, n);
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  if (!(std::abs(ab) > kEpsilon * std::sqrt(aa) * std::sqrt(bb))) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double t = std::copysign(1 / (std::abs(zeta) + std::hypot(1.0, zeta)), zeta);
  const double c = 1 / std::hypot(1.0, t), s = c * t;
  for (int64_t i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
  return true;
}

/// The lengths of `count` columns of length n after they were made orthogonal, largest first.
std::vector<double> column_lengths(std::vector<double>& columns, int64_t count, int64_t n) {
  std::vector<double> lengths(static_cast<size_t>(count));
  double largest = 0;
  bool finite = true;
  for (const double v : columns) {
    largest = std::max(largest, std::abs(v));
    finite = finite && std::isfinite(v);
  }
  if (!finite) {
    std::fill(lengths.begin(), lengths.end(), std::numeric_limits<double>::quiet_NaN());
    return lengths;
  }
  if (largest == 0) return lengths;
  for (double& v : columns) v /= largest;  // squares neither overflow nor vanish
  constexpr int kMostSweeps = 60;
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < kMostSweeps; ++sweep) {
    rotated = false;
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t k = j + 1; k < count; ++k)
        rotated |= rotate(columns.data() + j * n, columns.data() + k * n, n);
    }
  }
  for (int64_t j = 0; j < count; ++j) {
    const double* column = columns.data() + j * n;
    lengths[static_cast<size_t>(j)] = std::sqrt(dot(column, column, n)) * largest;
  }
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  return lengths;
}

}  // namespace

/// linalg_svdvals: of matrices in the last two dimensions, whose fewer columns (or rows) are rotated.
void singular_values(Arguments arguments, Results results) {
  const TensorView &self = arguments[0].tensor(), &out = results[0];
  const auto rank = static_cast<size_t>(self.dim());
  const int64_t rows = self.sizes[rank - 2], columns = self.sizes[rank - 1];
  const bool by_rows = rows < columns;
  const int64_t count = std::min(rows, columns), n = std::max(rows, columns);
  if (count == 0) return;
  const int64_t along = self.strides[by_rows ? rank - 1 : rank - 2];
  const int64_t across = self.strides[by_rows ? rank - 2 : rank - 1];
  const Rows batch(out, out.dim() - 1);
  const std::vector<int64_t> self_strides(self.strides.begin(), self.strides.end() - 2);
  const std::vector<int64_t> out_strides(out.strides.begin(), out.strides.end() - 1);
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    batch.for_each([&](int64_t matrix) {
      const auto* from = static_cast<const Stored*>(self.data) + batch.offset(matrix, self_strides);
      auto* to = static_cast<Stored*>(out.data) + batch.offset(matrix, out_strides);
      std::vector<double> values(static_cast<size_t>(count * n));
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t i = 0; i < n; ++i)
          values[static_cast<size_t>(j * n + i)] = static_cast<double>(widen(from[j * across + i * along]));
      }
      const std::vector<double> lengths = column_lengths(values, count, n);
      for (int64_t j = 0; j < count; ++j)
        to[j * out.strides.back()] = narrow<Stored>(lengths[static_cast<size_t>(j)]);
    });
  });
}

}  // namespace stax::kernels
