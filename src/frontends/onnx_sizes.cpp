// Operators of ONNX on tensors whose elements are sizes: what models compute shapes with. Elements stay
// symbolic, so one traced program serves all sizes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "capture/functional_trace.h"
#include "frontends/onnx_ops.h"
#include "stax/factories.h"

namespace stax::onnx::ops {
namespace {

using Numbers = std::vector<SizeNumber>;
using Sizes = std::optional<SizeTensor>;
using Results = std::optional<std::vector<SizeTensor>>;

constexpr size_t kMostElements = 4096;
constexpr int64_t kLargestUnder = int64_t{1} << 20;

bool is_supported(DType dtype) {
  return dtype == DType::int32 || dtype == DType::int64 || dtype == DType::boolean ||
         dtype == DType::float32 || dtype == DType::float64;
}

int64_t count_of(const Ints& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

/// What is proven of a condition in the trace, without a guard.
std::optional<bool> proven(const Condition& c) {
  const SymBool asked(static_cast<detail::SymRelation>(c.relation), to_sym_int(c.left), to_sym_int(c.right));
  if (c.left.is_constant() && c.right.is_constant())
    return holds(c.relation, c.left.value(), c.right.value());
  auto* trace = dynamic_cast<capture::FunctionalTrace*>(capture::current_trace());
  if (trace == nullptr) return bool(asked);
  if (trace->env().proves(c)) return true;
  return trace->env().proves(c.negated()) ? std::optional(false) : std::nullopt;
}

/// 1 or 0; where it is not proven, an expression that is either. Never a guard.
Expr truth(const Condition& c) {
  if (const std::optional<bool> answer = proven(c)) return int64_t{*answer};
  const SymBool asked(static_cast<detail::SymRelation>(c.relation), to_sym_int(c.left), to_sym_int(c.right));
  return to_expr(sym_ite(asked, 1, 0));
}

/// A floating number as over / under; nothing where it has too many binary digits.
std::optional<SizeNumber> exact(double value) {
  for (int64_t under = 1; under <= kLargestUnder; under *= 2) {
    const double over = value * static_cast<double>(under);
    if (!(std::abs(over) < 0x1p53)) return std::nullopt;
    if (over == std::floor(over)) return SizeNumber{static_cast<int64_t>(over), under};
  }
  return std::nullopt;
}

/// An input as elements; nothing where it depends on data, is large, or of a dtype that sizes do not have.
Sizes operand(const NodeCall& call, size_t input) {
  const Value& value = call.values().at(input);
  if (value.sizes) return *value.sizes;
  if (!value.known || !is_supported(value.tensor.dtype()) ||
      value.tensor.numel() > static_cast<int64_t>(kMostElements)) {
    return std::nullopt;
  }
  SizeTensor result{value.tensor.dtype(), value.tensor.sizes().values(), {}};
  if (!is_floating_point(result.dtype)) {
    for (const int64_t v : call.ints(input)) result.elements.push_back({v});
    return result;
  }
  for (const double v : call.numbers(input)) {
    const std::optional<SizeNumber> number = exact(v);
    if (!number) return std::nullopt;
    result.elements.push_back(*number);
  }
  return result;
}

// ---- what moves elements: found out by moving their numbers ----

struct Mover {
  std::string_view name;
  uint32_t data;  // bit k: input k has elements that go to the result
};
constexpr Mover kMovers[] = {
    {"Concat", ~0u}, {"Expand", 1},   {"Flatten", 1},   {"Gather", 1}, {"GatherElements", 1},
    {"GatherND", 1}, {"Reshape", 1},  {"Identity", 1},  {"Slice", 1},  {"ScatterElements", 5},
    {"Split", 1},    {"Squeeze", 1},  {"ScatterND", 5}, {"Tile", 1},   {"Transpose", 1},
    {"Where", 6},    {"Unsqueeze", 1}};

Results move(const OpRow& row, const NodeCall& call, uint32_t data) {
  const capture::TraceScope suspend(nullptr);
  if (call.text("reduction", "none") != "none") return std::nullopt;
  std::vector<Value> inputs = call.values();
  Numbers all;
  DType dtype = DType::int64;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k]) continue;
    if ((data >> std::min<size_t>(k, 31) & 1) == 0) {
      if (!inputs[k].known) return std::nullopt;
      continue;
    }
    const Sizes part = operand(call, k);
    if (!part) return std::nullopt;
    const auto first = static_cast<int64_t>(all.size()), count = static_cast<int64_t>(part->elements.size());
    all.insert(all.end(), part->elements.begin(), part->elements.end());
    inputs[k] = {constant(range(first, first + count), part->shape), true, nullptr};
    dtype = part->dtype;
  }
  std::vector<SizeTensor> results;
  for (Tensor& places : row.run(NodeCall(call.node(), call.opset(), std::move(inputs)))) {
    if (places.numel() > static_cast<int64_t>(kMostElements)) return std::nullopt;
    SizeTensor result{dtype, places.sizes().values(), {}};
    for (const int64_t k : NodeCall(call.node(), call.opset(), {{places, true, nullptr}}).ints(0))
      result.elements.push_back(all.at(static_cast<size_t>(k)));
    results.push_back(std::move(result));
  }
  return results;
}

