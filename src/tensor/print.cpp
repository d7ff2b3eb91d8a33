// Text of tensors: nested brackets, one number format for all elements, long dimensions elided.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "stax/tensor.h"
#include "support/check.h"
#include "tensor/element.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

constexpr int64_t kThreshold = 1000;  // elements; beyond, only the edges are printed
constexpr int64_t kEdge = 3;          // items at each end of an elided dimension
constexpr size_t kLineWidth = 80;

/// Value of the element at `data` as a double, for the number format.
double number_at(const std::byte* data, DType dtype) {
  return visit_element(dtype, [&](auto e) {
    using E = decltype(e);
    return static_cast<double>(E::load(*reinterpret_cast<const typename E::Stored*>(data)));
  });
}

int64_t integer_at(const std::byte* data, DType dtype) {
  return visit_element(dtype, [&](auto e) {
    using E = decltype(e);
    return cast_value<int64_t>(E::load(*reinterpret_cast<const typename E::Stored*>(data)));
  });
}

class Printer {
 public:
  explicit Printer(const StridedImpl& tensor) : tensor_(tensor), elide_(tensor.element_count() > kThreshold) {
    if (tensor.dtype() == DType::boolean || !stax::is_floating_point(tensor.dtype())) {
      style_ = Style::plain;
    } else {
      choose_style();
    }
    visit(0, tensor.data(), [&](const std::byte* at) { width_ = std::max(width_, element(at).size()); });
  }

  std::string text() { return nested(0, tensor_.data(), 1); }

 private:
  enum class Style : uint8_t { plain, whole, fixed, scientific };

  /// Fixed with four decimals unless the magnitudes lie too far apart; whole numbers as "3."
  void choose_style() {
    double smallest = INFINITY, largest = 0;
    bool whole = true;
    visit(0, tensor_.data(), [&](const std::byte* at) {
      const double v = std::abs(number_at(at, tensor_.dtype()));
      if (!std::isfinite(v)) return;
      whole = whole && v == std::floor(v);
      if (v != 0) smallest = std::min(smallest, v);
      largest = std::max(largest, v);
    });
    const bool far = largest > 0 && (largest / smallest > 1000 || largest > 1e8);
    style_ = whole ? (far && largest > 1e8 ? Style::scientific : Style::whole)
                   : (far || (smallest < 1e-4) ? Style::scientific : Style::fixed);
  }

  std::string element(const std::byte* at) const {
    if (tensor_.dtype() == DType::boolean) return number_at(at, DType::boolean) != 0 ? "True" : "False";
    if (style_ == Style::plain) return fmt::format("{}", integer_at(at, tensor_.dtype()));
    const double v = number_at(at, tensor_.dtype());
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    switch (style_) {
      case Style::whole:
        return fmt::format("{:.0f}.", v);
      case Style::scientific:
        return fmt::format("{:.4e}", v);
      case Style::plain:
      case Style::fixed:
        break;
    }
    return fmt::format("{:.4f}", v);
  }

  bool elided(int64_t dim) const { return elide_ && tensor_.size(dim) > 2 * kEdge; }

  template <class F>
  void visit(int64_t dim, const std::byte* at, const F& f) const {
    if (dim == tensor_.dim()) {
      f(at);
      return;
    }
    for (int64_t i = 0; i < tensor_.size(dim); ++i) {
      if (elided(dim) && i == kEdge) i = tensor_.size(dim) - kEdge;
      visit(dim + 1, at + i * tensor_.stride(dim) * itemsize(tensor_.dtype()), f);
    }
  }

  std::string nested(int64_t dim, const std::byte* at, size_t indent) const {
    if (dim == tensor_.dim()) return fmt::format("{:>{}}", element(at), dim == 0 ? 0 : width_);
    const bool innermost = dim == tensor_.dim() - 1;
    const size_t per_line =
        std::max<size_t>(1, (kLineWidth - std::min(kLineWidth - 1, indent)) / (width_ + 2));
    std::string out = "[";
    size_t written = 0;
    for (int64_t i = 0; i < tensor_.size(dim); ++i) {
      if (i > 0) out += innermost ? line_break(written, per_line, indent) : separator(dim, indent);
      if (elided(dim) && i == kEdge) {
        i = tensor_.size(dim) - kEdge;
        out += "..." + (innermost ? line_break(++written, per_line, indent) : separator(dim, indent));
      }
      out += nested(dim + 1, at + i * tensor_.stride(dim) * itemsize(tensor_.dtype()), indent + 1);
      ++written;
    }
    return out + "]";
  }

  static std::string line_break(size_t written, size_t per_line, size_t indent) {
    return written % per_line == 0 ? ",\n" + std::string(indent, ' ') : ", ";
  }
  std::string separator(int64_t dim, size_t indent) const {
    return "," + std::string(static_cast<size_t>(tensor_.dim() - dim - 1), '\n') + std::string(indent, ' ');
  }

  const StridedImpl& tensor_;
  bool elide_;
  Style style_ = Style::plain;
  size_t width_ = 0;
};

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "[undefined tensor]";
  std::string shape;
  for (const SymInt& size : sizes()) shape += (shape.empty() ? "" : ", ") + size.str();
  const std::string type = fmt::format("{}[{}]", name(dtype()), shape);
  if (impl()->is_traced()) return "[traced tensor of " + type + "]";
  const Tensor here = on_host(*this);
  const std::string where = device() == kCPU ? "" : " on " + device().str();
  return Printer(strided(here)).text() + "\n[ " + type + where + " ]";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.str();
}

}  // namespace stax
