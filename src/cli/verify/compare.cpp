#include "cli/verify/compare.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tensor/tensor_impl.h"

namespace stax::cli {
namespace {

struct Tolerance {
  double relative, absolute;
};

Tolerance tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return {1e-7, 1e-7};
    case DType::float32:
      return {1.3e-6, 1e-5};
    case DType::float16:
      return {1e-3, 1e-5};
    case DType::bfloat16:
      return {1.6e-2, 1e-5};
    case DType::boolean:
    case DType::uint8:
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
      break;
  }
  return {0, 0};
}

/// The elements in row-major order; integers as they are, so that 64-bit ones keep their digits.
template <class T>
std::vector<T> elements(const Tensor& tensor, DType dtype) {
  const Tensor dense = new_tensor(dtype, tensor.sizes().values());
  copy_elements(strided(tensor).view(), strided(dense).view());
  const T* data = reinterpret_cast<const T*>(strided(dense).data());
  return {data, data + static_cast<int64_t>(dense.numel())};
}

std::vector<double> floats(const Tensor& tensor) {
  return elements<double>(tensor, DType::float64);
}

/// The values as the dtype holds them: what is out of its range becomes infinite.
std::vector<double> rounded(const Tensor& tensor, DType dtype) {
  const Tensor narrow = new_tensor(dtype, tensor.sizes().values());
  copy_elements(strided(tensor).view(), strided(narrow).view());
  return floats(narrow);
}

bool close(double got, double want, const Tolerance& t, double slack) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= t.absolute + slack + t.relative * std::abs(want);
}

std::string shape(const Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes().values(), ", "));
}

std::string count_text(size_t wrong, size_t total) {
  return fmt::format("{} of {} elements differ", wrong, total);
}

std::string integer_difference(const Tensor& got, const Tensor& want) {
  const auto a = elements<int64_t>(got, DType::int64), b = elements<int64_t>(want, DType::int64);
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return fmt::format("{}; element {} is {}, expected {}", count_text(wrong, a.size()), first, a[first],
                     b[first]);
}

}  // namespace

std::string difference(const Tensor& got, const Expected& expected) {
  const Tensor& want = expected.out;
  if (got.dtype() != want.dtype())
    return fmt::format("dtype {}, expected {}", name(got.dtype()), name(want.dtype()));
  if (!(got.sizes() == want.sizes())) return fmt::format("shape {}, expected {}", shape(got), shape(want));
  if (!got.is_floating_point()) return integer_difference(got, want);
  const std::vector<double> a = floats(got), b = floats(want);
  const bool has_exact = expected.exact.defined() && expected.exact.sizes() == want.sizes();
  const std::vector<double> c = has_exact ? rounded(expected.exact, got.dtype()) : b;
  const Tolerance t = tolerance(got.dtype());
  std::vector<double> slack(a.size(), 0);
  if (expected.magnitudes.defined() && expected.magnitudes.sizes() == want.sizes() &&
      got.dtype() == DType::float32) {
    slack = floats(expected.magnitudes);
    for (double& s : slack) s = std::ldexp(s, -22);
  }
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!close(a[i], b[i], t, slack[i]) && !close(a[i], c[i], t, slack[i]) && wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return fmt::format("{}; element {} is {:.9g}, expected {:.9g}", count_text(wrong, a.size()), first,
                     a[first], b[first]);
}

namespace {

/// One lane: the elements of a dense tensor that differ only in their position along `dim`.
struct Lanes {
  int64_t length = 1, inner = 1, outer = 1;
  Lanes(const Tensor& tensor, int64_t dim) {
    const auto sizes = tensor.sizes().values();
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      const int64_t n = sizes[static_cast<size_t>(d)];
      (d == dim ? length : d < dim ? outer : inner) *= n;
    }
  }
  size_t at(int64_t outer_index, int64_t position, int64_t inner_index) const {
    return static_cast<size_t>((outer_index * length + position) * inner + inner_index);
  }
};

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

std::string index_difference(const Tensor& input, int64_t dim, const Tensor& got, const Tensor& expected) {
  const std::vector<double> values = floats(input);
  const auto mine = elements<int64_t>(got, DType::int64), theirs = elements<int64_t>(expected, DType::int64);
  const Lanes from(input, dim);
  Lanes to(got, got.dim() == input.dim() ? dim : -1);
  if (got.dim() != input.dim()) {  // the dimension was reduced away
    to.length = 1;
    to.outer = from.outer;
    to.inner = from.inner;
  }
  for (int64_t o = 0; o < to.outer; ++o) {
    for (int64_t i = 0; i < to.inner; ++i) {
      std::set<int64_t> seen;
      for (int64_t p = 0; p < to.length; ++p) {
        const int64_t a = mine[to.at(o, p, i)], b = theirs[to.at(o, p, i)];
        if (a < 0 || a >= from.length) return fmt::format("index {} is out of range", a);
        if (!seen.insert(a).second) return fmt::format("index {} stands twice in one lane", a);
        if (!same(values[from.at(o, a, i)], values[from.at(o, b, i)]))
          return fmt::format("index {} names another value than the expected index {}", a, b);
      }
    }
  }
  return "";
}

}  // namespace stax::cli
