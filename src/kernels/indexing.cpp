// Kernels of indexing: scatter with a combining operation, searchsorted, positions of triangles.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/element.h"
#include "kernels/registry.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::kernels {
namespace {

bool is_nan(auto v) {
  return v != v;
}

template <class T>
T combine(const std::string& reduce, T a, T b) {
  if (reduce == "prod") {
    if constexpr (std::is_same_v<T, bool>) return a && b;
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    return static_cast<T>(a * b);
  }
  if (reduce == "amax") return is_nan(a) || a > b ? a : b;
  if (reduce == "amin") return is_nan(a) || a < b ? a : b;
  if constexpr (std::is_same_v<T, bool>) return a || b;
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return static_cast<T>(a + b);
}

template <class T>
T mean_of(T sum, int64_t count) {
  if constexpr (std::is_same_v<T, bool>) {
    return sum;
  } else if constexpr (std::is_integral_v<T>) {
    const auto wide = static_cast<int64_t>(sum);
    return static_cast<T>(wide / count - (wide % count < 0 ? 1 : 0));
  } else {
    return sum / static_cast<T>(count);
  }
}

// The dimensions of a tensor, a zero-dim one being seen as of one dimension.
std::vector<int64_t> at_least_1d(const std::vector<int64_t>& v) {
  return v.empty() ? std::vector<int64_t>{1} : v;
}

// Calls f(position in a row-major `base`, offset into index, offset into source) for every element of index.
template <class F>
void for_each_target(const TensorView& base, int64_t dim, const TensorView& index, const TensorView& source,
                     F&& f) {
  const auto sizes = at_least_1d(index.sizes), base_sizes = at_least_1d(base.sizes);
  const auto index_strides = at_least_1d(index.strides), source_strides = at_least_1d(source.strides);
  const size_t rank = sizes.size();
  std::vector<int64_t> base_strides(rank, 1), i(rank, 0);
  for (size_t d = rank - 1; d-- > 0;)
    base_strides[d] = base_strides[d + 1] * std::max<int64_t>(base_sizes[d + 1], 1);
  const bool wide = index.dtype == DType::int64;
  for (int64_t n = index.numel(); n-- > 0;) {
    int64_t from_index = 0, from_source = 0, to = 0;
    for (size_t d = 0; d < rank; ++d) {
      from_index += i[d] * index_strides[d];
      from_source += i[d] * source_strides[d];
      if (static_cast<int64_t>(d) != dim) to += i[d] * base_strides[d];
    }
    const int64_t at = wide ? static_cast<const int64_t*>(index.data)[from_index]
                            : static_cast<const int32_t*>(index.data)[from_index];
    STAX_CHECK(at >= 0 && at < base_sizes[dim],
               "scatter_reduce: index {} is out of range for dimension {} of size {}", at, dim,
               base_sizes[dim]);
    f(to + at * base_strides[dim], from_source);
    for (size_t d = rank; d-- > 0;) {
      if (++i[d] < sizes[d]) break;
      i[d] = 0;
    }
  }
}

}  // namespace

void scatter_combine(Arguments arguments, Results results) {
  const TensorView &self = arguments[0].tensor(), &index = arguments[2].tensor();
  const TensorView &source = arguments[3].tensor(), &out = results[0];
  const auto rank = static_cast<int64_t>(at_least_1d(self.sizes).size());
  int64_t dim = arguments[1].integer().value();
  if (dim < 0) dim += rank;
  const std::string& reduce = arguments[4].string();
  const bool include_self = arguments[5].boolean();
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    using Compute = typename decltype(type)::Compute;
    // Half types are combined in float32 and rounded once.
    const std::vector<Compute> self_values = read_all<Compute>(self);
    const auto count = self_values.size();
    const std::unique_ptr<Compute[]> values(new Compute[count]);
    std::copy(self_values.begin(), self_values.end(), values.get());
    std::vector<int64_t> seen(count, include_self ? 1 : 0);
    const auto* from = static_cast<const Stored*>(source.data);
    for_each_target(self, dim, index, source, [&](int64_t to, int64_t at) {
      const Compute v = widen(from[at]);
      values[to] = seen[to] == 0 ? v : combine<Compute>(reduce, values[to], v);
      ++seen[to];
    });
    auto* result = static_cast<Stored*>(out.data);
    size_t k = 0;
    for_each_offset(out, [&](int64_t at) {
      const Compute v = reduce == "mean" && seen[k] > 1 ? mean_of<Compute>(values[k], seen[k]) : values[k];
      result[at] = narrow<Stored>(v);
      ++k;
    });
  });
}

