#include "examples/embed/batches.h"

#include <algorithm>
#include <numeric>

namespace embed {

std::vector<std::vector<size_t>> make_batches(std::span<const size_t> lengths, size_t max_tokens) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<size_t>> batches;
  size_t tokens = 0;  // of the last batch, without padding
  for (const size_t text : order) {
    const size_t count = batches.empty() ? 0 : batches.back().size();
    const size_t padded = count > 0 ? (count + 1) * lengths[batches.back()[0]] : 0;
    const bool fits = padded <= max_tokens && (padded - tokens - lengths[text]) * 8 <= padded;
    if (count != 1 && (count == 0 || !fits)) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(text);
    tokens += lengths[text];
  }
  return batches;
}

}  // namespace embed
