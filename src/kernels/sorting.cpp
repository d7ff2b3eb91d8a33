// Kernels that order the elements of rows: sort, topk, kthvalue, median, mode, quantile, histc.
#include <cmath>
#include <limits>
#include <string>

#include "kernels/element.h"
#include "kernels/registry.h"
#include "kernels/rows.h"
#include "support/check.h"

namespace stax::kernels {
namespace {

template <class T>
struct Item {
  T value;
  int64_t index;
};

template <class T>
bool ascending(const Item<T>& a, const Item<T>& b) {
  return sorts_before(a.value, b.value);
}
template <class T>
bool descending(const Item<T>& a, const Item<T>& b) {
  return sorts_before(b.value, a.value);
}

template <class Stored>
auto read_row(const Stored* from, int64_t stride, int64_t length) {
  std::vector<Item<typename ElementType<Stored>::Compute>> items(static_cast<size_t>(length));
  for (int64_t k = 0; k < length; ++k) items[k] = {widen(from[k * stride]), k};
  return items;
}

// Calls f(items of a row, write) for every row, where write(k, item) stores item as element k of the results
// (values, indices).
template <class F>
void for_each_row(const TensorView& self, int64_t dim, Results results, F&& f) {
  const TensorView &values = results[0], &indices = results[1];
  const Rows rows(self, dim);
  const int64_t rank = self.dim();
  const auto self_strides = other_strides(self, dim, rank);
  const auto value_strides = other_strides(values, dim, rank),
             index_strides = other_strides(indices, dim, rank);
  const bool long_results = values.dim() == rank && rank > 0;
  const int64_t value_step = long_results ? values.strides[dim] : 1;
  const int64_t index_step = long_results ? indices.strides[dim] : 1;
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    using Compute = typename decltype(type)::Compute;
    rows.for_each([&](int64_t row) {
      const auto* from = static_cast<const Stored*>(self.data) + rows.offset(row, self_strides);
      auto* value = static_cast<Stored*>(values.data) + rows.offset(row, value_strides);
      auto* index = static_cast<int64_t*>(indices.data) + rows.offset(row, index_strides);
      auto items = read_row(from, stride_along(self, dim), rows.length());
      f(items, [&](int64_t k, const Item<Compute>& item) {
        value[k * value_step] = narrow<Stored>(item.value);
        index[k * index_step] = item.index;
      });
    });
  });
}

template <class Items>
void sort_items(Items& items, bool largest_first) {
  using T = decltype(items[0].value);
  if (largest_first) {
    std::stable_sort(items.begin(), items.end(), descending<T>);
  } else {
    std::stable_sort(items.begin(), items.end(), ascending<T>);
  }
}

}  // namespace

void sort_stable(Arguments arguments, Results results) {
  const TensorView& self = arguments[0].tensor();
  const bool largest_first = arguments[3].boolean();
  for_each_row(self, wrapped(arguments[2].integer().value(), self.dim()), results,
               [&](auto& items, auto write) {
                 sort_items(items, largest_first);
                 for (size_t k = 0; k < items.size(); ++k) write(static_cast<int64_t>(k), items[k]);
               });
}

void topk(Arguments arguments, Results results) {
  const TensorView& self = arguments[0].tensor();
  // A zero-dim tensor is its own result, also for k = 0.
  const int64_t k = self.dim() == 0 ? 1 : arguments[1].integer().value();
  const bool largest = arguments[3].boolean();
  for_each_row(self, wrapped(arguments[2].integer().value(), self.dim()), results,
               [&](auto& items, auto write) {
                 // Among equal values the first ones come, in order.
                 const auto before = [&](const auto& a, const auto& b) {
                   if (largest ? descending(a, b) : ascending(a, b)) return true;
                   if (largest ? descending(b, a) : ascending(b, a)) return false;
                   return a.index < b.index;
                 };
                 std::partial_sort(items.begin(), items.begin() + k, items.end(), before);
                 for (int64_t j = 0; j < k; ++j) write(j, items[j]);
               });
}

void kthvalue(Arguments arguments, Results results) {
  const TensorView& self = arguments[0].tensor();
  const int64_t k = arguments[1].integer().value() - 1;
  for_each_row(self, wrapped(arguments[2].integer().value(), self.dim()), results,
               [&](auto& items, auto write) {
                 sort_items(items, false);
                 write(0, items[k]);
               });
}

