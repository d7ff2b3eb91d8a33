#include "support/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "stax/error.h"

namespace stax {
namespace {

std::string error_of(std::string_view text) {
  try {
    Json::parse(text, {.what = "the text"});
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Json, ReadsEveryKind) {
  const Json value = Json::parse(R"( {"a": [null, true, -3, 2.5, "x\u00e9\n"], "b": {}} )");
  ASSERT_TRUE(value.is_object());
  const Json& list = value.at("a");
  ASSERT_EQ(list.size(), 5u);
  EXPECT_TRUE(list.at(0).is_null());
  EXPECT_TRUE(list.at(1).as_bool());
  EXPECT_EQ(list.at(2).as_int(), -3);
  EXPECT_EQ(list.at(3).as_double(), 2.5);
  EXPECT_EQ(list.at(4).as_string(), "x\xc3\xa9\n");
  EXPECT_EQ(value.at("b").size(), 0u);
  EXPECT_EQ(value.find("c"), nullptr);
}

TEST(Json, KeepsIntegersAndNumbersApart) {
  EXPECT_TRUE(Json::parse("1").is_integer());
  EXPECT_FALSE(Json::parse("1.0").is_integer());
  EXPECT_FALSE(Json::parse("1e2").is_integer());
  EXPECT_EQ(Json::parse("9223372036854775807").as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Json::parse("-9223372036854775808").as_int(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Json(1.0).dump(), "1.0");
  EXPECT_EQ(Json(1).dump(), "1");
  EXPECT_THROW(Json(1.0).as_int(), UserError);
  EXPECT_EQ(Json(7).as_double(), 7.0);
}

TEST(Json, RefusesIntegersBeyond64Bits) {
  for (const char* text : {"9223372036854775808", "18446744073709551616", "-9223372036854775809",
                           "[100000000000000000000000]"}) {
    EXPECT_NE(error_of(text).find("does not fit in 64 signed bits"), std::string::npos)
        << text << error_of(text);
  }
}

TEST(Json, NamesTheOffsetOfAnError) {
  EXPECT_NE(error_of("[1, x]").find("byte 4 of 6"), std::string::npos) << error_of("[1, x]");
  EXPECT_NE(error_of("[1, x]").find("the text"), std::string::npos);
  EXPECT_NE(error_of("[1, 2").find("ends too early"), std::string::npos) << error_of("[1, 2");
  for (const char* text : {"",    " ",     "nul",     "{\"a\":}", "{\"a\" 1}", "[1,]",   "{,}",
                           "1 2", "[1] x", "\"\\q\"", "\"a",      "01",        "+1",     ".5",
                           "NaN", "'a'",   "// c\n1", "\"\xff\"", "\xef\xbb",  "{1: 2}", "1e999"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(Json, RefusesDeepNestingAndDuplicates) {
  EXPECT_NO_THROW(Json::parse(std::string(200, '[') + std::string(200, ']')));
  EXPECT_NE(error_of(std::string(201, '[') + std::string(201, ']')).find("more than 200"), std::string::npos);
  EXPECT_NE(error_of(std::string(1 << 20, '[')).find("more than 200"), std::string::npos);
  EXPECT_NE(error_of(R"({"a": 1, "b": 2, "a": 3})").find("\"a\" stands twice"), std::string::npos);
}

TEST(Json, SaysWhichKindItFound) {
  try {
    Json::parse(R"({"a": "x"})").at("a").as_int();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "JSON: expected an integer, got string");
  }
  EXPECT_THROW(Json::parse("[1]").at(1), UserError);
  EXPECT_THROW(Json::parse("[1]").at("a"), UserError);
  EXPECT_THROW(Json::parse("{\"b\": 1}").at("a"), UserError);
  EXPECT_THROW(Json(3).size(), UserError);
}

TEST(Json, BuildsAndDumps) {
  Json value;
  value.set("name", "a\"b\\\x01").set("list", Json::array().push_back(1).push_back(2.5).push_back(nullptr));
  value.set("empty", Json::object()).set("on", true).set("name", "c\n");
  EXPECT_EQ(value.dump(), R"({"name": "c\n", "list": [1, 2.5, null], "empty": {}, "on": true})");
  EXPECT_EQ(Json::array().push_back(Json().set("a", 1)).dump(2), "[\n  {\n    \"a\": 1\n  }\n]");
  EXPECT_EQ(Json("\xff").dump(), "\"\xef\xbf\xbd\"");
  EXPECT_THROW(Json(std::numeric_limits<double>::infinity()).dump(), UserError);
  EXPECT_THROW(Json(1).push_back(2), UserError);
}

TEST(Json, DumpsDoublesThatReadBackExactly) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits = random();
    double value;
    static_assert(sizeof value == sizeof bits);
    __builtin_memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const Json back = Json::parse(Json(value).dump());
    ASSERT_EQ(back.kind(), Json::Kind::number) << Json(value).dump();
    ASSERT_EQ(back.as_double(), value);
  }
  EXPECT_TRUE(std::signbit(Json::parse(Json(-0.0).dump()).as_double()));
}

TEST(Json, SurvivesMutatedText) {
  const std::string text =
      R"({"a": [1, -2.5e3, "x\u00e9", {"b": null, "c": [true, false]}], "d": "\ud83d\ude00"})";
  std::mt19937 random(11);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string mutated = text.substr(0, random() % (text.size() + 1));
    for (unsigned k = random() % 3; k > 0 && !mutated.empty(); --k)
      mutated[random() % mutated.size()] = static_cast<char>(random());
    try {
      const Json value = Json::parse(mutated);
      ASSERT_EQ(Json::parse(value.dump()), value);
      ++accepted;
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(accepted, 10);
}

}  // namespace
}  // namespace stax