// ---- elementwise ----

/// For each element of a tensor of `shape`, the element of one of `from` that is broadcast there.
std::vector<size_t> places(const Ints& from, const Ints& shape) {
  std::vector<size_t> result;
  for (int64_t k = 0; k < count_of(shape); ++k) {
    int64_t rest = k, at = 0, stride = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      const size_t axis = shape.size() - 1 - d;
      const int64_t index = rest % shape[axis];
      rest /= shape[axis];
      if (d >= from.size()) continue;
      const int64_t length = from[from.size() - 1 - d];
      if (length != 1) at += index * stride;
      stride *= length;
    }
    result.push_back(static_cast<size_t>(at));
  }
  return result;
}

std::optional<Ints> broadcast(const Ints& a, const Ints& b) {
  Ints shape = a.size() >= b.size() ? a : b;
  const Ints& other = a.size() >= b.size() ? b : a;
  for (size_t d = 0; d < other.size(); ++d) {
    int64_t& length = shape[shape.size() - 1 - d];
    const int64_t with = other[other.size() - 1 - d];
    if (length == 1) {
      length = with;
    } else if (with != 1 && with != length) {
      return std::nullopt;
    }
  }
  return shape;
}

using Number = std::optional<SizeNumber>;

/// With one denominator, which both products stay below.
bool same_under(SizeNumber& a, SizeNumber& b) {
  if (a.under == b.under) return true;
  const int64_t under = std::lcm(a.under, b.under);
  if (under > kLargestUnder) return false;
  for (SizeNumber* n : {&a, &b}) *n = {n->over * Expr(under / n->under), under};
  return true;
}

Expr truncated(Expr a, Expr b) {
  return to_expr(to_sym_int(a) / to_sym_int(b));
}

struct Pair {
  SizeNumber a, b;
  bool floats = false;
  bool fmod = false;
};

Number add(const Pair& p) {
  return SizeNumber{p.a.over + p.b.over, p.a.under};
}
Number subtract(const Pair& p) {
  return SizeNumber{p.a.over - p.b.over, p.a.under};
}
Number multiply(const Pair& p) {
  const int64_t under = p.a.under * p.b.under;  // of the same number each: it is a square
  if (under > kLargestUnder) return std::nullopt;
  return SizeNumber{p.a.over * p.b.over, under};
}
Number divide(const Pair& p) {
  if (p.b.over.is(0)) return std::nullopt;
  if (!p.floats) return SizeNumber{truncated(p.a.over, p.b.over)};
  const auto under = p.b.over.constant();  // the denominators cancel
  if (!under || std::abs(*under) > kLargestUnder) return std::nullopt;
  return SizeNumber{*under < 0 ? -p.a.over : p.a.over, std::abs(*under)};
}
Number modulo(const Pair& p) {
  if (p.b.over.is(0) || p.floats) return std::nullopt;
  if (p.fmod) return SizeNumber{p.a.over - truncated(p.a.over, p.b.over) * p.b.over};
  return SizeNumber{mod(p.a.over, p.b.over)};
}
Number smaller(const Pair& p) {
  return SizeNumber{min(p.a.over, p.b.over), p.a.under};
}
Number larger(const Pair& p) {
  return SizeNumber{max(p.a.over, p.b.over), p.a.under};
}
template <Condition (*relation)(Expr, Expr)>
Number compare(const Pair& p) {
  return SizeNumber{truth(relation(p.a.over, p.b.over))};
}
Number all_hold(const Pair& p) {
  return SizeNumber{p.a.over * p.b.over};
}
Number any_holds(const Pair& p) {
  return SizeNumber{max(p.a.over, p.b.over)};
}

struct BinaryRow {
  std::string_view name;
  Number (*run)(const Pair&);
  bool truth = false;
};
constexpr BinaryRow kBinary[] = {{"Add", add},
                                 {"Sub", subtract},
                                 {"Mul", multiply},
                                 {"Div", divide},
                                 {"Mod", modulo},
                                 {"Min", smaller},
                                 {"Max", larger},
                                 {"Sum", add},
                                 {"Equal", compare<eq>, true},
                                 {"Less", compare<lt>, true},
                                 {"LessOrEqual", compare<le>, true},
                                 {"Greater", compare<gt>, true},
                                 {"GreaterOrEqual", compare<ge>, true},
                                 {"And", all_hold, true},
                                 {"Or", any_holds, true}};

