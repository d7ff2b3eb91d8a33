// The snippets behind the prelude, for one vector shape. Internal to src/codegen/cpp/prelude*.cpp.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stax::codegen {

/// What a snippet's text may depend on.
struct VectorShape {
  int vector_bytes;
  int lanes;
  bool avx2() const { return vector_bytes >= 32; }
  bool avx512() const { return vector_bytes >= 64; }
  auto operator<=>(const VectorShape&) const = default;
};

/// A dtype token and the size of its element.
struct TokenInfo {
  std::string_view token;
  int size;
  bool is_float;
  bool is_signed;
};
const TokenInfo& token_info(std::string_view token);

/// Replaces $T (token), $I and $U (integer tokens of the same size), $N (lanes), $B (bits of an element).
std::string expand(std::string_view text, std::string_view token, int lanes);

/// "f(0), f(1), ..." for N lanes, with `#` in `item` replaced by the lane.
std::string per_lane(int lanes, std::string_view item, std::string_view separator = ", ");

/// `gcc` under GCC, `other` under other compilers, which lack GCC's names of the instructions.
std::string gcc_or(std::string_view gcc, std::string_view other);

/// Collects snippets: name -> text. What a snippet calls is read off its text, so no list can go stale. A
/// kernel uses few of the functions there are, so a text is made when its name is looked up, and what exists
/// once a token is entered when a name of that token is.
class SnippetTable {
 public:
  using Entries = void (*)(SnippetTable& table, std::string_view token);

  explicit SnippetTable(VectorShape shape) : shape_(shape) {}
  const VectorShape& shape() const { return shape_; }

  /// Text as it stands.
  void raw(std::string name, std::string text);
  /// For each token of `tokens`: the function NAME_T with `signature` (result, then arguments a, b, c: v
  /// vector of T, m mask, i integer vector of T's size) and its scalar form. `inlined` false keeps one copy
  /// of a long function.
  void value(std::string_view name, std::string_view tokens, std::string_view signature,
             std::string_view body, bool inlined = true);
  /// For each token of `tokens`: enters what `entries(table, token)` enters, all of whose names that others
  /// look up end in the token.
  void each(std::string_view tokens, Entries entries);

  bool has(std::string_view raw_name) const { return texts_.count(raw_name) > 0; }
  /// The text of a snippet; null when there is none of that name.
  const std::string* find(std::string_view name);
  /// Every name, sorted.
  std::vector<std::string> names();

 private:
  struct Function {
    std::string tokens, signature, body;
    bool inlined;
  };
  struct Later {
    std::string token;
    Entries entries;
  };

  void enter(std::string_view token);  // what waits for it
  void define(std::string_view name, const Function& function, std::string_view token);

  VectorShape shape_;
  std::map<std::string, std::string, std::less<>> texts_;
  std::multimap<std::string, Function, std::less<>> functions_;  // by name without token
  std::vector<Later> later_;
};

inline constexpr std::string_view kIntegers = "u8 i8 i16 i32 i64";
inline constexpr std::string_view kNumbers = "u8 i8 i16 i32 i64 f32 f64";
inline constexpr std::string_view kFloats = "f32 f64";

/// Calls `visit(token)` for each word of `tokens`.
template <class Visit>
void for_each_token(std::string_view tokens, Visit visit) {
  while (!tokens.empty()) {
    size_t end = tokens.find(' ');
    visit(tokens.substr(0, end));
    tokens = end == std::string_view::npos ? std::string_view{} : tokens.substr(end + 1);
  }
}

void add_memory_snippets(SnippetTable& table);
void add_arithmetic_snippets(SnippetTable& table);
void add_conversion_snippets(SnippetTable& table);
void add_float_snippets(SnippetTable& table);
void add_math_snippets(SnippetTable& table);
void add_library_snippets(SnippetTable& table);

}  // namespace stax::codegen
