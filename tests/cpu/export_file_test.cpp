// Files of exported programs: what is written is read back, anything else is refused with the reason.
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "cpu/export_testing.h"
#include "support/hash.h"

namespace stax {
namespace {

using T = Tensor;
using testing::HasSubstr;

class ExportFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "export_file_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "p.stax") const { return folder_ + "/" + name; }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::string write(const std::string& bytes) const {
    std::ofstream(path("other.stax"), std::ios::binary) << bytes;
    return path("other.stax");
  }
  std::string refusal(const std::string& bytes) const {
    const std::string file = write(bytes);
    return error_of([&] { ExportedProgram::load(file); });
  }
  /// `bytes` with another text, and the checksum that belongs to it.
  static std::string edited(std::string bytes, const std::string& from, const std::string& to) {
    const size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    EXPECT_EQ(from.size(), to.size());
    bytes.replace(at, from.size(), to);
    const auto sum = sha256(bytes.substr(0, 28) + bytes.substr(60));
    bytes.replace(28, 32, std::string(sum.begin(), sum.end()));
    return bytes;
  }
  std::string small_file() const {
    const T weight = tensor({1.f, 2.f, 3.f});
    const auto f = [&](const T& x) { return (x * weight).sum(-1) + 0.5; };
    export_program(f, std::tuple{zeros({4, 3})}, {{{0, Dim("n", {.min = 1, .max = 9})}}}, {.names = {"x"}})
        .save(path());
    return read(path());
  }

  std::string folder_;
};

TEST_F(ExportFile, GivesBackTheProgram) {
  auto n = Dim("n", {.min = 2, .max = 4096});
  const auto e = export_program(scaled_sum, std::tuple{zeros({64, 128}), zeros({64, 128})},
                                {{{0, n}}, {{0, n}}}, {.names = {"x", "w"}});
  e.save(path());
  const ExportedProgram back = load_program(path());
  EXPECT_EQ(back.graph(), e.graph());
  EXPECT_EQ(back.assertions(), e.assertions());
  expect_values(back(full({10, 128}, 1.0), full({10, 128}, 2.0)), {10}, std::vector<float>(10, 76.8f));
  EXPECT_EQ(error_of([&] {
              back(zeros({4097, 128}), zeros({4097, 128}));
            }),
            "dimension 0 of x: n is declared within [2, 4096], got 4097");
  save(back, path("again.stax"));
  EXPECT_EQ(read(path("again.stax")), read(path()));
}

// Dimensions of one element have strides that others have, too.
TEST_F(ExportFile, TakesArgumentsWithDimensionsOfOneElement) {
  auto n = Dim("n", {.min = 2, .max = 9});
  const auto f = [](const T& x, const T& y, const T& z) { return x.sum() + y.sum() + z.sum(); };
  for (const auto& sizes :
       std::vector<std::vector<int64_t>>{{2, 1, 3}, {4, 1}, {1, 4}, {1, 1}, {1, 2, 1, 1}}) {
    const auto e =
        export_program(f, std::tuple{zeros(sizes), zeros({4, 1}), zeros({4, 1, 3}).transpose(0, 2)},
                       {{}, {{0, n}}, {{2, n}}});
    e.save(path());
    const ExportedProgram back = load_program(path());
    EXPECT_EQ(back.graph(), e.graph());
    const int64_t first = ones(sizes).numel();
    for (const ExportedProgram& p : {e, back}) {
      const T z = ones({5, 1, 3}).transpose(0, 2);
      expect_values(p(ones(sizes), ones({5, 1}), z), {}, {static_cast<float>(first + 5 + 15)});
    }
  }
}

// The order of the example, which a view of the argument needs, does not depend on where such dimensions are.
TEST_F(ExportFile, SeesTheOrderOfDimensionsAroundOneOfOneElement) {
  const auto view = [](const T& x) { return x.select(0, 1); };
  const auto e = export_program(view, std::tuple{zeros({4, 1, 3}).transpose(0, 2)},
                                {{{2, Dim("n", {.min = 2, .max = 9})}}});
  const T x = arange(15, kFloat).reshape({5, 1, 3});
  const T y = e(x.transpose(0, 2));
  expect_values(y, {1, 5}, {1, 4, 7, 10, 13});
  x.fill_(2);
  expect_values(y, {1, 5}, {2, 2, 2, 2, 2});
}

TEST_F(ExportFile, KeepsConstantsWritesViewsAndSmallSizes) {
  const T weight = tensor({1.f, 2.f, 3.f});
  const auto f = [&](T x, const T& y) {
    x.add_(1);
    return std::tuple{x.select(1, 0), (x * weight).sum(-1), y, x.size(0) * 2};
  };
  auto n = Dim("n", {.min = 0, .max = 9});
  const auto e = export_program(f, std::tuple{zeros({4, 3}), zeros({2})}, {{{0, n}}});
  e.save(path());
  for (const ExportedProgram& p : {e, load_program(path())}) {
    const T x = tensor({{1.f, 2.f, 3.f}, {0.f, 0.f, 1.f}}), y = tensor({7.f, 8.f});
    const ExportedResults out = p(x, y);
    ASSERT_EQ(out.size(), 4u);
    expect_values(x, {2, 3}, {2, 3, 4, 1, 1, 2});
    expect_values(out[0], {2}, {2, 1});
    expect_values(out[1], {2}, {20, 9});  // 2 + 6 + 12, 1 + 2 + 6
    expect_values(out[2], {2}, {7, 8});
    expect_values(out[3], {}, {4});
    x.fill_(5);
    expect_values(out[0], {2}, {5, 5});
    const ExportedResults one = p(ones({1, 3}), y);
    expect_values(one[1], {1}, {12});
    expect_values(p(ones({0, 3}), y)[1], {0}, {});
  }
}

