#include "loops/body.h"

#include "loops/analysis.h"
#include "support/check.h"
#include "support/hash_mix.h"

namespace stax::loops {

namespace {

size_t hash_of(const Inst& inst) {
  uint64_t h = mix(mix(0, static_cast<uint64_t>(inst.op)), static_cast<uint64_t>(inst.dtype));
  for (ValueId a : inst.args) h = mix(h, static_cast<uint64_t>(a));
  h = mix(h, static_cast<uint64_t>(inst.buffer));
  h = mix(h, inst.index.hash());
  for (ValueId a : inst.indirect) h = mix(h, static_cast<uint64_t>(a));
  h = mix(h, inst.constant.bits);
  return mix(h, static_cast<uint64_t>(inst.number));
}

/// A load sees the stores before it, so two loads with a store of their buffer between them stay apart.
bool stored_since(const Body& body, ValueId first, BufferId buffer) {
  for (size_t i = static_cast<size_t>(first) + 1; i < body.size(); ++i) {
    if (is_store(body[i].op) && body[i].buffer == buffer) return true;
  }
  return false;
}

/// Wraps an integer to the width of `dtype`, so that equal constants have equal bits.
int64_t wrap(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::boolean:
      return value != 0;
    case DType::uint8:
      return static_cast<uint8_t>(value);
    case DType::int8:
      return static_cast<int8_t>(value);
    case DType::int16:
      return static_cast<int16_t>(value);
    case DType::int32:
      return static_cast<int32_t>(value);
    case DType::int64:
    case DType::float16:
    case DType::bfloat16:
    case DType::float32:
    case DType::float64:
      return value;
  }
  return value;
}

/// Towards zero, saturating; 0 for NaN.
int64_t truncate(double value) {
  constexpr double limit = 9223372036854775808.0;
  if (value != value) return 0;
  if (value >= limit) return INT64_MAX;
  if (value < -limit) return INT64_MIN;
  return static_cast<int64_t>(value);
}

}  // namespace

ValueId BodyBuilder::add(Inst inst) {
  const auto id = static_cast<ValueId>(body_.size());
  for (ValueId a : inst.args) {
    STAX_ASSERT(a >= 0 && a < id, "operand v{} of {} is not defined before it", a, info(inst.op).name);
  }
  for (ValueId a : inst.indirect) {
    STAX_ASSERT(a >= 0 && a < id, "indirect index v{} of {} is not defined before it", a, info(inst.op).name);
  }
  if (!is_store(inst.op)) {
    const size_t h = hash_of(inst);
    auto [first, last] = interned_.equal_range(h);
    for (; first != last; ++first) {
      const ValueId old = first->second;
      if (!(body_[old] == inst)) continue;
      if (inst.op == OpCode::load && stored_since(body_, old, inst.buffer)) continue;
      return old;
    }
    interned_.emplace(h, id);
  }
  body_.push_back(std::move(inst));
  return id;
}

// The double stays as it is: it is rounded to the dtype where it is used, and printers show the number that
// was meant.
ValueId BodyBuilder::constant(DType dtype, double value) {
  dtype = compute_dtype(dtype);
  if (!is_floating_point(dtype)) {
    return int_constant(dtype, dtype == DType::boolean ? value != 0 : truncate(value));
  }
  return add({.op = OpCode::constant, .dtype = dtype, .constant = Constant::of(value)});
}

ValueId BodyBuilder::int_constant(DType dtype, int64_t value) {
  dtype = compute_dtype(dtype);
  if (is_floating_point(dtype)) return constant(dtype, static_cast<double>(value));
  return add({.op = OpCode::constant, .dtype = dtype, .constant = Constant::of(wrap(dtype, value))});
}

ValueId BodyBuilder::load(BufferId buffer, DType dtype, Expr index, std::vector<ValueId> indirect,
                          ValueId mask) {
  Inst inst{.op = OpCode::load, .dtype = compute_dtype(dtype)};
  if (mask >= 0) inst.args.push_back(mask);
  inst.buffer = buffer;
  inst.index = index;
  inst.indirect = std::move(indirect);
  return add(std::move(inst));
}

ValueId BodyBuilder::index_value(Expr value, std::vector<ValueId> indirect) {
  Inst inst{.op = OpCode::index_value, .dtype = DType::int64};
  inst.index = value;
  inst.indirect = std::move(indirect);
  return add(std::move(inst));
}

