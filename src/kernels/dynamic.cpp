// Kernels whose result sizes the data determines: nonzero, masked_select, unique, bincount,
// repeat_interleave, one_hot without a number of classes.
#include "kernels/dynamic.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/element.h"
#include "kernels/registry.h"
#include "kernels/rows.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::kernels {
namespace {

// The indices of the elements that are not zero, one after the other, in row-major order.
std::vector<int64_t> nonzero_indices(const TensorView& self) {
  std::vector<int64_t> found, index(self.sizes.size(), 0);
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    const auto* data = static_cast<const Stored*>(self.data);
    for_each_offset(self, [&](int64_t at) {
      if (widen(data[at]) != 0) found.insert(found.end(), index.begin(), index.end());
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < self.sizes[d]) break;
        index[d] = 0;
      }
    });
  });
  return found;
}

int64_t count_nonzero(const TensorView& self) {
  int64_t count = 0;
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    const auto* data = static_cast<const Stored*>(self.data);
    for_each_offset(self, [&](int64_t at) { count += widen(data[at]) != 0; });
  });
  return count;
}

int64_t* integers(const TensorView& t) {
  return static_cast<int64_t*>(t.data);
}

void write_integers(const AllocateResult& allocate, const std::vector<int64_t>& values,
                    const std::vector<int64_t>& sizes) {
  const TensorView out = allocate(DType::int64, sizes);
  std::copy(values.begin(), values.end(), integers(out));
}

void nonzero_columns(const TensorView& self, const AllocateResult& allocate) {
  TensorView seen = self;
  if (seen.sizes.empty()) {
    seen.sizes = {1};
    seen.strides = {1};
  }
  const std::vector<int64_t> found = nonzero_indices(seen);
  const auto rank = static_cast<int64_t>(seen.sizes.size());
  const int64_t count = static_cast<int64_t>(found.size()) / rank;
  for (int64_t d = 0; d < rank; ++d) {
    const TensorView out = allocate(DType::int64, {count});
    for (int64_t k = 0; k < count; ++k) integers(out)[k] = found[k * rank + d];
  }
}

TensorView broadcast_to(TensorView t, const std::vector<int64_t>& sizes) {
  const size_t skip = sizes.size() - t.sizes.size();
  std::vector<int64_t> strides(sizes.size(), 0);
  for (size_t d = 0; d < t.sizes.size(); ++d)
    strides[skip + d] = t.sizes[d] == 1 && sizes[skip + d] != 1 ? 0 : t.strides[d];
  t.sizes = sizes;
  t.strides = strides;
  return t;
}

std::vector<int64_t> broadcast_sizes(const TensorView& a, const TensorView& b) {
  const TensorView &longer = a.dim() >= b.dim() ? a : b, &shorter = a.dim() >= b.dim() ? b : a;
  std::vector<int64_t> sizes = longer.sizes;
  const size_t skip = longer.sizes.size() - shorter.sizes.size();
  for (size_t d = 0; d < shorter.sizes.size(); ++d) {
    int64_t& size = sizes[skip + d];
    const int64_t other = shorter.sizes[d];
    STAX_CHECK(size == other || size == 1 || other == 1,
               "masked_select: sizes {} and {} of dimension {} do not broadcast", size, other, skip + d);
    if (size == 1) size = other;
  }
  return sizes;
}

}  // namespace

void nonzero(Arguments arguments, const AllocateResult& allocate) {
  const TensorView& self = arguments[0].tensor();
  const int64_t rank = self.dim(), count = count_nonzero(self);
  write_integers(allocate, nonzero_indices(self), {count, rank});
}

void nonzero_tuple(Arguments arguments, const AllocateResult& allocate) {
  if (arguments.size() > 1 && !arguments[1].boolean()) return nonzero(arguments, allocate);
  nonzero_columns(arguments[0].tensor(), allocate);
}

