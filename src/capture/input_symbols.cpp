#include "capture/input_symbols.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "support/check.h"
#include "support/plural.h"
#include "tensor/sym_int.h"
#include "tensor/tensor_impl.h"

namespace stax::capture {

using graph::TensorMeta;

namespace {

/// Whether another of the tensors lies in the same storage.
bool shares_memory(std::span<const Tensor* const> tensors, size_t k) {
  const void* id = tensors[k]->impl()->storage_id();
  for (size_t j = 0; j < tensors.size(); ++j) {
    if (j != k && tensors[j]->impl() != tensors[k]->impl() && tensors[j]->impl()->storage_id() == id) {
      return true;
    }
  }
  return false;
}

Interval range_of(int64_t min, int64_t max) {
  return max == DimOptions::kNoLimit ? Interval::at_least(min) : Interval::of(min, max);
}
Interval range_of(const Dim& dim) {
  return range_of(dim.options().min, dim.options().max);
}

/// "n", "n, with n within [2, 8]".
std::string declaration(const Dim& dim) {
  if (dim.kind() != Dim::Kind::named) return dim.str();
  return fmt::format("{}, with {} within {}", dim.str(), dim.name(), range_of(dim).str());
}

class Maker {
 public:
  Maker(ShapeEnv& env, const SymbolOptions& options, InputSymbols& out)
      : env_(env), options_(options), out_(out) {}

  /// The declarations of tensor `k`, by dimension.
  std::vector<const Dim*> declared(size_t k, const StridedImpl& tensor) const {
    std::vector<const Dim*> dims(static_cast<size_t>(tensor.dim()), nullptr);
    if (k >= options_.shapes.size()) return dims;
    for (const auto& [key, dim] : options_.shapes[k]) {
      const int64_t d = key < 0 ? key + tensor.dim() : key;
      STAX_CHECK(d >= 0 && d < tensor.dim(),
                 "dynamic_shapes: dimension {} of tensor {} is declared ({}), the tensor has {}", key, k,
                 declaration(dim), counted(tensor.dim(), "dimension"));
      dims[static_cast<size_t>(d)] = &dim;
    }
    return dims;
  }

  Expr size(size_t tensor, size_t d, int64_t length, const Dim* dim) {
    if (dim == nullptr || dim->kind() == Dim::Kind::automatic) return automatic(tensor, d, length);
    if (dim->kind() == Dim::Kind::fixed) {
      STAX_CHECK(dim->size() < 0 || dim->size() == length,
                 "dimension {} of tensor {} is declared as {}, got {}", d, tensor, dim->size(), length);
      return length;
    }
    const int64_t rest = length - dim->offset();
    STAX_CHECK(
        rest % dim->scale() == 0 && rest >= 0,
        "dimension {} of tensor {} is declared as {}, with {} within {}, got {}, which is not of that form",
        d, tensor, dim->str(), dim->name(), range_of(*dim).str(), length);
    return Expr(dim->scale()) * named(tensor, d, *dim, rest / dim->scale()) + dim->offset();
  }

  std::vector<Expr> strides(const StridedImpl& tensor, const std::vector<Expr>& sizes) {
    const size_t rank = sizes.size();
    std::vector<Expr> strides = graph::contiguous_strides(sizes);
    std::vector<size_t> order(rank);
    std::iota(order.rbegin(), order.rend(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::abs(tensor.stride(static_cast<int64_t>(a))) <
             std::abs(tensor.stride(static_cast<int64_t>(b)));
    });
    const bool empty = std::ranges::any_of(sizes, [](Expr e) { return e.is(0); });
    std::vector<Expr> products;  // what a dimension further out may have as stride
    for (const size_t d : order) {
      const int64_t stride = tensor.stride(static_cast<int64_t>(d));
      // Along one element or none any stride addresses the same: the usual one where that is its value. The
      // program may ask for it, and views that it returns have it.
      if ((sizes[d].is(1) || empty) && value_of(strides[d]) == stride) continue;
      strides[d] = stride_as(stride, products);
      products.push_back(strides[d] * sizes[d]);
    }
    return strides;
  }

  Expr integer(size_t k, int64_t value) {
    const Symbol symbol = env_.new_symbol(SymbolKind::size, value, Interval{});
    env_.describe(symbol, fmt::format("integer argument {}", k));
    return symbol;
  }

 private:
  Expr automatic(size_t tensor, size_t d, int64_t length) {
    if (length <= 1) return length;
    if (options_.share_equal) {
      for (const auto& [known, symbol] : shared_) {
        if (known == length) return symbol;
      }
    }
    const Symbol symbol = env_.new_symbol(SymbolKind::size, length, Interval::at_least(2));
    env_.describe(symbol, fmt::format("dimension {} of tensor {}", d, tensor));
    shared_.emplace_back(length, symbol);
    return symbol;
  }