TEST_F(ExportFile, KeepsNoTensorThatWasCaptured) {
  T weight = tensor({1.f, 2.f, 3.f});
  const auto e = export_program([&](const T& x) { return x * weight; }, std::tuple{zeros({3})});
  weight.fill_(100);
  expect_values(e(ones({3})), {3}, {1, 2, 3});
}

TEST_F(ExportFile, RefusesEveryTruncation) {
  const std::string whole = small_file();
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string reason = refusal(whole.substr(0, length));
    EXPECT_THAT(reason, testing::AnyOf(HasSubstr("is incomplete"), HasSubstr("is no exported program")))
        << length;
  }
  EXPECT_THAT(refusal(whole + "x"), HasSubstr("it goes on for 1 byte after its end"));
}

TEST_F(ExportFile, RefusesEveryFlippedByte) {
  const std::string whole = small_file();
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    const size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 + random() % 255));
    EXPECT_THAT(refusal(bytes), testing::AnyOf(HasSubstr("is damaged"), HasSubstr("is incomplete"),
                                               HasSubstr("newer Stax"), HasSubstr("is no exported program")))
        << at;
  }
}

TEST_F(ExportFile, RefusesForeignAndNewerFiles) {
  EXPECT_THAT(refusal("\x89PNG is something else, and long enough for a header of sixty bytes or more"),
              HasSubstr("is no exported program"));
  std::string newer = small_file();
  newer[8] = 3;
  EXPECT_THAT(refusal(newer), HasSubstr("was written by a newer Stax (format 3, this one reads up to 2)"));
  EXPECT_THAT(error_of([&] { ExportedProgram::load(path("missing")); }), HasSubstr("cannot be read"));
}

TEST_F(ExportFile, ChecksWhatAForgedFileSays) {
  const std::string whole = small_file();
  // A true checksum does not make a graph true.
  EXPECT_THAT(refusal(edited(whole, "\"mul.Tensor\"", "\"mul.tensor\"")), HasSubstr("there is no operator"));
  EXPECT_THAT(refusal(edited(whole, "{\"value\": [0, 0]}", "{\"value\": [9, 0]}")),
              HasSubstr("out of range"));
  EXPECT_THAT(refusal(edited(whole, "{\"value\": [0, 0]}", "{\"value\": [2, 0]}")), HasSubstr("is damaged"));
  EXPECT_THAT(refusal(edited(whole, "[\"s0\", \"3\"]", "[\"s0\", \"4\"]")), HasSubstr("is damaged"));
  EXPECT_THAT(refusal(edited(whole, "[\"s0\", \"3\"]", "[\"s7\", \"3\"]")), HasSubstr("there is no size s7"));
  EXPECT_THAT(refusal(edited(whole, "\"argument\": 0", "\"argument\": 1")), HasSubstr("out of range"));
  EXPECT_THAT(refusal(edited(whole, "\"data\": 0", "\"data\": 8")), HasSubstr("outside the data"));
  EXPECT_THAT(refusal(edited(whole, "float32", "float64")), HasSubstr("is damaged"));
}

TEST_F(ExportFile, NeverCrashesOnForgedFiles) {
  const T weight = tensor({1.f, 2.f, 3.f});
  const auto f = [&](T x, const T& y) {
    x.slice(0, 1).add_(1);
    return std::tuple{x.select(1, 0), cat({x * weight, y}, 0).sum(-1), x.view({-1}).slice(0, 0, 2)};
  };
  export_program(f, std::tuple{zeros({4, 3}), zeros({2, 3})},
                 {{{0, Dim("n", {.min = 2, .max = 9})}}, {{0, Dim("m")}}})
      .save(path());
  const std::string whole = read(path());
  const size_t end = whole.rfind('}');  // of the text
  // A result may not claim the place of a view.
  EXPECT_THAT(refusal(edited(whole, "{\"output\": 1, \"input\": -1", "{\"output\": 2, \"input\": -1")),
              HasSubstr("is no tensor of its own"));
  std::mt19937 random(11);
  int loaded = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    const bool digits = round % 2 == 1;
    size_t at = 60 + random() % (end - 60);
    while (digits && std::isdigit(static_cast<unsigned char>(bytes[at])) == 0)
      at = 60 + random() % (end - 60);
    const std::string_view letters = "0123456789-s\"[]{},:etrufalsn";
    bytes[at] = letters[random() % (digits ? 10 : letters.size())];
    const auto sum = sha256(bytes.substr(0, 28) + bytes.substr(60));
    bytes.replace(28, 32, std::string(sum.begin(), sum.end()));
    const std::string file = write(bytes);
    try {
      const ExportedProgram program = ExportedProgram::load(file);
      (void)program.graph();
      if (++loaded > 40) continue;
      for (const int64_t n : {2, 9}) program(ones({n, 3}), ones({n, 3}));
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(loaded, 0);  // a changed name or range is no damage
}

}  // namespace
}  // namespace stax