void masked_select(Arguments arguments, const AllocateResult& allocate) {
  const auto sizes = broadcast_sizes(arguments[0].tensor(), arguments[1].tensor());
  const TensorView self = broadcast_to(arguments[0].tensor(), sizes);
  const TensorView mask = broadcast_to(arguments[1].tensor(), sizes);
  STAX_CHECK(mask.dtype == DType::boolean, "masked_select: expected a mask of bool, got {}",
             name(mask.dtype));
  std::vector<int64_t> from;
  for_each_offset(self, [&](int64_t at) { from.push_back(at); });
  std::vector<int64_t> chosen;
  size_t k = 0;
  for_each_offset(mask, [&](int64_t at) {
    if (static_cast<const bool*>(mask.data)[at]) chosen.push_back(from[k]);
    ++k;
  });
  const TensorView out = allocate(self.dtype, {static_cast<int64_t>(chosen.size())});
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    for (size_t j = 0; j < chosen.size(); ++j)
      static_cast<Stored*>(out.data)[j] = static_cast<const Stored*>(self.data)[chosen[j]];
  });
}

// ---- unique ----

namespace {

// A tensor as `count` items of `width` elements each: its elements, or its slices along a dimension.
template <class Stored>
struct Items {
  using T = typename ElementType<Stored>::Compute;
  std::vector<Stored> data;
  int64_t count = 0, width = 1;

  T at(int64_t item, int64_t k) const { return widen(data[item * width + k]); }
  bool equal(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < width; ++k) {
      if (!(at(a, k) == at(b, k))) return false;
    }
    return true;
  }
  bool before(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < width; ++k) {
      if (sorts_before(at(a, k), at(b, k))) return true;
      if (sorts_before(at(b, k), at(a, k))) return false;
    }
    return false;
  }
};

template <class Stored>
Items<Stored> read_items(TensorView self, const Argument<TensorView>& dim) {
  Items<Stored> items;
  items.count = self.numel();
  if (!dim.is_none() && self.dim() > 0) {
    const int64_t d = wrapped(dim.integer().value(), self.dim());
    STAX_CHECK(d >= 0 && d < self.dim(), "unique: dimension {} is out of range for {}", dim.integer().value(),
               counted(self.dim(), "dimension"));
    std::rotate(self.sizes.begin(), self.sizes.begin() + d, self.sizes.begin() + d + 1);
    std::rotate(self.strides.begin(), self.strides.begin() + d, self.strides.begin() + d + 1);
    items.count = self.sizes[0];
    items.width = std::accumulate(self.sizes.begin() + 1, self.sizes.end(), int64_t{1}, std::multiplies<>());
  }
  for_each_offset(self, [&](int64_t at) { items.data.push_back(static_cast<const Stored*>(self.data)[at]); });
  return items;
}

// Writes the chosen items in the layout of self, `first` naming the item that stands for each.
template <class Stored>
void write_items(const AllocateResult& allocate, const TensorView& self, const Argument<TensorView>& dim,
                 const Items<Stored>& items, const std::vector<int64_t>& first) {
  const auto count = static_cast<int64_t>(first.size());
  if (dim.is_none() || self.dim() == 0) {
    const TensorView out = allocate(self.dtype, {count});
    for (int64_t k = 0; k < count; ++k) static_cast<Stored*>(out.data)[k] = items.data[first[k]];
    return;
  }
  const int64_t d = wrapped(dim.integer().value(), self.dim());
  std::vector<int64_t> sizes = self.sizes;
  sizes[d] = count;
  TensorView out = allocate(self.dtype, sizes);
  std::rotate(out.sizes.begin(), out.sizes.begin() + d, out.sizes.begin() + d + 1);
  std::rotate(out.strides.begin(), out.strides.begin() + d, out.strides.begin() + d + 1);
  int64_t k = 0;
  for_each_offset(out, [&](int64_t at) {
    static_cast<Stored*>(out.data)[at] = items.data[first[k / items.width] * items.width + k % items.width];
    ++k;
  });
}

struct UniqueOptions {
  bool sort, inverse, counts;
  const Argument<TensorView>& dim;
};

