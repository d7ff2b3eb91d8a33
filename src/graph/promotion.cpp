// PyTorch's dtype promotion.
#include <array>

#include "graph/op.h"

namespace stax::graph {
namespace {

enum Category { kBoolean = 0, kIntegral = 1, kFloating = 2 };

Category category(DType dtype) {
  return is_floating_point(dtype) ? kFloating : dtype == DType::boolean ? kBoolean : kIntegral;
}

}  // namespace

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  const DType low = std::min(a, b), high = std::max(a, b);
  if (low == DType::uint8)
    return high == DType::int8 ? DType::int16 : high;  // the smallest signed type that holds both
  if (low == DType::float16 && high == DType::bfloat16) return DType::float32;
  return high;
}

namespace {

// Operands fall in three classes; a lower class decides only by a higher category.
struct Classes {
  bool has[3] = {false, false, false};
  DType dtype[3] = {DType::boolean, DType::boolean, DType::boolean};
  void add(int which, DType d) {
    dtype[which] = has[which] ? promote_types(dtype[which], d) : d;
    has[which] = true;
  }
};

DType default_of(Number::Kind kind) {
  constexpr std::array<DType, 3> dtypes = {DType::boolean, DType::int64, DType::float32};
  return dtypes[static_cast<size_t>(kind)];
}

}  // namespace

template <>
DType result_type<TensorMeta>(std::span<const Argument<TensorMeta>> args) {
  Classes classes;
  const auto add_tensor = [&](const TensorMeta& t) { classes.add(t.dim() > 0 ? 0 : 1, t.dtype); };
  for (const auto& a : args) {
    if (a.is_tensor()) add_tensor(a.tensor());
    if (a.is_number()) classes.add(2, default_of(a.number().kind));
    if (const auto* list = std::get_if<Argument<TensorMeta>::Tensors>(&a.value)) {
      for (const auto& t : *list) {
        if (t) add_tensor(*t);
      }
    }
  }
  DType result = DType::boolean;
  bool any = false;
  for (int k = 0; k < 3; ++k) {
    if (!classes.has[k]) continue;
    if (!any || category(classes.dtype[k]) > category(result)) result = classes.dtype[k];
    any = true;
  }
  return result;
}

}  // namespace stax::graph