namespace {

// The lower median; with `skip_nan` of the numbers only. NaN, at its first position, where there is one
// otherwise.
template <class Items>
auto median_of(Items& items, bool skip_nan) {
  sort_items(items, false);
  int64_t numbers = static_cast<int64_t>(items.size());
  while (numbers > 0 && items[numbers - 1].value != items[numbers - 1].value) --numbers;
  const bool any_nan = numbers < static_cast<int64_t>(items.size());
  if (any_nan && (!skip_nan || numbers == 0)) return items[numbers];
  return items[(numbers - 1) / 2];
}

void median_along(Arguments arguments, Results results, bool skip_nan) {
  const TensorView& self = arguments[0].tensor();
  for_each_row(self, wrapped(arguments[1].integer().value(), self.dim()), results,
               [&](auto& items, auto write) { write(0, median_of(items, skip_nan)); });
}

void median_of_all(Arguments arguments, Results results, bool skip_nan) {
  const TensorView& self = arguments[0].tensor();
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    using Compute = typename decltype(type)::Compute;
    std::vector<Item<Compute>> items;
    const auto* data = static_cast<const Stored*>(self.data);
    for_each_offset(self, [&](int64_t at) {
      items.push_back({widen(data[at]), static_cast<int64_t>(items.size())});
    });
    auto* out = static_cast<Stored*>(results[0].data);
    if (items.empty()) {
      // Nothing has no median: NaN, and the smallest number for integers.
      if constexpr (std::is_floating_point_v<Compute>) {
        *out = narrow<Stored>(std::numeric_limits<Compute>::quiet_NaN());
      } else {
        *out = narrow<Stored>(std::numeric_limits<Compute>::min());
      }
      return;
    }
    *out = narrow<Stored>(median_of(items, skip_nan).value);
  });
}

}  // namespace

void median_dim(Arguments arguments, Results results) {
  median_along(arguments, results, false);
}
void nanmedian_dim(Arguments arguments, Results results) {
  median_along(arguments, results, true);
}
void median(Arguments arguments, Results results) {
  median_of_all(arguments, results, false);
}
void nanmedian(Arguments arguments, Results results) {
  median_of_all(arguments, results, true);
}

void mode(Arguments arguments, Results results) {
  const TensorView& self = arguments[0].tensor();
  for_each_row(self, wrapped(arguments[1].integer().value(), self.dim()), results,
               [&](auto& items, auto write) {
                 sort_items(items, false);
                 // The longest run; the smallest value wins a tie, its last position is given.
                 size_t best_end = 0, best_length = 0;
                 for (size_t begin = 0; begin < items.size();) {
                   size_t end = begin + 1;
                   while (end < items.size() && items[end].value == items[begin].value) ++end;
                   if (end - begin > best_length) {
                     best_length = end - begin;
                     best_end = end;
                   }
                   begin = end;
                 }
                 write(0, items[best_end - 1]);
               });
}

