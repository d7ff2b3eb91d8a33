#include "codegen/kernel/online_softmax.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace stax::codegen {
namespace {

using loops::Body;
using loops::BodyBuilder;
using loops::Inst;
using loops::OpCode;
using loops::ValueId;

/// A sum that goes together with a maximum.
struct Pair {
  ValueId sum = -1, maximum = -1;
  bool guarded = false;  // the exponents are taken from 0 where the maximum is infinite
};

bool is_zero(const Inst& inst) {
  return inst.op == OpCode::constant && inst.constant.as_double() == 0;
}

/// The maximum that `shift` is, or is a guarded form of.
std::optional<Pair> maximum_behind(const Body& body, ValueId shift) {
  if (body[shift].op == OpCode::reduce_max) return Pair{-1, shift, false};
  if (body[shift].op != OpCode::where) return std::nullopt;
  const ValueId condition = body[shift].args[0], yes = body[shift].args[1], no = body[shift].args[2];
  const bool guards = body[no].op == OpCode::reduce_max && is_zero(body[yes]) &&
                      body[condition].op == OpCode::isinf && body[condition].args[0] == no;
  if (!guards) return std::nullopt;
  return Pair{-1, no, true};
}

std::optional<Pair> find_pair(const Body& body, ValueId sum) {
  if (body[sum].op != OpCode::reduce_sum) return std::nullopt;
  const Inst& exponential = body[body[sum].args[0]];
  if (exponential.op != OpCode::exp) return std::nullopt;
  const Inst& difference = body[exponential.args[0]];
  if (difference.op != OpCode::sub) return std::nullopt;
  std::optional<Pair> pair = maximum_behind(body, difference.args[1]);
  if (!pair || body[pair->maximum].args[0] != difference.args[0]) return std::nullopt;
  pair->sum = sum;
  return pair;
}

/// reduce_softmax leaves 0 where the maximum is -inf; the sum that it replaces was NaN there, or, of guarded
/// exponents, exp of the infinite maximum.
ValueId sum_as_it_was(BodyBuilder& builder, const Pair& pair, ValueId m, ValueId sum) {
  if (pair.guarded) return builder.where(builder.unary(OpCode::isinf, m), builder.unary(OpCode::exp, m), sum);
  const DType dtype = builder.dtype(m);
  const ValueId none = builder.constant(dtype, -std::numeric_limits<double>::infinity());
  const ValueId undefined = builder.constant(dtype, std::numeric_limits<double>::quiet_NaN());
  return builder.where(builder.binary(OpCode::eq, m, none), undefined, sum);
}

}  // namespace

void merge_softmax(FlatGroup& flat) {
  std::map<ValueId, Pair> of_sum;
  std::map<ValueId, ValueId> of_maximum;
  for (size_t i = 0; i < flat.body.size(); ++i) {
    const std::optional<Pair> pair = find_pair(flat.body, static_cast<ValueId>(i));
    if (!pair) continue;
    of_sum.emplace(pair->sum, *pair);
    of_maximum.emplace(pair->maximum, pair->sum);
  }
  if (of_sum.empty()) return;
  BodyBuilder builder;
  std::vector<ValueId> moved(flat.body.size(), -1);
  std::vector<int32_t> node;
  for (size_t i = 0; i < flat.body.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    Inst inst = flat.body[i];
    for (ValueId& a : inst.args) a = moved[a];
    for (ValueId& a : inst.indirect) a = moved[a];
    if (of_maximum.contains(id)) {
      moved[i] = builder.reduce(OpCode::reduce_softmax, inst.dtype, inst.args);
    } else if (const auto sum = of_sum.find(id); sum != of_sum.end()) {
      const ValueId m = moved[sum->second.maximum];
      moved[i] = sum_as_it_was(builder, sum->second, m, builder.result(m, 1, inst.dtype));
    } else {
      moved[i] = builder.add(std::move(inst));
    }
    node.resize(builder.body().size(), -1);
    node[static_cast<size_t>(moved[i])] = std::max(node[static_cast<size_t>(moved[i])], flat.node[i]);
  }
  flat.body = builder.take();
  flat.node = std::move(node);
}

}  // namespace stax::codegen
