// What the files of pointwise operators share.
#pragma once

#include "ops/loop_vocabulary.h"
#include "support/check.h"

namespace stax::ops {

// Bodies that apply one instruction.
#define BODY(instruction) [](const PointwiseArgs& a) { return lowering::instruction(a[0]); }
#define BODY2(instruction) [](const PointwiseArgs& a) { return lowering::instruction(a[0], a[1]); }
// A composite that calls another row with the same arguments.
#define ALIAS(target) [](Builder& b, const VarArgs& a) -> Vars { return {b.call(target, {a[0], a[1]})}; }
#define ALIAS1(target) [](Builder& b, const VarArgs& a) -> Vars { return {b.call(target, {a[0]})}; }

inline bool is_integer(V v) {
  return !is_floating_point(v.dtype());
}

inline V as_bool(V v) {
  return lowering::cast(v, DType::boolean);
}

/// UserError unless the first operand is an integer or bool.
inline void require_integers(const PointwiseArgs& a, const char* op) {
  STAX_CHECK(is_integer(a[0]), "{}: expected integers or bool, got {}", op, name(a[0].dtype()));
}

}  // namespace stax::ops