ValueId BodyBuilder::unary(OpCode op, ValueId a) {
  return add({.op = op, .dtype = is_predicate(op) ? DType::boolean : dtype(a), .args = {a}});
}

ValueId BodyBuilder::binary(OpCode op, ValueId a, ValueId b) {
  STAX_ASSERT(dtype(a) == dtype(b), "operands of {} have dtypes {} and {}", info(op).name, name(dtype(a)),
              name(dtype(b)));
  return add({.op = op, .dtype = is_predicate(op) ? DType::boolean : dtype(a), .args = {a, b}});
}

ValueId BodyBuilder::where(ValueId condition, ValueId a, ValueId b) {
  STAX_ASSERT(dtype(condition) == DType::boolean, "the condition of where has dtype {}, not bool",
              name(dtype(condition)));
  STAX_ASSERT(dtype(a) == dtype(b), "operands of where have dtypes {} and {}", name(dtype(a)),
              name(dtype(b)));
  return add({.op = OpCode::where, .dtype = dtype(a), .args = {condition, a, b}});
}

ValueId BodyBuilder::cast(ValueId a, DType target) {
  const bool rounds = is_half(target);
  if (dtype(a) != compute_dtype(target)) {
    a = add({.op = OpCode::cast, .dtype = compute_dtype(target), .args = {a}});
  }
  if (!rounds) return a;
  const OpCode rounding = target == DType::float16 ? OpCode::to_float16 : OpCode::to_bfloat16;
  return body_[a].op == rounding ? a : unary(rounding, a);
}

ValueId BodyBuilder::reduce(OpCode op, DType dtype, std::vector<ValueId> args) {
  return add({.op = op, .dtype = dtype, .args = std::move(args)});
}

ValueId BodyBuilder::result(ValueId reduction, int32_t number, DType dtype) {
  if (number == 0) return reduction;
  return add({.op = OpCode::result, .dtype = dtype, .args = {reduction}, .number = number});
}

void BodyBuilder::store(BufferId buffer, DType stored, Expr index, ValueId value,
                        std::vector<ValueId> indirect) {
  STAX_ASSERT(dtype(value) == compute_dtype(stored), "a {} value is stored into a {} buffer; cast it first",
              name(dtype(value)), name(stored));
  Inst inst{.op = OpCode::store, .dtype = dtype(value), .args = {value}};
  inst.buffer = buffer;
  inst.index = index;
  inst.indirect = std::move(indirect);
  add(std::move(inst));
}

std::vector<ValueId> rebuild(const Body& from, BodyBuilder& to, const Rebuild& rebuilt) {
  std::vector<ValueId> moved;
  moved.reserve(from.size());
  for (Inst inst : from) {
    for (ValueId& a : inst.args) a = moved[a];
    for (ValueId& a : inst.indirect) a = moved[a];
    moved.push_back(rebuilt(to, static_cast<ValueId>(moved.size()), std::move(inst), moved));
  }
  return moved;
}

std::vector<ValueId> copy_values(const Body& from, std::span<const ValueId> roots, BodyBuilder& to,
                                 const SymbolMap& map, ValueId mask) {
  // t0, t1, ... belong to their instruction, whatever the map says about them.
  const SymbolMap outer = [&](Symbol s) -> std::optional<Expr> {
    return s.kind == SymbolKind::indirect || !map ? std::nullopt : map(s);
  };
  std::vector<ValueId> copied(from.size(), -1);
  for (const ValueId v : needed_by(from, roots)) {
    Inst inst = from[v];
    const ValueId own_mask = mask_of(inst);
    for (ValueId& a : inst.args) a = copied[a];
    for (ValueId& a : inst.indirect) a = copied[a];
    inst.index = substitute(inst.index, outer);
    if (mask >= 0 && takes_mask(inst)) {
      if (own_mask < 0) {
        inst.args.push_back(mask);
      } else if (inst.args.back() != mask) {
        inst.args.back() = to.binary(OpCode::bitwise_and, inst.args.back(), mask);
      }
    }
    copied[v] = to.add(std::move(inst));
  }
  std::vector<ValueId> out;
  for (ValueId r : roots) out.push_back(copied[r]);
  return out;
}

}  // namespace stax::loops