void unique_of(const TensorView& self, const UniqueOptions& options, const AllocateResult& allocate) {
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    const Items<Stored> items = read_items<Stored>(self, options.dim);
    std::vector<int64_t> order(static_cast<size_t>(items.count));
    std::iota(order.begin(), order.end(), 0);
    if (options.sort)
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return items.before(a, b); });
    std::vector<int64_t> first, counts, inverse(order.size());
    for (const int64_t item : order) {
      if (first.empty() || !items.equal(first.back(), item)) {
        first.push_back(item);
        counts.push_back(0);
      }
      ++counts.back();
      inverse[item] = static_cast<int64_t>(first.size()) - 1;
    }
    write_items(allocate, self, options.dim, items, first);
    const bool slices = !options.dim.is_none() && self.dim() > 0;
    if (options.inverse) write_integers(allocate, inverse, slices ? std::vector{items.count} : self.sizes);
    if (options.counts) write_integers(allocate, counts, {static_cast<int64_t>(counts.size())});
  });
}

}  // namespace

void unique(Arguments arguments, const AllocateResult& allocate) {
  unique_of(arguments[0].tensor(), {true, arguments[2].boolean(), arguments[3].boolean(), arguments[4]},
            allocate);
}

void unique_consecutive(Arguments arguments, const AllocateResult& allocate) {
  unique_of(arguments[0].tensor(), {false, arguments[1].boolean(), arguments[2].boolean(), arguments[3]},
            allocate);
}

// ---- bincount, repeat_interleave, one_hot ----

void bincount(Arguments arguments, const AllocateResult& allocate) {
  const TensorView& self = arguments[0].tensor();
  STAX_CHECK(is_integral(self.dtype) && (self.dim() == 1 || self.numel() == 0),
             "bincount: expected a vector of integers, got {} of {}", counted(self.dim(), "dimension"),
             name(self.dtype));
  const int64_t least = arguments[2].integer().value();
  STAX_CHECK(least >= 0, "bincount: minlength must not be negative, got {}", least);
  const std::vector<int64_t> values = read_all<int64_t>(self);
  int64_t bins = least;
  for (const int64_t v : values) {
    STAX_CHECK(v >= 0 && v < INT64_MAX, "bincount: expected numbers in [0, 2^63 - 1), got {}", v);
    bins = std::max(bins, v + 1);
  }
  if (!arguments[1].is_tensor()) {
    int64_t* counts = integers(allocate(DType::int64, {bins}));
    std::fill_n(counts, bins, 0);
    for (const int64_t v : values) ++counts[v];
    return;
  }
  const TensorView& weights = arguments[1].tensor();
  STAX_CHECK(weights.sizes == self.sizes, "bincount: expected as many weights as numbers, got {} and {}",
             weights.numel(), self.numel());
  const bool narrow_weights = weights.dtype == DType::float32;
  const std::vector<double> factors = read_all<double>(weights);
  const TensorView out = allocate(narrow_weights ? DType::float32 : DType::float64, {bins});
  std::vector<double> sums(static_cast<size_t>(bins), 0);
  for (size_t k = 0; k < values.size(); ++k) sums[values[k]] += factors[k];
  for (int64_t k = 0; k < bins; ++k) {
    if (narrow_weights) static_cast<float*>(out.data)[k] = static_cast<float>(sums[k]);
    if (!narrow_weights) static_cast<double*>(out.data)[k] = sums[k];
  }
}

namespace {

std::vector<int64_t> repeated_positions(const TensorView& repeats, int64_t length) {
  STAX_CHECK(repeats.dtype == DType::int64 || repeats.dtype == DType::int32,
             "repeat_interleave: expected repeats of int64 or int32, got {}", name(repeats.dtype));
  const std::vector<int64_t> counts = read_all<int64_t>(repeats);
  STAX_CHECK(repeats.dim() <= 1 && (counts.size() == 1 || static_cast<int64_t>(counts.size()) == length),
             "repeat_interleave: {} repeats do not fit {}", counts.size(), counted(length, "element"));
  std::vector<int64_t> out;
  for (int64_t k = 0; k < length; ++k) {
    const int64_t count = counts[counts.size() == 1 ? 0 : k];
    STAX_CHECK(count >= 0, "repeat_interleave: repeats must not be negative, got {}", count);
    out.insert(out.end(), static_cast<size_t>(count), k);
  }
  return out;
}

void check_output_size(const Argument<TensorView>& expected, size_t count) {
  STAX_CHECK(expected.is_none() || expected.integer().value() == static_cast<int64_t>(count),
             "repeat_interleave: output_size is {}, but the repeats sum to {}", expected.integer().value(),
             count);
}

}  // namespace

