#include "codegen/kernel/online_softmax.h"

#include <limits>
#include <map>
#include <optional>

#include "loops/exponentials.h"

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

std::optional<Pair> find_pair(const Body& body, ValueId sum) {
  if (body[sum].op != OpCode::reduce_sum) return std::nullopt;
  const auto exponential = loops::shifted_exponential(body, body[sum].args[0]);
  if (!exponential) return std::nullopt;
  const Inst& maximum = body[exponential->maximum];
  if (maximum.op != OpCode::reduce_max || maximum.args[0] != exponential->x) return std::nullopt;
  return Pair{sum, exponential->maximum, exponential->guarded};
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
  rebuild(flat, [&](BodyBuilder& builder, ValueId id, Inst inst, const std::vector<ValueId>& moved) {
    if (of_maximum.contains(id)) return builder.reduce(OpCode::reduce_softmax, inst.dtype, inst.args);
    const auto sum = of_sum.find(id);
    if (sum == of_sum.end()) return builder.add(std::move(inst));
    const ValueId m = moved[sum->second.maximum];
    return sum_as_it_was(builder, sum->second, m, builder.result(m, 1, inst.dtype));
  });
}

}  // namespace stax::codegen
