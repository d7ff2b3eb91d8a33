#include "loops/parse_expr.h"

#include <cctype>
#include <charconv>

#include "support/check.h"

namespace stax::loops {

namespace {

constexpr std::string_view kLetters = "suirtx";  // in the order of SymbolKind
constexpr int kMaxDepth = 200;                   // of nested parentheses

/// sum := product (('+' | '-') product)*;  product := factor (('*' | '//' | '%') factor)*;
/// factor := '-' factor | number | symbol | ('min' | 'max') '(' sum (',' sum)* ')' | '(' sum ')'
class ExprParser {
 public:
  explicit ExprParser(std::string_view text) : text_(text) {}

  Expr parse() {
    Expr e = sum();
    skip_space();
    if (at_ != text_.size()) fail("the end");
    return e;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    throw_user_error(fmt::format("[expression] expected {} at position {} of \"{}\"", expected, at_, text_));
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("'{}'", token));
  }

  Expr sum() {
    Expr e = product();
    while (true) {
      if (take("+")) {
        e += product();
      } else if (take("-")) {
        e -= product();
      } else {
        return e;
      }
    }
  }
  Expr product() {
    Expr e = factor();
    while (true) {
      if (take("//")) {
        e = floor_div(e, factor());
      } else if (take("%")) {
        e = mod(e, factor());
      } else if (take("*")) {
        e *= factor();
      } else {
        return e;
      }
    }
  }
  Expr factor() {
    if (++depth_ > kMaxDepth) fail("less nesting");
    Expr e = plain_factor();
    --depth_;
    return e;
  }
  Expr plain_factor() {
    if (take("-")) return -factor();
    if (take("(")) {
      Expr e = sum();
      expect(")");
      return e;
    }
    if (take("min(")) return extremum([](Expr a, Expr b) { return min(a, b); });
    if (take("max(")) return extremum([](Expr a, Expr b) { return max(a, b); });
    skip_space();
    if (at_ == text_.size()) fail("an operand");
    const size_t letter = kLetters.find(text_[at_]);
    if (letter == std::string_view::npos) return Expr(number<int64_t>("an operand"));
    ++at_;
    return Expr(Symbol{static_cast<SymbolKind>(letter), number<int32_t>("the symbol's number")});
  }
  template <class F>
  Expr extremum(F&& combine) {
    Expr e = sum();
    while (take(",")) e = combine(e, sum());
    expect(")");
    return e;
  }
  template <class T>
  T number(std::string_view expected) {
    T value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail(expected);
    at_ += static_cast<size_t>(end - first);
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Expr parse_expr(std::string_view text) {
  return ExprParser(text).parse();
}

}  // namespace stax::loops
