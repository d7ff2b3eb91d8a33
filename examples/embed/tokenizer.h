// The tokens of an uncased BERT model: words, and pieces of words, as the model's vocabulary has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace embed {

/// Cuts text into words as BERT does (Devlin et al., arXiv:1810.04805, with the reference implementations'
/// rules): control, format and private-use characters go, and U+FFFD; white space separates; canonical
/// decomposition (NFD) without nonspacing marks takes accents away; letters become lower case one by one;
/// every CJK ideograph and every punctuation character (Unicode's, and all ASCII characters but letters and
/// digits) is a word.
///
/// Characters are those of the Unicode version of utf8proc; newer ones stay in their words. UserError for
/// bytes that are not UTF-8.
std::vector<std::string> split_words(std::string_view text);

/// WordPiece: each word is the longest pieces of the vocabulary that follow each other, pieces within a word
/// with
/// "##" before them. A word that does not come out, or is longer than 100 characters, is one [UNK].
class Tokenizer {
 public:
  /// One piece a line; its id is the line's number, from 0. UserError naming the file where it cannot be
  /// read, names a piece twice, or lacks [PAD], [UNK], [CLS], [SEP] or [MASK].
  static Tokenizer load(const std::string& path);
  explicit Tokenizer(const std::vector<std::string>& vocabulary);

  /// [CLS], the text's tokens and [SEP]: `max_tokens` at most, of a longer text the first ones. The five
  /// special pieces stand for themselves where the text spells them. UserError for text that is not UTF-8.
  std::vector<int64_t> encode(std::string_view text, size_t max_tokens) const;

  size_t size() const { return ids_.size(); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  void add_pieces(const std::string& word, std::vector<int64_t>& ids) const;
  void add_words(std::string_view text, size_t limit, std::vector<int64_t>& ids) const;
  int64_t special(std::string_view piece) const;

  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> ids_;
  int64_t unknown_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace embed
