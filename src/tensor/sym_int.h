// Between the public SymInt and the compiler's Expr, and the door through which sizes ask the trace.
#pragma once

#include <source_location>
#include <string_view>
#include <vector>

#include "stax/lists.h"
#include "stax/symint.h"
#include "symbolic/expr.h"
#include "symbolic/shape_env.h"

namespace stax {

class Tensor;

inline Expr to_expr(const SymInt& value) {
  return value.is_plain() ? Expr(static_cast<int64_t>(value)) : Expr(value.node());
}
inline SymInt to_sym_int(Expr value) {
  const auto constant = value.constant();
  return constant ? SymInt(*constant) : SymInt::from_node(value.node());
}
std::vector<Expr> to_exprs(const IntList& list);

/// What sizes and tensors with memory ask of the trace that is running on this thread.
class SymbolicContext {
 public:
  virtual ~SymbolicContext() = default;
  /// The number that a symbolic size has; the trace records that it is fixed now.
  virtual int64_t fix(Expr value) = 0;
  /// Decides a condition; the trace records the guard.
  virtual bool decide(const Condition& condition) = 0;
  /// States a condition: a run-time check of the compiled program.
  virtual void check(const Condition& condition, std::string_view words,
                     const std::source_location& where) = 0;
  /// What stands for a tensor that was just made of the program's numbers.
  virtual Tensor constant(const Tensor& made);
  /// The program is about to read the elements of a tensor with memory.
  virtual void on_read(const std::source_location& /*where*/) {}
};

/// The context of this thread's trace, or null. Capture owns the thread-local behind it and defines this
/// function.
SymbolicContext* symbolic_context();

/// The condition that an undecided SymBool stands for.
Condition to_condition(const SymBool& value);

}  // namespace stax
