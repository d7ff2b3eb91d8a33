// Words and pieces of an uncased BERT model. The expected words are worked out from BERT's rules by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "examples/embed/batches.h"
#include "examples/embed/tokenizer.h"
#include "stax/error.h"
#include "support/file.h"

namespace embed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int64_t>;
using Words = std::vector<std::string>;

struct Case {
  std::string text;
  Words words;
};

void expect_words(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(split_words(c.text), c.words) << c.text;
}

TEST(EmbedTokenizer, SplitsAtWhiteSpaceAndPunctuation) {
  using namespace std::string_literals;
  expect_words({
      {"", {}},
      {" \t\r\n ", {}},
      {"Hello, world!", {"hello", ",", "world", "!"}},
      {"don't", {"don", "'", "t"}},
      {"a_b^c$d~e`f", {"a", "_", "b", "^", "c", "$", "d", "~", "e", "`", "f"}},  // ASCII symbols, too
      {"1€ = 2£", {"1€", "=", "2£"}},                                            // but no others
      {"«a»\u2014b\u2026¿c·d", {"«", "a", "»", "\u2014", "b", "\u2026", "¿", "c", "·", "d"}},
      {"a\u00a0b\u3000c\u2003d\u2028e\u2029f", {"a", "b", "c", "d", "e", "f"}},
      {"a\0b\x01\x7f\u0085\u00ad\u200b\u200d\ufeff\ufffd\ue000\v\fc"s, {"abc"}},
      {"१२।३", {"१२", "।", "३"}},
  });
}

TEST(EmbedTokenizer, TakesAccentsAndCaseAway) {
  expect_words({
      {"Ünïcödé", {"unicode"}},
      {"e\u0301\u0323E\u0302", {"ee"}},  // marks by themselves
      {"Å\u212b", {"aa"}},               // the letter, and the sign for Angstrom
      {"İIı", {"iiı"}},                  // the dot is a mark; the dotless i is a letter of its own
      {"Straße STRAẞE", {"straße", "straße"}},
      {"ΟΔΟΣ Σ", {"οδοσ", "σ"}},  // letter by letter: no final form
      {"ЙЁ Ǆ", {"ие", "ǆ"}},
      {"ﬁ ＡＢ Ⅷ ½", {"ﬁ", "ａｂ", "ⅷ", "½"}},  // compatibility forms stay
      {"हिन्दी", {"हिनदी"}},                     // signs that stand beside stay, those above and below go
      {"ไทยที่", {"ไทยท"}},
      {"한", {"\u1112\u1161\u11ab"}},  // syllables come apart
      {"が", {"か"}},
  });
}

TEST(EmbedTokenizer, SeparatesIdeographsAndKeepsEmoji) {
  expect_words({
      {"日本語です。ok", {"日", "本", "語", "てす", "。", "ok"}},  // the voicing of で is a mark
      {"a\u3400b\U00020000c\uf900d",
       {"a", "\u3400", "b", "\U00020000", "c", "\u8c48", "d"}},  // U+F900 is U+8C48 by NFD
      {"カタカナ한", {"カタカナ\u1112\u1161\u11ab"}},
      {"hi😀😀", {"hi😀😀"}},
      {"👍🏽 ❤\ufe0f 👩\u200d👧", {"👍🏽", "❤", "👩👧"}},
      {"\U0001fae8 \U0001f6dc", {"\U0001fae8", "\U0001f6dc"}},  // of 2022: unknown to older tables, and kept
  });
}

TEST(EmbedTokenizer, RefusesWhatIsNoText) {
  const Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"});
  for (const char* bytes :
       {"\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ok\xe2\x82", "\x80"}) {
    EXPECT_THROW(split_words(bytes), stax::UserError);
    EXPECT_THROW(tokenizer.encode(bytes, 8), stax::UserError);
  }
}

const Words kVocabulary = {"[PAD]",  "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un",  "##aff", "##able", "##a",
                           "unable", "a",     "##ff",  "é",     "x",      "##x", "!",     "日"};

