#include "codegen/kernel/half_results.h"

#include <algorithm>

namespace stax::codegen {
namespace {

using loops::Body;
using loops::BodyBuilder;
using loops::Inst;
using loops::OpCode;
using loops::ValueId;

/// What an instruction makes of relative errors and of signs.
enum : uint8_t {
  kPasses = 1,  // its result is off, relatively, by no more than the sum of what its operands are off by
  kPassesUnsigned = 2,  // the same where no operand is negative
  kUnsigned = 4,        // never negative, whatever the operands are
  kKeepsSign = 8,       // not negative where the operands are not
};

struct ErrorRow {
  OpCode op;
  uint8_t properties;
};
/// Other instructions have none of them. tanh, erf, atan and asinh: |x f'(x) / f(x)| <= 1 everywhere.
constexpr ErrorRow kErrors[] = {
    {OpCode::abs, kPasses | kUnsigned},
    {OpCode::neg, kPasses},
    {OpCode::reciprocal, kPasses | kKeepsSign},
    {OpCode::relu, kPasses | kUnsigned},
    {OpCode::sqrt, kPasses | kUnsigned},
    {OpCode::rsqrt, kPasses | kUnsigned},
    {OpCode::exp, kUnsigned},
    {OpCode::exp2, kUnsigned},
    {OpCode::log1p, kPassesUnsigned | kKeepsSign},
    {OpCode::atan, kPasses},
    {OpCode::tanh, kPasses | kKeepsSign},
    {OpCode::asinh, kPasses},
    {OpCode::sigmoid, kUnsigned},
    {OpCode::erf, kPasses | kKeepsSign},
    {OpCode::erfc, kUnsigned},
    {OpCode::to_float16, kKeepsSign},
    {OpCode::to_bfloat16, kKeepsSign},
    {OpCode::add, kPassesUnsigned | kKeepsSign},
    {OpCode::mul, kPasses | kKeepsSign},
    {OpCode::div, kPasses | kKeepsSign},
    {OpCode::div_relaxed, kPasses | kKeepsSign},
    {OpCode::maximum, kPasses | kKeepsSign},
    {OpCode::minimum, kPasses | kKeepsSign},
    {OpCode::fmax, kPasses | kKeepsSign},
    {OpCode::fmin, kPasses | kKeepsSign},
    {OpCode::where, kPasses},
    {OpCode::cast, kPasses | kKeepsSign},
    {OpCode::reduce_sum, kPassesUnsigned | kKeepsSign},
    {OpCode::reduce_max, kPasses | kKeepsSign},
    {OpCode::reduce_min, kPasses | kKeepsSign},
};

bool has(OpCode op, uint8_t property) {
  const auto* const row = std::ranges::find(kErrors, op, &ErrorRow::op);
  return row != std::end(kErrors) && (row->properties & property) != 0;
}

bool rounds_to_half(OpCode op) {
  return op == OpCode::to_float16 || op == OpCode::to_bfloat16;
}

/// Values that are not negative, or NaN.
std::vector<bool> unsigned_values(const Body& body) {
  std::vector<bool> known(body.size());
  for (size_t i = 0; i < body.size(); ++i) {
    const Inst& inst = body[i];
    const auto operands = [&](size_t first) {
      return std::all_of(inst.args.begin() + static_cast<int64_t>(first), inst.args.end(),
                         [&](ValueId a) { return known[a] && is_floating_point(body[a].dtype); });
    };
    if (inst.op == OpCode::constant)
      known[i] = is_floating_point(inst.dtype) && inst.constant.as_double() >= 0;
    else if (inst.op == OpCode::where)
      known[i] = operands(1);
    else if (inst.op == OpCode::mul && inst.args[0] == inst.args[1])
      known[i] = is_floating_point(inst.dtype);
    else
      known[i] = is_floating_point(inst.dtype) &&
                 (has(inst.op, kUnsigned) || (has(inst.op, kKeepsSign) && operands(0)));
  }
  return known;
}

/// Which values are used only where a relative error does no harm.
std::vector<bool> relaxed_values(const Body& body, const loops::Program& program) {
  const std::vector<bool> positive = unsigned_values(body);
  std::vector<bool> used(body.size()), strict(body.size());
  const auto use = [&](ValueId a, bool harmless) {
    used[a] = true;
    strict[a] = strict[a] || !harmless;
  };
  for (size_t i = body.size(); i-- > 0;) {
    const Inst& inst = body[i];
    const bool root = is_store(inst.op) || inst.op == OpCode::check_index;
    if (!used[i] && !root) continue;
    for (ValueId a : inst.indirect) use(a, false);
    for (size_t k = 0; k < inst.args.size(); ++k) {
      const ValueId a = inst.args[k];
      bool harmless = false;
      if (inst.op == OpCode::store)
        harmless = k == 0 && is_half(program.buffers[inst.buffer].dtype);
      else if (rounds_to_half(inst.op))
        harmless = true;
      else if (inst.op == OpCode::where && k == 0)
        harmless = false;
      else if (has(inst.op, kPasses))
        harmless = !strict[i] && is_floating_point(inst.dtype);
      else if (has(inst.op, kPassesUnsigned))
        harmless = !strict[i] && std::ranges::all_of(inst.args, [&](ValueId b) { return positive[b]; });
      use(a, harmless);
    }
  }
  std::vector<bool> relaxed(body.size());
  for (size_t i = 0; i < body.size(); ++i)
    relaxed[i] = used[i] && !strict[i] && body[i].dtype == DType::float32;
  return relaxed;
}

bool is_one(const Inst& inst) {
  return inst.op == OpCode::constant && inst.constant.as_double() == 1;
}

/// The operand of 1 + f(z) that is f(z) for f = erf or tanh, read by nothing else; -1: the sum is none of
/// these.
ValueId centred_function(const Body& body, const std::vector<int32_t>& uses, const Inst& sum) {
  if (sum.op != OpCode::add) return -1;
  for (size_t k = 0; k < 2; ++k) {
    const ValueId f = sum.args[k];
    const bool known = body[f].op == OpCode::erf || body[f].op == OpCode::tanh;
    if (known && uses[f] == 1 && is_one(body[sum.args[1 - k]])) return f;
  }
  return -1;
}

ValueId without_cancellation(BodyBuilder& builder, OpCode function, ValueId z) {
  if (function == OpCode::erf) return builder.unary(OpCode::erfc, builder.unary(OpCode::neg, z));
  const ValueId two = builder.constant(builder.dtype(z), 2.0);
  const ValueId half = builder.unary(OpCode::sigmoid, builder.binary(OpCode::mul, z, two));
  return builder.binary(OpCode::mul, half, two);
}

void rewrite_sums(FlatGroup& flat, const std::vector<bool>& relaxed) {
  std::vector<int32_t> uses(flat.body.size());
  for (const Inst& inst : flat.body) {
    for (ValueId a : inst.args) ++uses[a];
    for (ValueId a : inst.indirect) ++uses[a];
  }
  const Body& body = flat.body;  // stays until the new one is whole
  rebuild(flat, [&](BodyBuilder& builder, ValueId id, Inst inst, const std::vector<ValueId>& moved) {
    const ValueId f = relaxed[id] ? centred_function(body, uses, body[id]) : -1;
    return f >= 0 ? without_cancellation(builder, body[f].op, moved[body[f].args[0]])
                  : builder.add(std::move(inst));
  });
}

}  // namespace

void relax_half_results(FlatGroup& flat, const loops::Program& program) {
  const std::vector<bool> relaxed = relaxed_values(flat.body, program);
  if (std::ranges::find(relaxed, true) != relaxed.end()) rewrite_sums(flat, relaxed);
  flat.relaxed = relaxed_values(flat.body, program);
}

}  // namespace stax::codegen