  /// The symbol of a name, at its first use with the value that this use gives it.
  Expr named(size_t tensor, size_t d, const Dim& dim, int64_t value) {
    const auto [at, fresh] = names_.emplace(dim.name(), out_.dims.size());
    if (!fresh) {
      const DeclaredDim& known = out_.dims[at->second];
      STAX_CHECK(known.min == dim.options().min && known.max == dim.options().max,
                 "dynamic_shapes: {} is declared within {} and within {}; give it one range", dim.name(),
                 range_of(known.min, known.max).str(), range_of(dim).str());
      const int64_t before = *env_.hint(known.root);
      STAX_CHECK(
          before == value,
          "{}, declared within {}, is {} in dimension {} of tensor {}, but {} in {}, where it is used first",
          dim.name(), range_of(dim).str(), value, d, tensor, before, first_places_.at(dim.name()));
      return known.root;
    }
    DeclaredDim declared{dim.name(), dim.options().min, dim.options().max, value};
    STAX_CHECK(options_.stand_ins || (value >= declared.min && value <= declared.max),
               "dimension {} of tensor {}: {} is declared within {}, got {}", d, tensor, dim.name(),
               range_of(dim).str(), value);
    if (!options_.specialize_zero_one || value > 1) {
      const Interval bucket = bucket_of(dim.options(), value);
      Interval range{std::max(int64_t{2}, *bucket.lower), bucket.upper};
      if (range.upper && *range.upper < *range.lower) range.lower = *bucket.lower;
      const Symbol symbol = env_.new_symbol(SymbolKind::size, value, range);
      env_.describe(symbol, fmt::format("dimension {} of tensor {}, declared as {} with {} within {}", d,
                                        tensor, dim.str(), dim.name(), range_of(dim).str()));
      declared.root = symbol;
    }
    first_places_.emplace(dim.name(), fmt::format("dimension {} of tensor {}", d, tensor));
    out_.dims.push_back(declared);
    return declared.root;
  }

  static Interval bucket_of(const DimOptions& options, int64_t value) {
    Interval range{options.min, options.max};
    if (options.max == DimOptions::kNoLimit) range.upper.reset();
    const auto narrow = [&](int64_t edge) {
      if (value <= edge) {
        if (!range.upper || edge < *range.upper) range.upper = edge;
      } else {
        range.lower = std::max(*range.lower, edge + 1);
      }
    };
    if (options.power_of_two_buckets) {
      for (int bit = 0; bit < 62; ++bit) narrow(int64_t{1} << bit);
    }
    for (const int64_t edge : options.buckets) narrow(edge);
    return range;
  }

  /// By the hints; nothing where it leaves 64 bits.
  std::optional<int64_t> value_of(Expr e) const {
    try {
      return env_.hint(e);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  Expr stride_as(int64_t stride, const std::vector<Expr>& products) {
    if (stride >= -1 && stride <= 1) return stride;
    for (size_t k = products.size(); k-- > 0;) {
      if (!products[k].is_constant() && value_of(products[k]) == stride) return products[k];
    }
    if (stride < 0) return stride;
    for (const Expr product : products) {
      if (product.is(stride)) return stride;
    }
    // A padded row, a column of a wider matrix: nothing in this tensor determines it.
    for (const auto& [known, symbol] : shared_strides_) {
      if (known == stride) return symbol;
    }
    const Expr symbol = env_.new_symbol(SymbolKind::size, stride, Interval::at_least(2));
    shared_strides_.emplace_back(stride, symbol);
    return symbol;
  }

  ShapeEnv& env_;
  const SymbolOptions& options_;
  InputSymbols& out_;
  std::vector<std::pair<int64_t, Expr>> shared_, shared_strides_;
  std::map<std::string, size_t> names_;
  std::map<std::string, std::string> first_places_;
};

std::vector<Expr> numbers(const SizeList& list) {
  std::vector<Expr> out;
  for (const SymInt& value : list) out.push_back(to_expr(value));
  return out;
}

}  // namespace

InputSymbols make_symbols(ShapeEnv& env, std::span<const Tensor* const> tensors,
                          std::span<const int64_t> integers, const SymbolOptions& options) {
  STAX_CHECK(options.shapes.size() <= tensors.size(),
             "dynamic_shapes: declarations for {}, but the arguments have {}",
             counted(options.shapes.size(), "tensor"), tensors.size());
  if (options.record_decisions) env.record_decisions();
  InputSymbols out;
  Maker maker(env, options, out);
  for (size_t k = 0; k < tensors.size(); ++k) {
    const StridedImpl& tensor = strided(*tensors[k]);
    const std::vector<const Dim*> dims = maker.declared(k, tensor);
    TensorMeta meta{tensor.dtype(), tensor.device(), {}, {}, Expr(0)};
    const bool fixed = !options.dynamic || shares_memory(tensors, k);
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t length = tensor.size(static_cast<int64_t>(d));
      const bool named = dims[d] != nullptr && dims[d]->kind() == Dim::Kind::named;
      STAX_CHECK(!(named && fixed && options.dynamic),
                 "dynamic_shapes: dimension {} of tensor {} is declared as {}, with {} within {}, and is {}, "
                 "but the tensor shares memory with another argument, which fixes its sizes; clone it",
                 d, k, dims[d]->str(), dims[d]->name(), range_of(*dims[d]).str(), length);
      meta.sizes.push_back(fixed ? Expr(length) : maker.size(k, d, length, dims[d]));
    }
    meta.strides = fixed ? numbers(tensor.strides()) : maker.strides(tensor, meta.sizes);
    out.tensors.push_back(std::move(meta));
  }
  for (size_t k = 0; k < integers.size(); ++k) out.integers.push_back(maker.integer(k, integers[k]));
  return out;
}

}  // namespace stax::capture
