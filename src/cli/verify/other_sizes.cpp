#include "cli/verify/other_sizes.h"

#include <algorithm>
#include <functional>
#include <set>

#include "compiler/batch.h"
#include "stax/error.h"
#include "tensor/tensor_impl.h"

namespace stax::cli {
namespace {

constexpr int64_t kMostElements = 1 << 22;

/// The elements of `from`, each dimension tiled or cropped to `sizes`, laid out with `strides`.
Tensor tiled(const StridedImpl& from, const std::vector<int64_t>& sizes,
             const std::vector<int64_t>& strides) {
  const Tensor out = new_tensor(from.dtype(), extents_of(sizes, strides));
  const StridedImpl& to = strided(out);
  const int64_t width = itemsize(from.dtype());
  std::vector<int64_t> at(sizes.size(), 0);
  const int64_t count = to.element_count();
  for (int64_t k = 0; k < count; ++k) {
    int64_t source = 0, target = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      source += at[d] % from.size(static_cast<int64_t>(d)) * from.stride(static_cast<int64_t>(d));
      target += at[d] * strides[d];
    }
    std::copy_n(from.data() + source * width, width, to.data() + target * width);
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

class Resizer {
 public:
  Resizer(const capture::Captured& captured, const std::vector<Tensor>& arguments)
      : captured_(captured), arguments_(arguments) {
    for (Symbol s{SymbolKind::size, 0}; captured.env->hint(s); ++s.number) {
      hints_.push_back(*captured.env->hint(s));
    }
  }

  /// Assignments to try: all sizes changed alike, then one at a time, then pairs.
  std::vector<std::vector<int64_t>> candidates() const {
    std::vector<std::vector<int64_t>> out;
    const std::vector<std::function<int64_t(int64_t)>> changes = {
        [](int64_t n) { return n + 1; }, [](int64_t n) { return 2 * n; }, [](int64_t n) { return n + 3; },
        [](int64_t n) { return n - 1; }, [](int64_t n) { return 3 * n; }};
    const auto add = [&](const std::vector<size_t>& which, const auto& change) {
      std::vector<int64_t> values = hints_;
      for (const size_t k : which) values[k] = change(values[k]);
      out.push_back(std::move(values));
    };
    std::vector<size_t> all(hints_.size());
    for (size_t k = 0; k < all.size(); ++k) all[k] = k;
    for (const auto& change : changes) add(all, change);
    for (const auto& change : changes) {
      for (size_t k = 0; k < all.size(); ++k) add({k}, change);
    }
    for (size_t k = 0; k < all.size(); ++k) {
      for (size_t j = 0; j < k; ++j) add({k, j}, changes[1]);
    }
    return out;
  }

  /// Nothing where a size is negative or a tensor too large.
  std::vector<Tensor> resized(const std::vector<int64_t>& values) const {
    std::vector<Tensor> out;
    const auto value = [&](Expr e) {
      return evaluate(e, [&](Symbol s) { return values[static_cast<size_t>(s.number)]; });
    };
    for (size_t k = 0; k < arguments_.size(); ++k) {
      const graph::TensorMeta& meta = captured_.symbols.tensors[k];
      std::vector<int64_t> sizes, strides;
      int64_t count = 1;
      for (size_t d = 0; d < meta.sizes.size(); ++d) {
        sizes.push_back(value(meta.sizes[d]));
        strides.push_back(value(meta.strides[d]));
        if (sizes.back() < 0 || strides.back() < 0) return {};
        count *= sizes.back();
        if (count > kMostElements) return {};
      }
      const StridedImpl& from = strided(arguments_[k]);
      if (from.element_count() == 0 && count > 0) return {};
      out.push_back(tiled(from, sizes, strides));
    }
    return out;
  }

 private:
  const capture::Captured& captured_;
  const std::vector<Tensor>& arguments_;
  std::vector<int64_t> hints_;
};

}  // namespace

std::vector<std::vector<Tensor>> at_other_sizes(const capture::Captured& captured,
                                                const compiler::Guards& guards,
                                                const std::vector<Tensor>& arguments, size_t count) {
  std::vector<std::vector<Tensor>> out;
  if (guards.symbols() == 0) return out;
  const Resizer resizer(captured, arguments);
  std::set<std::vector<int64_t>> seen;
  for (const std::vector<int64_t>& values : resizer.candidates()) {
    if (out.size() == count) break;
    std::vector<Tensor> tensors;
    try {
      tensors = resizer.resized(values);
    } catch (const Error&) {
      continue;  // a size that cannot be
    }
    if (tensors.size() != arguments.size()) continue;
    const auto symbols = compiler::symbols_of(guards, tensors);
    if (!symbols || *symbols == *compiler::symbols_of(guards, arguments) || !seen.insert(*symbols).second) {
      continue;
    }
    out.push_back(std::move(tensors));
  }
  return out;
}

}  // namespace stax::cli