void repeat_positions(Arguments arguments, const AllocateResult& allocate) {
  const TensorView& repeats = arguments[0].tensor();
  STAX_CHECK(repeats.dim() == 1, "repeat_interleave: expected a vector of repeats, got {}",
             counted(repeats.dim(), "dimension"));
  const auto from = repeated_positions(repeats, repeats.sizes[0]);
  check_output_size(arguments[1], from.size());
  write_integers(allocate, from, {static_cast<int64_t>(from.size())});
}

void repeat_interleave(Arguments arguments, const AllocateResult& allocate) {
  TensorView self = arguments[0].tensor();
  const bool flat = arguments[2].is_none();
  const int64_t dim = flat ? 0 : wrapped(arguments[2].integer().value(), self.dim());
  STAX_CHECK(dim >= 0 && dim < std::max<int64_t>(self.dim(), 1),
             "repeat_interleave: dimension {} is out of range for {}", dim, counted(self.dim(), "dimension"));
  std::vector<int64_t> offsets;  // of the elements in row-major order
  for_each_offset(self, [&](int64_t at) { offsets.push_back(at); });
  std::vector<int64_t> sizes = self.sizes;
  if (flat || sizes.empty()) sizes = {static_cast<int64_t>(offsets.size())};
  const auto from = repeated_positions(arguments[1].tensor(), sizes[dim]);
  check_output_size(arguments[3], from.size());
  const int64_t length = sizes[dim];
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= sizes[d];
  for (size_t d = dim + 1; d < sizes.size(); ++d) inner *= sizes[d];
  sizes[dim] = static_cast<int64_t>(from.size());
  const TensorView out = allocate(self.dtype, sizes);
  with_element_type(self.dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    const auto* data = static_cast<const Stored*>(self.data);
    auto* to = static_cast<Stored*>(out.data);
    for (int64_t o = 0; o < outer; ++o) {
      for (const int64_t f : from) {
        for (int64_t k = 0; k < inner; ++k) *to++ = data[offsets[(o * length + f) * inner + k]];
      }
    }
  });
}

void one_hot(Arguments arguments, const AllocateResult& allocate) {
  const TensorView& self = arguments[0].tensor();
  STAX_CHECK(self.dtype == DType::int64, "one_hot: expected classes of int64, got {}", name(self.dtype));
  const std::vector<int64_t> values = read_all<int64_t>(self);
  STAX_CHECK(!values.empty(), "one_hot: an empty tensor has no largest class; pass num_classes");
  STAX_CHECK(*std::min_element(values.begin(), values.end()) >= 0, "one_hot: classes must not be negative");
  const int64_t largest = *std::max_element(values.begin(), values.end());
  STAX_CHECK(largest < INT64_MAX, "one_hot: the class {} is too large", largest);
  const int64_t classes = largest + 1;
  std::vector<int64_t> sizes = self.sizes;
  sizes.push_back(classes);
  const TensorView out = allocate(DType::int64, sizes);
  std::fill_n(integers(out), values.size() * static_cast<size_t>(classes), 0);
  for (size_t k = 0; k < values.size(); ++k) integers(out)[static_cast<int64_t>(k) * classes + values[k]] = 1;
}

void bind_value(Arguments arguments, const AllocateResult& allocate) {
  write_integers(allocate, read_all<int64_t>(arguments[0].tensor()), {});
}

}  // namespace stax::kernels
