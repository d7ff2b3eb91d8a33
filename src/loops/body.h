// The body of a loop node: a list of instructions in static single assignment form.
//
// An instruction's operands come before it. Values that depend on no reduction variable, and the results of
// reduce instructions, live in iteration space; the others in iteration x reduction space. A reduce or scan
// operand may not depend on a reduce result of the same body (such programs are two nodes, which scheduling
// fuses).
#pragma once

#include <bit>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "loops/opcode.h"
#include "stax/dtype.h"
#include "symbolic/expr.h"

namespace stax::loops {

/// Position of an instruction in its body.
using ValueId = int32_t;
/// Position of a buffer in its program.
using BufferId = int32_t;

/// A constant's bits: floats as the bits of a double, integers and bool as int64.
struct Constant {
  uint64_t bits = 0;
  static Constant of(double value) { return {std::bit_cast<uint64_t>(value)}; }
  static Constant of(int64_t value) { return {static_cast<uint64_t>(value)}; }
  double as_double() const { return std::bit_cast<double>(bits); }
  int64_t as_int() const { return static_cast<int64_t>(bits); }
  friend bool operator==(Constant, Constant) = default;
};

struct Inst {
  OpCode op = OpCode::constant;
  DType dtype = DType::float32;  // of the result; for store the dtype of the stored value
  std::vector<ValueId> args;     // operands
  BufferId buffer = -1;          // load, store
  Expr index;                    // load, store: element offset; index_value: the value; check_index: the size
  std::vector<ValueId> indirect;  // values of the symbols t0, t1, ... in `index`
  Constant constant;              // constant
  int32_t number = 0;             // scalar, result, random_bits, check_index: see the table

  friend bool operator==(const Inst&, const Inst&) = default;
};

using Body = std::vector<Inst>;

/// Appends instructions; equal ones (stores excepted) merge.
class BodyBuilder {
 public:
  ValueId add(Inst inst);

  ValueId constant(DType dtype,
                   double value);  // for float dtypes; integers and bool take the truncated value
  ValueId int_constant(DType dtype, int64_t value);
  ValueId load(BufferId buffer, DType dtype, Expr index, std::vector<ValueId> indirect = {},
               ValueId mask = -1);
  ValueId index_value(Expr value, std::vector<ValueId> indirect = {});
  ValueId unary(OpCode op, ValueId a);  // dtype of a; bool for predicates
  ValueId binary(OpCode op, ValueId a, ValueId b);
  ValueId where(ValueId condition, ValueId a, ValueId b);
  ValueId cast(ValueId a, DType dtype);  // a itself when it has that dtype; rounds to the half types
  ValueId reduce(OpCode op, DType dtype, std::vector<ValueId> args);
  ValueId result(ValueId reduction, int32_t number, DType dtype);
  /// `dtype` is the buffer's; the value has its compute_dtype().
  void store(BufferId buffer, DType dtype, Expr index, ValueId value, std::vector<ValueId> indirect = {});

  const Inst& operator[](ValueId id) const { return body_[id]; }
  DType dtype(ValueId id) const { return body_[id].dtype; }
  const Body& body() const { return body_; }
  Body take() { return std::move(body_); }

 private:
  Body body_;
  std::unordered_multimap<size_t, ValueId> interned_;
};

using SymbolMap = std::function<std::optional<Expr>(Symbol)>;

/// Copies the instructions that `roots` (of `from`) need into `to`, in order. Index variables are substituted
/// by `map`. Where `mask` >= 0 (a value of `to`) every load and check_index is predicated by it too. Returns
/// the ids in `to`, parallel to roots.
std::vector<ValueId> copy_values(const Body& from, std::span<const ValueId> roots, BodyBuilder& to,
                                 const SymbolMap& map, ValueId mask = -1);

/// What becomes of instruction `id` of a body that is built anew: `inst` is it, with its operands among the
/// new instructions, and `moved` says what became of those before it. Appends to `to`, and returns the value
/// that stands in the instruction's place.
using Rebuild =
    std::function<ValueId(BodyBuilder& to, ValueId id, Inst inst, const std::vector<ValueId>& moved)>;

/// Builds `from` anew, an instruction at a time. Returns what became of each.
std::vector<ValueId> rebuild(const Body& from, BodyBuilder& to, const Rebuild& rebuilt);

/// The dtype that a value has while it is computed: float32 for the half types, otherwise `dtype` itself.
constexpr DType compute_dtype(DType dtype) {
  return is_half(dtype) ? DType::float32 : dtype;
}

}  // namespace stax::loops