Sizes combine(const BinaryRow& row, const SizeTensor& a, const SizeTensor& b, bool fmod) {
  const std::optional<Ints> shape = broadcast(a.shape, b.shape);
  if (!shape || count_of(*shape) > static_cast<int64_t>(kMostElements)) return std::nullopt;
  SizeTensor result{row.truth ? DType::boolean : a.dtype, *shape, {}};
  const std::vector<size_t> from_a = places(a.shape, *shape), from_b = places(b.shape, *shape);
  for (size_t k = 0; k < from_a.size(); ++k) {
    Pair pair{a.elements[from_a[k]], b.elements[from_b[k]], is_floating_point(a.dtype), fmod};
    if (!same_under(pair.a, pair.b)) return std::nullopt;
    const Number number = row.run(pair);
    if (!number) return std::nullopt;
    result.elements.push_back(*number);
  }
  return result;
}

/// Any number of operands, from the left.
Sizes fold(const BinaryRow& row, const NodeCall& call) {
  if (call.opset() < 7) return std::nullopt;  // operands were placed by an attribute
  Sizes result = operand(call, 0);
  for (size_t k = 1; result && k < call.input_count(); ++k) {
    const Sizes next = operand(call, k);
    result = next ? combine(row, *result, *next, call.integer("fmod", 0) != 0) : std::nullopt;
  }
  return result;
}

Sizes map(const NodeCall& call, DType dtype, const std::function<SizeNumber(const SizeNumber&)>& f) {
  Sizes result = operand(call, 0);
  if (!result) return result;
  result->dtype = dtype;
  for (SizeNumber& number : result->elements) number = f(number);
  return result;
}

Sizes floor_of(const NodeCall& call) {
  return map(call, call.dtype(0),
             [](const SizeNumber& n) { return SizeNumber{floor_div(n.over, Expr(n.under))}; });
}
Sizes ceil_of(const NodeCall& call) {
  return map(call, call.dtype(0),
             [](const SizeNumber& n) { return SizeNumber{ceil_div(n.over, Expr(n.under))}; });
}
Sizes negative(const NodeCall& call) {
  return map(call, call.dtype(0), [](const SizeNumber& n) { return SizeNumber{-n.over, n.under}; });
}
Sizes absolute(const NodeCall& call) {
  return map(call, call.dtype(0), [](const SizeNumber& n) {
    return SizeNumber{max(n.over, -n.over), n.under};
  });
}
Sizes inverse(const NodeCall& call) {
  return map(call, DType::boolean, [](const SizeNumber& n) { return SizeNumber{Expr(1) - n.over}; });
}

Sizes cast(const NodeCall& call) {
  const DType to = element_type(call, call.integer("to", 0));
  if (!is_supported(to)) return std::nullopt;
  return map(call, to, [&](const SizeNumber& n) {
    if (to == DType::boolean) return SizeNumber{truth(ne(n.over, 0))};
    if (is_floating_point(to) || n.under == 1) return n;
    return SizeNumber{truncated(n.over, Expr(n.under))};
  });
}

Sizes where(const NodeCall& call) {
  const Sizes condition = operand(call, 0), a = operand(call, 1), b = operand(call, 2);
  if (!condition || !a || !b) return std::nullopt;
  std::optional<Ints> shape = broadcast(a->shape, b->shape);
  if (shape) shape = broadcast(*shape, condition->shape);
  if (!shape || count_of(*shape) > static_cast<int64_t>(kMostElements)) return std::nullopt;
  SizeTensor result{a->dtype, *shape, {}};
  const auto from_c = places(condition->shape, *shape), from_a = places(a->shape, *shape),
             from_b = places(b->shape, *shape);
  for (size_t k = 0; k < from_c.size(); ++k) {
    const Expr holds = condition->elements[from_c[k]].over;
    SizeNumber yes = a->elements[from_a[k]], no = b->elements[from_b[k]];
    if (!same_under(yes, no)) return std::nullopt;
    result.elements.push_back({no.over + holds * (yes.over - no.over), no.under});
  }
  return result;
}

