#include "codegen/cpp/prelude.h"

#include <array>
#include <set>

#include "codegen/cpp/prelude_table.h"
#include "support/check.h"

namespace stax::codegen {

namespace {

constexpr std::array<TokenInfo, 13> kTokens = {{{"b8", 1, false, false},
                                                {"u8", 1, false, false},
                                                {"i8", 1, false, true},
                                                {"u16", 2, false, false},
                                                {"i16", 2, false, true},
                                                {"u32", 4, false, false},
                                                {"i32", 4, false, true},
                                                {"u64", 8, false, false},
                                                {"i64", 8, false, true},
                                                {"f16", 2, true, true},
                                                {"bf16", 2, true, true},
                                                {"f32", 4, true, true},
                                                {"f64", 8, true, true}}};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

bool starts_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool continues_identifier(char c) {
  return starts_identifier(c) || (c >= '0' && c <= '9');
}

template <class Visit>
void for_each_identifier(std::string_view text, Visit visit) {
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (continues_identifier(text[i])) {
      while (end < text.size() && continues_identifier(text[end])) ++end;
      if (starts_identifier(text[i])) visit(text.substr(i, end - i));
    }
    i = end;
  }
}

/// The scalar types, the vector types and the mask: what every prelude begins with.
std::string types_text(VectorShape shape) {
  std::string text =
      "#pragma GCC diagnostic ignored \"-Wpsabi\"\n"
      "#define STAX_INLINE static inline __attribute__((always_inline))\n"
      "#define STAX_NOINLINE static __attribute__((noinline, unused))\n"
      "typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;\n"
      "typedef unsigned int u32; typedef int i32; typedef unsigned long u64; typedef long i64;\n"
      "typedef float f32; typedef double f64; typedef u8 b8; typedef u16 f16; typedef u16 bf16;\n";
  for (const TokenInfo& t : kTokens) {
    if (t.token == "b8" || (t.is_float && t.size == 2)) continue;
    std::string bytes = fmt::format("{}", shape.lanes * t.size);
    text += fmt::format("typedef {0} v{0} __attribute__((vector_size({1})));\n", t.token, bytes);
    text += fmt::format("typedef {0} v{0}_u __attribute__((vector_size({1}), aligned({2}), may_alias));\n",
                        t.token, bytes, t.size);
  }
  text += fmt::format("typedef vi{} vm;\n", shape.vector_bytes / shape.lanes * 8);
  return text;
}

SnippetTable table_of(VectorShape shape) {
  SnippetTable table(shape);
  add_memory_snippets(table);
  add_arithmetic_snippets(table);
  add_conversion_snippets(table);
  add_float_snippets(table);
  add_math_snippets(table);
  add_library_snippets(table);
  return table;
}

std::string_view last_word(std::string_view name) {
  return name.substr(name.rfind('_') + 1);
}

/// True if `word` stands in the list `words`.
bool contains(std::string_view words, std::string_view word) {
  bool found = false;
  for_each_token(words, [&](std::string_view w) { found = found || w == word; });
  return found;
}

constexpr VectorShape kAnyShape{16, 4};

/// Names that kernels may use: they end in the token of a dtype. The others (p_..., those of libraries) are
/// the prelude's own and depend on the shape.
bool is_public(std::string_view name) {
  if (name == "p_fence" || name == "prefetch") return true;
  if (name.starts_with("p_")) return false;
  const std::string_view last = last_word(name);
  for (int i = 0; i < kDTypeCount; ++i)
    if (last == token(static_cast<DType>(i))) return true;
  return false;
}

void emit(SnippetTable& table, std::string_view name, std::set<std::string, std::less<>>& done,
          std::string& out) {
  if (!done.emplace(name).second) return;
  const std::string* text = table.find(name);
  STAX_ASSERT(text, "the CPU prelude has no function named {}", name);
  for_each_identifier(*text, [&](std::string_view word) {
    if (table.find(word)) emit(table, word, done, out);
  });
  out += *text;
}

}  // namespace

const TokenInfo& token_info(std::string_view token) {
  for (const TokenInfo& t : kTokens)
    if (t.token == token) return t;
  throw_internal_error(__FILE__, __LINE__, "token", fmt::format("no dtype has the token {}", token));
}

std::string expand(std::string_view text, std::string_view token, int lanes) {
  std::string result(text);
  std::string bits = fmt::format("{}", token_info(token).size * 8);
  replace_all(result, "$T", token);
  replace_all(result, "$I", "i" + bits);
  replace_all(result, "$U", "u" + bits);
  replace_all(result, "$N", fmt::format("{}", lanes));
  replace_all(result, "$B", bits);
  return result;
}

std::string gcc_or(std::string_view gcc, std::string_view other) {
  return fmt::format("\n#ifdef __clang__\n{}\n#else\n{}\n#endif\n", other, gcc);
}

std::string per_lane(int lanes, std::string_view item, std::string_view separator) {
  std::string result;
  for (int lane = 0; lane < lanes; ++lane) {
    std::string one(item);
    replace_all(one, "#", fmt::format("{}", lane));
    if (lane > 0) result += separator;
    result += one;
  }
  return result;
}

void SnippetTable::raw(std::string name, std::string text) {
  bool is_new = texts_.emplace(name, std::move(text)).second;
  STAX_ASSERT(is_new, "the CPU prelude defines {} twice", name);
}

