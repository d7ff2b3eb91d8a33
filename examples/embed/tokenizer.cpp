#include "examples/embed/tokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "support/check.h"
#include "support/file.h"
#include "support/utf8.h"

namespace embed {
namespace {

constexpr size_t kLongestWord = 100;  // characters
constexpr std::array<std::string_view, 5> kSpecial = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

struct Range {
  int32_t first, last;
};

// The ideographs that BERT separates. Hangul, Hiragana and Katakana are written with spaces, or in words.
constexpr std::array<Range, 8> kIdeographs = {{{0x3400, 0x4DBF},
                                               {0x4E00, 0x9FFF},
                                               {0xF900, 0xFAFF},
                                               {0x20000, 0x2A6DF},
                                               {0x2A700, 0x2B73F},
                                               {0x2B740, 0x2B81F},
                                               {0x2B820, 0x2CEAF},
                                               {0x2F800, 0x2FA1F}}};

bool is_ideograph(int32_t c) {
  return std::any_of(kIdeographs.begin(), kIdeographs.end(),
                     [c](const Range& range) { return range.first <= c && c <= range.last; });
}

bool is_space(int32_t c) {
  const utf8proc_category_t kind = utf8proc_category(c);
  return c == '\t' || c == '\n' || c == '\r' || kind == UTF8PROC_CATEGORY_ZS ||
         kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

/// What is taken out before anything else is looked at. A character of no category (CN) is kept: most likely
/// it is newer than the library.
bool is_dropped(int32_t c) {
  const utf8proc_category_t kind = utf8proc_category(c);
  return c == 0 || c == 0xFFFD || kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_CO;
}

bool is_punctuation(int32_t c) {
  if (c < 0x80) return c > ' ' && c < 0x7F && !std::isalnum(c);
  const utf8proc_category_t kind = utf8proc_category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

void append(std::string& text, int32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto count = static_cast<size_t>(utf8proc_encode_char(c, bytes.data()));
  text.append(reinterpret_cast<const char*>(bytes.data()), count);
}

/// The text without what is dropped, with single blanks for white space and around ideographs.
std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (auto left = static_cast<utf8proc_ssize_t>(text.size()); left > 0;) {
    int32_t c = 0;
    const utf8proc_ssize_t count = utf8proc_iterate(at, left, &c);
    STAX_CHECK(count > 0, "tokenizer: expected UTF-8, got other bytes at offset {}",
               text.size() - static_cast<size_t>(left));
    at += count;
    left -= count;
    if (is_space(c)) {
      out += ' ';
    } else if (is_ideograph(c)) {
      out += ' ';
      append(out, c);
      out += ' ';
    } else if (!is_dropped(c)) {
      append(out, c);
    }
  }
  return out;
}

/// NFD, as code points.
std::vector<int32_t> decompose(const std::string& text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  const auto run = [&](std::vector<int32_t>& out) {
    return utf8proc_decompose(bytes, size, out.data(), static_cast<utf8proc_ssize_t>(out.size()), kOptions);
  };
  std::vector<int32_t> out(text.size());  // enough for what does not grow
  utf8proc_ssize_t count = run(out);
  if (count > static_cast<utf8proc_ssize_t>(out.size())) {
    out.resize(static_cast<size_t>(count));
    count = run(out);
  }
  STAX_CHECK(count >= 0, "tokenizer: {}", utf8proc_errmsg(count));
  out.resize(static_cast<size_t>(count));
  return out;
}

/// A byte within a character.
bool is_continuation(char byte) {
  return (byte & 0xC0) == 0x80;
}

size_t characters(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), is_continuation));
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (const int32_t c : decompose(clean(text))) {
    if (utf8proc_category(c) == UTF8PROC_CATEGORY_MN) continue;
    const bool alone = is_punctuation(c);
    if (alone || c == ' ') finish();
    if (c != ' ') append(word, utf8proc_tolower(c));
    if (alone) finish();
  }
  finish();
  return words;
}

Tokenizer Tokenizer::load(const std::string& path) {
  const std::optional<std::string> text = stax::read_file(path);
  STAX_CHECK(text.has_value(), "{}: expected a readable vocabulary, one piece a line", path);
  std::vector<std::string> lines;
  for (size_t start = 0; start < text->size();) {
    const size_t end = std::min(text->find('\n', start), text->size());
    lines.push_back(text->substr(start, end - start));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    start = end + 1;
  }
  try {
    return Tokenizer(lines);
  } catch (const stax::UserError& error) {
    stax::throw_user_error(fmt::format("{}: {}", path, error.what()));
  }
}

Tokenizer::Tokenizer(const std::vector<std::string>& vocabulary) {
  for (const std::string& piece : vocabulary) {
    const auto id = static_cast<int64_t>(ids_.size());
    const bool added = ids_.emplace(piece, id).second;
    STAX_CHECK(added, "vocabulary: expected every piece once, got '{}' again in line {}", piece, id + 1);
  }
  for (const std::string_view piece : kSpecial) special(piece);
  unknown_ = special("[UNK]");
  begin_ = special("[CLS]");
  end_ = special("[SEP]");
}

int64_t Tokenizer::special(std::string_view piece) const {
  const auto found = ids_.find(piece);
  STAX_CHECK(found != ids_.end(), "vocabulary: expected the piece {}, got {} pieces without it", piece,
             ids_.size());
  return found->second;
}

void Tokenizer::add_pieces(const std::string& word, std::vector<int64_t>& ids) const {
  const size_t before = ids.size();
  bool known = characters(word) <= kLongestWord;
  std::string piece;
  for (size_t start = 0; known && start < word.size();) {
    known = false;
    for (size_t end = word.size(); end > start; --end) {
      if (end < word.size() && is_continuation(word[end])) continue;
      piece.assign(start > 0 ? "##" : "").append(word, start, end - start);
      const auto found = ids_.find(piece);
      if (found == ids_.end()) continue;
      ids.push_back(found->second);
      known = true;
      start = end;
      break;
    }
  }
  if (known) return;
  ids.resize(before);
  ids.push_back(unknown_);
}

void Tokenizer::add_words(std::string_view text, size_t limit, std::vector<int64_t>& ids) const {
  for (const std::string& word : split_words(text)) {
    if (ids.size() >= limit) return;
    add_pieces(word, ids);
  }
}

std::vector<int64_t> Tokenizer::encode(std::string_view text, size_t max_tokens) const {
  STAX_CHECK(max_tokens >= 2, "tokenizer: expected room for [CLS] and [SEP], got {} tokens", max_tokens);
  STAX_CHECK(stax::is_valid_utf8(text), "tokenizer: expected UTF-8, got other bytes");
  std::vector<int64_t> ids = {begin_};
  const size_t limit = max_tokens - 1;
  for (size_t start = 0; start < text.size() && ids.size() < limit;) {
    size_t end = text.size();
    std::string_view next;
    for (const std::string_view piece : kSpecial) {
      if (const size_t at = text.substr(0, end).find(piece, start); at != std::string_view::npos) {
        end = at;
        next = piece;
      }
    }
    add_words(text.substr(start, end - start), limit, ids);
    if (!next.empty()) ids.push_back(special(next));
    start = end + next.size();
  }
  ids.resize(std::min(ids.size(), limit));
  ids.push_back(end_);
  return ids;
}

}  // namespace embed