TEST(EmbedTokenizer, TakesTheLongestPiecesFirst) {
  const Tokenizer tokenizer(kVocabulary);
  EXPECT_THAT(tokenizer.encode("", 256), ElementsAre(2, 3));
  EXPECT_THAT(tokenizer.encode("unaffable UNABLE a!", 256), ElementsAre(2, 5, 6, 7, 9, 10, 15, 3));
  EXPECT_THAT(tokenizer.encode("unaff-a", 256), ElementsAre(2, 5, 6, 1, 10, 3));
  EXPECT_THAT(tokenizer.encode("unaffz a", 256), ElementsAre(2, 1, 10, 3));  // no part of the word stays
  EXPECT_THAT(tokenizer.encode("é日a", 256), ElementsAre(2, 1, 16, 10, 3));  // é is e by then
}

TEST(EmbedTokenizer, GivesUpOnWordsOfMoreThanAHundredCharacters) {
  const Tokenizer tokenizer(kVocabulary);
  EXPECT_EQ(tokenizer.encode(std::string(100, 'x'), 256).size(), 102u);
  EXPECT_THAT(tokenizer.encode(std::string(101, 'x'), 256), ElementsAre(2, 1, 3));
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "x\u0301";  // counted without their marks
  EXPECT_EQ(tokenizer.encode(accents, 256).size(), 102u);
}

TEST(EmbedTokenizer, KeepsTheFirstTokens) {
  const Tokenizer tokenizer(kVocabulary);
  EXPECT_THAT(tokenizer.encode("a a a a", 5), ElementsAre(2, 10, 10, 10, 3));
  EXPECT_THAT(tokenizer.encode("a unaffable", 4), ElementsAre(2, 10, 5, 3));  // within a word, too
  EXPECT_THAT(tokenizer.encode("a unaffz a", 4), ElementsAre(2, 10, 1, 3));
  EXPECT_THAT(tokenizer.encode("a", 2), ElementsAre(2, 3));
  EXPECT_THROW(tokenizer.encode("a", 1), stax::UserError);
}

TEST(EmbedTokenizer, ReadsSpecialPiecesInTheText) {
  const Tokenizer tokenizer(kVocabulary);
  EXPECT_THAT(tokenizer.encode("[CLS]a[SEP] [MASK][PAD]a", 256), ElementsAre(2, 2, 10, 3, 4, 0, 10, 3));
  EXPECT_THAT(tokenizer.encode("[cls]", 256), ElementsAre(2, 1, 1, 1, 3));
  EXPECT_THAT(tokenizer.encode("[[UNK]", 256), ElementsAre(2, 1, 1, 3));
  EXPECT_THAT(tokenizer.encode("[MASK][MASK][MASK]", 4), ElementsAre(2, 4, 4, 3));
}

TEST(EmbedTokenizer, NamesWhatIsWrongWithAVocabulary) {
  const stax::TemporaryFolder folder(stax::temporary_root(), "stax-embed-");
  const std::string path = folder.path() + "/vocab.txt";
  const auto error = [&](const std::string& content) {
    std::ofstream(path) << content;
    try {
      Tokenizer::load(path);
    } catch (const stax::UserError& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  EXPECT_EQ(error("[PAD]\n[UNK]\n[CLS]\r\n[SEP]\n[MASK]\n"), "");
  EXPECT_THAT(error("[PAD]\n[UNK]\n[SEP]\n[MASK]"),
              HasSubstr("vocab.txt: vocabulary: expected the piece [CLS]"));
  EXPECT_THAT(error("a\nb\na\n"), HasSubstr("got 'a' again in line 3"));
  EXPECT_THROW(Tokenizer::load(folder.path() + "/none"), stax::UserError);
}

TEST(EmbedBatches, HoldTextsOfLikeLength) {
  using Batches = std::vector<std::vector<size_t>>;
  EXPECT_EQ(make_batches({}, 100), Batches());
  EXPECT_EQ(make_batches(std::vector<size_t>{5}, 100), (Batches{{0}}));
  EXPECT_EQ(make_batches(std::vector<size_t>{5, 9, 8, 5, 9}, 100), (Batches{{1, 4, 2}, {0, 3}}));
  EXPECT_EQ(make_batches(std::vector<size_t>{2, 9}, 100), (Batches{{1, 0}}));  // two are always together
  EXPECT_EQ(make_batches(std::vector<size_t>{4, 4, 4, 4, 4}, 8), (Batches{{0, 1}, {2, 3}, {4}}));
}

}  // namespace
}  // namespace embed