namespace {

template <class T>
int64_t find_position(const T* sorted, const int64_t* order, int64_t count, T value, bool right) {
  int64_t first = 0, last = count;
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    const T here = sorted[order ? order[middle] : middle];
    const bool stop = right ? here > value : here >= value;
    if (stop) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

}  // namespace

void searchsorted(Arguments arguments, Results results) {
  const TensorView &sequence = arguments[0].tensor(), &out = results[0];
  const bool right = arguments[3].boolean() || (!arguments[4].is_none() && arguments[4].string() == "right");
  std::vector<int64_t> order;
  if (arguments[5].is_tensor()) order = read_all<int64_t>(arguments[5].tensor());
  const int64_t count = sequence.sizes.back();
  for (const int64_t at : order)
    STAX_CHECK(at >= 0 && at < count, "searchsorted: the sorter's {} is no position of {}", at,
               counted(count, "element"));
  const auto search = [&](auto compute) {
    using T = decltype(compute);
    const std::vector<T> sorted = read_all<T>(sequence);
    const std::vector<T> values = arguments[1].is_tensor()
                                      ? read_all<T>(arguments[1].tensor())
                                      : std::vector<T>{static_cast<T>(arguments[1].number().as_double())};
    const int64_t per_row =
        sequence.dim() == 1 ? static_cast<int64_t>(values.size()) : arguments[1].tensor().sizes.back();
    size_t k = 0;
    for_each_offset(out, [&](int64_t at) {
      const int64_t start = static_cast<int64_t>(k) / per_row * count;
      const int64_t found = find_position<T>(
          sorted.data() + start, order.empty() ? nullptr : order.data() + start, count, values[k], right);
      ++k;
      if (out.dtype == DType::int64) static_cast<int64_t*>(out.data)[at] = found;
      if (out.dtype == DType::int32) static_cast<int32_t*>(out.data)[at] = static_cast<int32_t>(found);
    });
  };
  const bool number = arguments[1].is_number() && arguments[1].number().is_float();
  if (is_floating_point(sequence.dtype) || number) {
    search(double{});
  } else {
    search(int64_t{});
  }
}

namespace {

void triangle_indices(Arguments arguments, const TensorView& out, bool upper) {
  const int64_t rows = arguments[0].integer().value(), columns = arguments[1].integer().value();
  const int64_t offset = std::clamp(arguments[2].integer().value(), -rows - 1, columns + 1);
  with_element_type(out.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    if constexpr (std::is_integral_v<Stored>) {
      auto* data = static_cast<Stored*>(out.data);
      int64_t k = 0;
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t edge = std::clamp<int64_t>(i + offset + (upper ? 0 : 1), 0, columns);
        for (int64_t j = upper ? edge : 0; j < (upper ? columns : edge); ++j, ++k) {
          data[k * out.strides[1]] = static_cast<Stored>(i);
          data[out.strides[0] + k * out.strides[1]] = static_cast<Stored>(j);
        }
      }
    }
  });
}

}  // namespace

void tril_indices(Arguments arguments, Results results) {
  triangle_indices(arguments, results[0], false);
}

void triu_indices(Arguments arguments, Results results) {
  triangle_indices(arguments, results[0], true);
}

}  // namespace stax::kernels
