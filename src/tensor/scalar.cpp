#include "stax/scalar.h"

#include <fmt/core.h>

#include <cmath>
#include <ostream>

#include "tensor/tensor_impl.h"

namespace stax {

Scalar Scalar::read() const {
  return traced_->concrete(std::source_location::current()).item(std::source_location::current());
}

SymInt Scalar::toSymInt() const {
  return traced_ ? traced_->sym_item(std::source_location::current()) : integer_;
}

std::string Scalar::str() const {
  if (traced_) return "<value of the trace>";
  switch (kind_) {
    case Kind::boolean:
      return integer_ != 0 ? "True" : "False";
    case Kind::integer:
      return integer_.str();
    case Kind::floating:
      break;
  }
  if (!std::isfinite(floating_)) return std::isnan(floating_) ? "nan" : floating_ < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", floating_);  // the shortest text that reads back as the same number
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Scalar& value) {
  return out << value.str();
}

}  // namespace stax
