#include "tensor/sym_int.h"

#include <bit>
#include <ostream>

#include "stax/check.h"
#include "support/check.h"

namespace stax {
namespace {

/// 1 where the condition holds, else 0, as an expression.
Expr indicator(const Condition& c) {
  const Expr difference = c.right - c.left;
  const Expr one(1), zero(0);
  switch (c.relation) {
    case Relation::lt:
      return min(max(difference, zero), one);
    case Relation::le:
      return min(max(difference + one, zero), one);
    case Relation::ne:
      return min(max(difference, -difference), one);
    case Relation::eq:
      return one - min(max(difference, -difference), one);
  }
  return zero;
}

bool decide(const Condition& condition) {
  SymbolicContext* context = symbolic_context();
  STAX_CHECK(context != nullptr,
             "a symbolic size is compared ({}) outside the trace that it belongs to; sizes of traced tensors "
             "may not leave the traced function",
             condition.str());
  return context->decide(condition);
}

/// Whether the divisor is positive; UserError where it is 0.
bool is_positive(Expr a, Expr b) {
  if (decide(gt(b, Expr(0)))) return true;
  STAX_CHECK(decide(lt(b, Expr(0))), "division of the size {} by zero ({})", a.str(), b.str());
  return false;
}

/// Division as C++ has it, which truncates: the same as flooring where no operand is negative.
Expr truncated_div(Expr a, Expr b) {
  if (!is_positive(a, b)) {
    a = -a;
    b = -b;
  }
  return decide(ge(a, Expr(0))) ? floor_div(a, b) : -floor_div(-a, b);
}

/// The remainder of that division, which has the sign of `a`.
Expr truncated_mod(Expr a, Expr b) {
  if (!is_positive(a, b)) b = -b;
  return decide(ge(a, Expr(0))) ? mod(a, b) : -mod(-a, b);
}

int64_t plain_div(int64_t a, int64_t b) {
  STAX_CHECK(b != 0, "division of the size {} by zero", a);
  STAX_CHECK(b != -1 || a != INT64_MIN, "division of {} by -1 leaves 64 bits", a);
  return a / b;
}

/// Both operands are numbers: exact, errors where the result leaves 64 bits.
SymInt plain_binary(detail::SymOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case detail::SymOp::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case detail::SymOp::sub:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case detail::SymOp::mul:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case detail::SymOp::div:
      result = plain_div(a, b);
      break;
    case detail::SymOp::mod:
      result = b == -1 ? 0 : a - plain_div(a, b) * b;
      break;
    case detail::SymOp::min:
      result = std::min(a, b);
      break;
    case detail::SymOp::max:
      result = std::max(a, b);
      break;
  }
  STAX_CHECK(!overflow, "arithmetic on the sizes {} and {} leaves 64 bits", a, b);
  return result;
}

}  // namespace

std::vector<Expr> to_exprs(const IntList& list) {
  std::vector<Expr> result;
  result.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) result.push_back(to_expr(list[i]));
  return result;
}

Condition to_condition(const SymBool& value) {
  const Expr left = to_expr(value.left()), right = to_expr(value.right());
  return {static_cast<Relation>(value.relation()), left, right};
}

bool SymInt::is_constant() const {
  return is_plain() || Expr(node()).is_constant();
}

std::string SymInt::str() const {
  return is_plain() ? std::to_string(bits_) : Expr(node()).str();
}

std::string SymBool::str() const {
  if (!symbolic_) return value_ ? "True" : "False";
  return to_condition(*this).str();
}

void check(const SymBool& condition, std::string_view words, const std::source_location& where) {
  if (condition.is_symbolic()) {
    SymbolicContext* context = symbolic_context();
    STAX_CHECK(context != nullptr,
               "check({}): a symbolic size is used outside the trace that it belongs to; sizes of traced "
               "tensors may not leave the traced function",
               condition.str());
    return context->check(to_condition(condition), words, where);
  }
  STAX_CHECK(condition, "{}:{}: check failed{}{}", where.file_name(), where.line(), words.empty() ? "" : ": ",
             words);
}

void check(const SymConjunction& conditions, std::string_view words, const std::source_location& where) {
  for (const SymBool& part : conditions.parts()) check(part, words, where);
}

SymInt sym_ite(const SymBool& condition, const SymInt& a, const SymInt& b) {
  if (!condition.is_symbolic()) return condition ? a : b;
  const Expr otherwise = to_expr(b);
  return to_sym_int(otherwise + indicator(to_condition(condition)) * (to_expr(a) - otherwise));
}

namespace detail {

int64_t encode_large(int64_t value) {
  const SymInt large = SymInt::from_node(Expr(value).node());
  return std::bit_cast<int64_t>(large);
}

int64_t sym_value(const SymInt& value) {
  const Expr e(value.node());
  if (const auto constant = e.constant()) return *constant;
  SymbolicContext* context = symbolic_context();
  STAX_CHECK(context != nullptr,
             "the symbolic size {} is read outside the trace that it belongs to; sizes of traced tensors may "
             "not leave the traced function",
             e.str());
  return context->fix(e);
}

SymInt sym_binary(SymOp op, const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return plain_binary(op, a.value(), b.value());
  const Expr x = to_expr(a), y = to_expr(b);
  switch (op) {
    case SymOp::add:
      return to_sym_int(x + y);
    case SymOp::sub:
      return to_sym_int(x - y);
    case SymOp::mul:
      return to_sym_int(x * y);
    case SymOp::div:
      return to_sym_int(truncated_div(x, y));
    case SymOp::mod:
      return to_sym_int(truncated_mod(x, y));
    case SymOp::min:
      return to_sym_int(min(x, y));
    case SymOp::max:
      return to_sym_int(max(x, y));
  }
  return {};
}

SymBool sym_compare(SymRelation relation, const SymInt& a, const SymInt& b) {
  if (!a.is_constant() || !b.is_constant()) return {relation, a, b};
  return holds(static_cast<Relation>(relation), a, b);
}

bool sym_decide(const SymBool& condition) {
  return decide(to_condition(condition));
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const SymInt& value) {
  return out << value.str();
}

std::ostream& operator<<(std::ostream& out, const SymBool& value) {
  return out << value.str();
}

namespace {
template <class List>
std::ostream& print_list(std::ostream& out, const List& list) {
  out << "[";
  for (size_t i = 0; i < list.size(); ++i) out << (i == 0 ? "" : ", ") << list[i].str();
  return out << "]";
}
}  // namespace

std::ostream& operator<<(std::ostream& out, const SizeList& list) {
  return print_list(out, list);
}
std::ostream& operator<<(std::ostream& out, const IntList& list) {
  return print_list(out, list);
}

}  // namespace stax
