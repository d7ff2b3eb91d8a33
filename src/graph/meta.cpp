#include "graph/meta.h"

#include <fmt/core.h>

namespace stax::graph {
namespace {

std::string list(const std::vector<Expr>& values) {
  std::string text;
  for (const Expr e : values) text += (text.empty() ? "" : ", ") + e.str();
  return "[" + text + "]";
}

}  // namespace

std::vector<Expr> contiguous_strides(const std::vector<Expr>& sizes) {
  std::vector<Expr> strides(sizes.size());
  Expr step = 1;
  for (size_t k = sizes.size(); k-- > 0;) {
    strides[k] = step;
    step = step * max(sizes[k], 1);  // as PyTorch: an empty dimension counts as 1
  }
  return strides;
}

TensorMeta dense(DType dtype, std::vector<Expr> sizes, Device device) {
  TensorMeta meta{dtype, device, std::move(sizes), {}, Expr(0)};
  meta.strides = contiguous_strides(meta.sizes);
  return meta;
}

std::string TensorMeta::str() const {
  std::string text = fmt::format("{}{}", name(dtype), list(sizes));
  if (strides != contiguous_strides(sizes)) text += fmt::format(" strides {}", list(strides));
  if (!offset.is(0)) text += fmt::format(" offset {}", offset.str());
  if (device != Device{}) text += " on " + device.str();
  return text;
}

}  // namespace stax::graph