void SnippetTable::value(std::string_view name, std::string_view tokens, std::string_view signature,
                         std::string_view body, bool inlined) {
  functions_.emplace(name, Function{std::string(tokens), std::string(signature), std::string(body), inlined});
}

void SnippetTable::each(std::string_view tokens, Entries entries) {
  for_each_token(tokens, [&](std::string_view token) { later_.push_back({std::string(token), entries}); });
}

void SnippetTable::enter(std::string_view token) {
  std::vector<Later> now, rest;
  for (Later& later : later_) (later.token == token ? now : rest).push_back(std::move(later));
  later_ = std::move(rest);
  for (const Later& later : now) later.entries(*this, token);
}

const std::string* SnippetTable::find(std::string_view name) {
  const std::string_view token = last_word(name);
  if (token.size() == name.size()) {
    const auto found = texts_.find(name);
    return found == texts_.end() ? nullptr : &found->second;
  }
  enter(token);
  if (const auto found = texts_.find(name); found != texts_.end()) return &found->second;
  std::string_view base = name.substr(0, name.size() - token.size() - 1);
  if (base.starts_with("s_")) base.remove_prefix(2);
  const auto [first, last] = functions_.equal_range(base);
  for (auto it = first; it != last; ++it) {
    if (!contains(it->second.tokens, token)) continue;
    define(it->first, it->second, token);
    return &texts_.find(name)->second;
  }
  return nullptr;
}

std::vector<std::string> SnippetTable::names() {
  while (!later_.empty()) enter(std::string(later_.front().token));
  for (const auto& [name, function] : functions_) {
    for_each_token(function.tokens, [&](std::string_view token) {
      if (!has(fmt::format("{}_{}", name, token))) define(name, function, token);
    });
  }
  std::vector<std::string> out;
  for (const auto& [name, text] : texts_) out.push_back(name);
  return out;
}

/// Enters the function and its scalar form.
void SnippetTable::define(std::string_view name, const Function& function, std::string_view token) {
  const std::string& signature = function.signature;
  auto vector = [&](char kind) -> std::string {
    if (kind == 'm' || (kind == 'v' && token == "b8")) return "vm";
    return expand(kind == 'i' ? "v$I" : "v$T", token, shape_.lanes);
  };
  auto is_mask = [&](char kind) { return vector(kind) == "vm" && (kind == 'm' || token == "b8"); };
  auto scalar = [&](char kind) -> std::string { return is_mask(kind) ? "bool" : vector(kind).substr(1); };
  std::string parameters, scalar_parameters, arguments;
  for (size_t i = 1; i < signature.size(); ++i) {
    const char letter = static_cast<char>('a' + i - 1);
    const char* comma = i > 1 ? ", " : "";
    parameters += fmt::format("{}{} {}", comma, vector(signature[i]), letter);
    scalar_parameters += fmt::format("{}{} {}", comma, scalar(signature[i]), letter);
    arguments +=
        fmt::format("{}splat_{}({})", comma, is_mask(signature[i]) ? "b8" : scalar(signature[i]), letter);
  }
  std::string full = fmt::format("{}_{}", name, token);
  raw(full, fmt::format("{} {} {}({}) {{ {} }}\n", function.inlined ? "STAX_INLINE" : "STAX_NOINLINE",
                        vector(signature[0]), full, parameters, expand(function.body, token, shape_.lanes)));
  raw("s_" + full,
      fmt::format("STAX_INLINE {} s_{}({}) {{ return {}({})[0]{}; }}\n", scalar(signature[0]), full,
                  scalar_parameters, full, arguments, is_mask(signature[0]) ? " != 0" : ""));
}

std::string prelude(const PreludeRequest& request) {
  const VectorShape shape{request.vector_bytes, request.lanes};
  STAX_ASSERT(shape.vector_bytes == 16 || shape.vector_bytes == 32 || shape.vector_bytes == 64,
              "vectors have 16, 32 or 64 bytes, not {}", shape.vector_bytes);
  const int element = shape.lanes > 0 ? shape.vector_bytes / shape.lanes : 0;
  STAX_ASSERT((element == 1 || element == 2 || element == 4 || element == 8) &&
                  element * shape.lanes == shape.vector_bytes,
              "{} lanes do not divide {} bytes into elements", shape.lanes, shape.vector_bytes);
  SnippetTable table = table_of(shape);
  std::string text = types_text(shape);
  std::set<std::string, std::less<>> done;
  for (const std::string& name : std::set<std::string>(request.names.begin(), request.names.end()))
    emit(table, name, done, text);
  return text;
}

std::vector<std::string> prelude_names(std::string_view text) {
  std::set<std::string, std::less<>> names;
  SnippetTable table = table_of(kAnyShape);
  for_each_identifier(text, [&](std::string_view word) {
    if (is_public(word) && names.count(word) == 0 && table.find(word)) names.emplace(word);
  });
  return {names.begin(), names.end()};
}

const std::vector<std::string>& all_prelude_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (std::string& name : table_of(kAnyShape).names())
      if (is_public(name)) result.push_back(std::move(name));
    return result;
  }();
  return names;
}

std::string_view token(DType dtype) {
  constexpr std::string_view tokens[kDTypeCount] = {"b8",  "u8",  "i8",   "i16", "i32",
                                                    "i64", "f16", "bf16", "f32", "f64"};
  return tokens[static_cast<int>(dtype)];
}

std::string_view compute_token(DType dtype) {
  return is_half(dtype) ? token(DType::float32) : token(dtype);
}

}  // namespace stax::codegen