Sizes shape(const NodeCall& call) {
  const auto& sizes = call.values().at(0).sizes;
  const Exprs lengths = sizes ? Exprs(sizes->shape.begin(), sizes->shape.end()) : shape_of(call.in(0));
  const auto rank = static_cast<int64_t>(lengths.size());
  const auto bound = [&](std::string_view name, int64_t otherwise) {
    const int64_t value = call.integer(name, otherwise);
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  const int64_t start = bound("start", 0), end = std::max(start, bound("end", rank));
  SizeTensor result{DType::int64, {end - start}, {}};
  for (int64_t d = start; d < end; ++d) result.elements.push_back({lengths[static_cast<size_t>(d)]});
  return result;
}

Sizes element_count(const NodeCall& call) {
  const auto& sizes = call.values().at(0).sizes;
  if (sizes) return SizeTensor{DType::int64, {}, {{static_cast<int64_t>(sizes->elements.size())}}};
  return SizeTensor{DType::int64, {}, {{product(shape_of(call.in(0)))}}};
}

/// All elements of a list as one.
template <const BinaryRow* row>
Sizes reduce(const NodeCall& call) {
  const Sizes x = operand(call, 0);
  if (!x || x->shape.size() != 1 || x->elements.empty()) return std::nullopt;
  if (const auto axes = call.ints("axes", 1)) {
    if (axes->size() != 1 || ((*axes)[0] != 0 && (*axes)[0] != -1)) return std::nullopt;
  } else if (call.integer("noop_with_empty_axes", 0) != 0) {
    return std::nullopt;
  }
  Sizes result = SizeTensor{x->dtype, {}, {x->elements[0]}};
  for (size_t k = 1; result && k < x->elements.size(); ++k)
    result = combine(*row, *result, {x->dtype, {}, {x->elements[k]}}, false);
  if (result && call.integer("keepdims", 1) != 0) result->shape = {1};
  return result;
}

struct Row {
  std::string_view name;
  Sizes (*run)(const NodeCall&);
};
constexpr Row kSizeRows[] = {{"Shape", shape},
                             {"Size", element_count},
                             {"Floor", floor_of},
                             {"Ceil", ceil_of},
                             {"Neg", negative},
                             {"Abs", absolute},
                             {"Not", inverse},
                             {"Cast", cast},
                             {"Where", where},
                             {"ReduceSum", reduce<&kBinary[0]>},
                             {"ReduceProd", reduce<&kBinary[2]>},
                             {"ReduceMin", reduce<&kBinary[5]>},
                             {"ReduceMax", reduce<&kBinary[6]>}};

template <class Table>
auto find(const Table& table, std::string_view name) -> decltype(&table[0]) {
  const auto found = std::ranges::find(table, name, [](const auto& row) { return row.name; });
  return found == std::end(table) ? nullptr : &*found;
}

}  // namespace

std::optional<std::vector<SizeTensor>> run_on_sizes(const OpRow& op_row, const NodeCall& call) {
  const bool looks_at_shape = op_row.name == "Shape" || op_row.name == "Size";
  if (!looks_at_shape &&
      std::ranges::none_of(call.values(), [](const Value& v) { return v.sizes != nullptr; }))
    return std::nullopt;
  if (const Mover* mover = find(kMovers, op_row.name)) {
    if (Results moved = move(op_row, call, mover->data)) return moved;
  }
  Sizes result;
  if (const BinaryRow* binary = find(kBinary, op_row.name)) result = fold(*binary, call);
  if (const Row* row = find(kSizeRows, op_row.name)) result = row->run(call);
  if (!result) return std::nullopt;
  std::vector<SizeTensor> results;
  results.push_back(std::move(*result));
  return results;
}

Value value_of(SizeTensor sizes) {
  const bool plain =
      std::ranges::all_of(sizes.elements, [](const SizeNumber& n) { return n.over.is_constant(); });
  if (!plain) return {{}, false, std::make_shared<const SizeTensor>(std::move(sizes))};
  const capture::TraceScope suspend(nullptr);
  if (!is_floating_point(sizes.dtype)) {
    Ints values;
    for (const SizeNumber& n : sizes.elements) values.push_back(n.over.value());
    return {constant(values, sizes.shape, sizes.dtype), true, nullptr};
  }
  std::vector<double> values;
  for (const SizeNumber& n : sizes.elements)
    values.push_back(static_cast<double>(n.over.value()) / static_cast<double>(n.under));
  return {op("reshape", {stax::tensor(values, TensorOptions(sizes.dtype)), list(sizes.shape)}), true,
          nullptr};
}

Tensor materialize(const SizeTensor& sizes) {
  std::vector<Tensor> elements;
  for (const SizeNumber& n : sizes.elements) {
    Tensor element = op("full", {list(Ints{1}), n.over}, {{"dtype", sizes.dtype}});
    if (n.under != 1) element = op("div", {element, n.under});
    elements.push_back(std::move(element));
  }
  if (elements.empty()) return constant({}, sizes.shape, sizes.dtype);
  const Tensor flat = elements.size() == 1 ? elements[0] : op("cat", {list(elements), 0});
  return op("reshape", {flat, list(sizes.shape)});
}

bool decide(const NodeCall& call, size_t input) {
  const Value& value = call.values().at(input);
  if (!value.sizes) return call.in(input).item().toBool();
  if (value.sizes->elements.size() != 1) call.refuse("its condition is to have one element");
  return to_sym_int(value.sizes->elements[0].over) != 0;
}

}  // namespace stax::onnx::ops