namespace {

template <class T>
T interpolated(const std::vector<Item<T>>& items, int64_t count, T q, const std::string& how) {
  const T rank = q * static_cast<T>(count - 1);
  const T low = std::floor(rank), high = std::ceil(rank);
  const auto at = [&](T position) { return items[static_cast<size_t>(position)].value; };
  if (how == "lower") return at(low);
  if (how == "higher") return at(high);
  if (how == "nearest") return at(std::nearbyint(rank));
  const T a = at(low), b = at(high), weight = how == "midpoint" ? T{0.5} : rank - low;
  if (low == high) return a;
  return weight < T{0.5} ? a + weight * (b - a) : b - (b - a) * (T{1} - weight);
}

template <class T>
void quantiles(Arguments arguments, const TensorView& out, bool skip_nan) {
  const TensorView& self = arguments[0].tensor();
  const int64_t dim = wrapped(arguments[2].integer().value(), self.dim()), rank = self.dim();
  const std::string& how = arguments[4].string();
  const std::vector<T> q = read_all<T>(arguments[1].tensor());
  for (const T v : q) STAX_CHECK(v >= 0 && v <= 1, "quantile: expected q between 0 and 1, got {}", v);
  const bool many = arguments[1].tensor().dim() == 1;
  TensorView one = out;  // the result for one q
  if (many) {
    one.sizes.erase(one.sizes.begin());
    one.strides.erase(one.strides.begin());
  }
  const Rows rows(self, dim);
  const auto self_strides = other_strides(self, dim, rank), out_strides = other_strides(one, dim, rank);
  rows.for_each([&](int64_t row) {
    auto items = read_row(static_cast<const T*>(self.data) + rows.offset(row, self_strides),
                          stride_along(self, dim), rows.length());
    sort_items(items, false);
    auto numbers = static_cast<int64_t>(items.size());
    while (numbers > 0 && std::isnan(items[numbers - 1].value)) --numbers;
    const bool nan = numbers == 0 || (!skip_nan && numbers < static_cast<int64_t>(items.size()));
    T* to = static_cast<T*>(out.data) + rows.offset(row, out_strides);
    for (size_t k = 0; k < q.size(); ++k) {
      to[many ? static_cast<int64_t>(k) * out.strides[0] : 0] =
          nan ? std::numeric_limits<T>::quiet_NaN() : interpolated<T>(items, numbers, q[k], how);
    }
  });
}

void quantile_of(Arguments arguments, Results results, bool skip_nan) {
  if (results[0].dtype == DType::float32) return quantiles<float>(arguments, results[0], skip_nan);
  quantiles<double>(arguments, results[0], skip_nan);
}

}  // namespace

void quantile(Arguments arguments, Results results) {
  quantile_of(arguments, results, false);
}
void nanquantile(Arguments arguments, Results results) {
  quantile_of(arguments, results, true);
}

void histc(Arguments arguments, Results results) {
  const TensorView &self = arguments[0].tensor(), &out = results[0];
  const int64_t bins = arguments[1].integer().value();
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    using T = typename decltype(type)::Compute;
    if constexpr (std::is_floating_point_v<T>) {
      const std::vector<T> values = read_all<T>(self);
      T low = static_cast<T>(arguments[2].floating()), high = static_cast<T>(arguments[3].floating());
      if (low == high && !values.empty()) {
        low = *std::min_element(values.begin(), values.end());
        high = *std::max_element(values.begin(), values.end());
      }
      STAX_CHECK(std::isfinite(low) && std::isfinite(high), "histc: the range from {} to {} is not finite",
                 low, high);
      if (low == high) {
        low -= 1;
        high += 1;
      }
      STAX_CHECK(low < high, "histc: the range's minimum {} is above its maximum {}", low, high);
      std::vector<int64_t> counts(static_cast<size_t>(bins), 0);
      for (const T v : values) {
        if (!(v >= low && v <= high)) continue;
        const auto at = static_cast<int64_t>((v - low) / (high - low) * static_cast<T>(bins));
        ++counts[static_cast<size_t>(std::min(at, bins - 1))];
      }
      for (int64_t k = 0; k < bins; ++k)
        static_cast<Stored*>(out.data)[k * out.strides[0]] = narrow<Stored>(static_cast<T>(counts[k]));
    }
  });
}

namespace {

template <class F>
void choose(std::vector<int64_t>& chosen, size_t position, int64_t first, int64_t n, bool repeat, F&& f) {
  if (position == chosen.size()) {
    f();
    return;
  }
  for (int64_t k = first; k < n; ++k) {
    chosen[position] = k;
    choose(chosen, position + 1, repeat ? k : k + 1, n, repeat, f);
  }
}

}  // namespace

void combinations(Arguments arguments, Results results) {
  const TensorView &self = arguments[0].tensor(), &out = results[0];
  if (out.numel() == 0) return;
  std::vector<int64_t> chosen(static_cast<size_t>(arguments[1].integer().value()));
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    const auto* from = static_cast<const Stored*>(self.data);
    auto* to = static_cast<Stored*>(out.data);
    choose(chosen, 0, 0, self.sizes[0], arguments[2].boolean(), [&] {
      for (size_t k = 0; k < chosen.size(); ++k)
        to[static_cast<int64_t>(k) * out.strides[1]] = from[chosen[k] * self.strides[0]];
      to += out.strides[0];
    });
  });
}

}  // namespace stax::kernels
