// Exported programs in which data determines sizes: recorded once, right for every count, also from a file.
#include <filesystem>

#include "cpu/export_testing.h"

namespace stax {
namespace {

using ::testing::HasSubstr;
using T = Tensor;

T floats(const std::vector<float>& v) {
  return tensor(v);
}

/// The program, as it is and read back from a file.
std::vector<ExportedProgram> both(const ExportedProgram& program) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("export_data_" + std::to_string(::getpid()) + ".stax");
  program.save(path);
  std::vector<ExportedProgram> out{program, load_program(path)};
  std::filesystem::remove(path);
  EXPECT_EQ(out[1].graph(), program.graph());
  EXPECT_EQ(out[1].assertions(), program.assertions());
  return out;
}

TEST(ExportData, HoldsForEveryCount) {
  const auto f = [](const T& x) {
    const T y = masked_select(x, x > 0) * 2;
    return std::tuple{y, y.sum()};
  };
  const auto n = Dim("n", {.min = 2, .max = 100});
  const auto e = export_program(f, std::tuple{zeros({5})}, {{{0, n}}}, {.names = {"x"}});
  for (const ExportedProgram& program : both(e)) {
    const ExportedResults some = program(floats({1, -2, 3}));
    expect_values(some[0], {2}, {2, 6});
    expect_values(some[1], {}, {8});
    expect_values(program(floats({-1, -2}))[0], {0}, {});
    expect_values(program(floats({1, 2, 3, 4, 5, 6}))[1], {}, {42});
  }
  EXPECT_NE(e.target(), "");
}

TEST(ExportData, WritesDownWhereSizesComeFrom) {
  const auto f = [](const T& x) { return zeros({nonzero(x).size(0), 2}); };
  const auto e = export_program(f, std::tuple{zeros({4})}, {}, {.names = {"x"}});
  EXPECT_EQ(e.graph(),
            "nonzero = x.nonzero()\n"
            "getattr_0 = getattr_1(nonzero, 'shape')\n"
            "getitem = getattr_0[0]\n"
            "full = stax_full([getitem, 2], 0, dtype=stax.float32)\n"
            "return full\n");
  for (const ExportedProgram& program : both(e)) {
    expect_values(program(floats({0, 1, 1, 0})), {2, 2}, {0, 0, 0, 0});
  }
}

TEST(ExportData, AssertsWhatChecksState) {
  const auto f = [](const T& x, const T& count) {
    const SymInt k = count.item().toSymInt();
    check(k >= 0, "no negative lengths");
    check(k <= x.size(0));
    return x.slice(0, 0, k).sum();
  };
  const auto n = Dim("n", {.min = 2});
  const auto e =
      export_program(f, std::tuple{zeros({5}), tensor(2)}, {{{0, n}}, {}}, {.names = {"x", "count"}});
  for (const ExportedProgram& program : both(e)) {
    expect_values(program(floats({1, 2, 3}), tensor(2)), {}, {3});
    expect_values(program(floats({1, 2, 3, 4}), tensor(4)), {}, {10});
    expect_values(program(floats({1, 2, 3, 4}), tensor(0)), {}, {0});
    const std::string negative = error_of([&] { program(floats({1, 2}), tensor(-1)); });
    EXPECT_THAT(negative, HasSubstr("no negative lengths"));
    EXPECT_THAT(negative, HasSubstr("export_data_test.cpp:"));
    EXPECT_THAT(error_of([&] { program(floats({1, 2}), tensor(3)); }), HasSubstr("check failed"));
  }
  EXPECT_THAT(e.assertions(), ::testing::Contains("u0 >= 0"));
}

TEST(ExportData, AssertsWhatOperatorsNeed) {
  // Two masks have to select as many elements.
  const auto f = [](const T& x, const T& y) { return masked_select(x, x > 0) + masked_select(y, y > 0); };
  const auto e = export_program(f, std::tuple{zeros({3}), zeros({3})});
  for (const ExportedProgram& program : both(e)) {
    expect_values(program(floats({1, 0, 2}), floats({0, 5, 7})), {2}, {6, 9});
    EXPECT_THAT(error_of([&] { program(floats({1, 0, 2}), floats({0, 0, 7})); }), HasSubstr("check failed"));
  }
}

TEST(ExportData, ReturnsSizes) {
  const auto f = [](const T& x) { return nonzero(x).size(0) + x.size(0); };
  const auto n = Dim("n");
  const auto e = export_program(f, std::tuple{zeros({4})}, {{{0, n}}}, {.names = {"x"}});
  for (const ExportedProgram& program : both(e)) {
    expect_values(program(floats({0, 1, 1})), {}, {5});
    expect_values(program(floats({7})), {}, {2});
  }
}

}  // namespace
}  // namespace stax
