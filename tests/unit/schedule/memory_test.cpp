// Places of intermediates: nothing that is alive at one time overlaps, and room is used again.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loops/parse.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"
#include "symbolic/shape_env.h"

namespace stax::schedule {
namespace {

Schedule schedule(const loops::Program& program) {
  loops::verify(program);
  Schedule s = make_schedule(program, {});
  verify(s, program);
  return s;
}

/// A chain of external calls, so that nothing fuses, over buffers of the given sizes.
loops::Program chain(const std::vector<std::string>& sizes, const std::string& bindings = {}) {
  std::string text = fmt::format("buffer in0 float32 [{}] input\n", sizes.front());
  text += fmt::format("buffer out0 float32 [{}] output\n", sizes.back());
  for (size_t k = 0; k < sizes.size(); ++k) {
    text += fmt::format("buffer buf{} float32 [{}] intermediate\n", k, sizes[k]);
  }
  text += bindings;
  for (size_t k = 0; k <= sizes.size(); ++k) {
    const std::string from = k == 0 ? "in0" : fmt::format("buf{}", k - 1);
    const std::string to = k == sizes.size() ? "out0" : fmt::format("buf{}", k);
    const std::string& a = sizes[k == 0 ? 0 : k - 1];
    const std::string& b = sizes[k == sizes.size() ? k - 1 : k];
    text += fmt::format("external op{} \"f\" \"f\"\n", k);
    text += fmt::format("  argument tensor {} float32 [{}] strides [1] offset 0\n", from, a);
    text += fmt::format("  result {} float32 [{}] strides [1] offset 0\n", to, b);
  }
  return loops::parse_program(text);
}

TEST(MemoryPlan, ChainTakesTwoPlaces) {
  const Schedule s = schedule(chain({"100", "100", "100", "100"}));
  ASSERT_EQ(s.slots.size(), 4u);
  EXPECT_EQ(s.arena_bytes, Expr(2 * 448));  // 400 bytes, rounded up to a multiple of 64, twice
}

TEST(MemoryPlan, ShortLivedBuffersShareALargeOnesRoom) {
  const Schedule s = schedule(chain({"1000", "10", "20", "16"}));
  // 4000 bytes (4032 aligned) with 40 (64) beside it; the later ones lie where the first was.
  EXPECT_EQ(s.arena_bytes, Expr(4032 + 64));
}

/// No two slots that are alive together overlap, and all lie in the arena, where s0, s1, ... have `values`.
void expect_apart(const Schedule& s, const std::vector<int64_t>& values) {
  const auto value = [&](Expr e) {
    return evaluate(e, [&](Symbol symbol) { return values.at(static_cast<size_t>(symbol.number)); });
  };
  for (const Slot& a : s.slots) {
    EXPECT_EQ(value(a.offset) % 64, 0);
    EXPECT_LE(value(a.offset + a.size), value(s.arena_bytes));
    for (const Slot& b : s.slots) {
      if (a.buffer >= b.buffer || a.last < b.first || b.last < a.first) continue;
      const bool apart =
          value(a.offset + a.size) <= value(b.offset) || value(b.offset + b.size) <= value(a.offset);
      EXPECT_TRUE(apart) << a.buffer << " and " << b.buffer << " at " << ::testing::PrintToString(values);
    }
  }
}

TEST(MemoryPlan, SymbolicSizesShareShelvesThatAreAsLargeAsNeeded) {
  const loops::Program p = chain({"s0", "s0", "s0", "s1"}, "bind s0 size 0 0\nbind s1 value 0 0\n");
  const Schedule s = schedule(p);
  ASSERT_EQ(s.slots.size(), 4u);
  EXPECT_EQ(s.slots[2].offset, s.slots[0].offset);  // as large as the first, which is free by then
  EXPECT_EQ(s.slots[3].offset, s.slots[1].offset);  // the larger of the two, whichever it is
  for (const auto& sizes : {std::vector<int64_t>{10, 1000}, {1000, 10}, {0, 7}, {7, 0}, {16, 16}}) {
    expect_apart(s, sizes);
  }
  // Two shelves: s0, and the larger of s0 and s1; of 4 bytes an element, in multiples of 64.
  const auto arena = [&](int64_t s0, int64_t s1) {
    return evaluate(s.arena_bytes, [&](Symbol symbol) { return symbol.number == 0 ? s0 : s1; });
  };
  EXPECT_EQ(arena(10, 1000), 64 + 4032);
  EXPECT_EQ(arena(1000, 10), 2 * 4032);
}

TEST(MemoryPlan, SymbolicSizesByTheirHints) {
  ShapeEnv env;
  for (const int64_t hint : {100, 1000, 10}) env.new_symbol(SymbolKind::size, hint, Interval::at_least(0));
  const loops::Program p =
      chain({"s0", "s1", "s2", "s0", "s2", "s1"}, "bind s0 size 0 0\nbind s1 value 0 0\nbind s2 value 1 0\n");
  const Schedule s = make_schedule(p, {}, Sizes(env));
  uint64_t seed = 1;
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> sizes;
    for (int k = 0; k < 3; ++k) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      sizes.push_back(static_cast<int64_t>(seed >> 33) % (round % 2 ? 10 : 100000));
    }
    expect_apart(s, sizes);
  }
  // At the hints no less than the two that are alive at a time, and no more than two shelves of the largest.
  const std::vector<int64_t> hints = {100, 1000, 10};
  const int64_t arena =
      evaluate(s.arena_bytes, [&](Symbol symbol) { return hints.at(static_cast<size_t>(symbol.number)); });
  EXPECT_GE(arena, 4000 + 400);
  EXPECT_LE(arena, 4032 + 4032);
}

TEST(MemoryPlan, OrderKeepsThePeakLow) {
  // Two large buffers, each reduced to a small one: program order holds both large ones at once.
  std::string text = "buffer in0 float32 [16] input\nbuffer out0 float32 [16] output\n";
  for (const char* b : {"buf0", "buf1"}) text += fmt::format("buffer {} float32 [4096] intermediate\n", b);
  for (const char* b : {"buf2", "buf3"}) text += fmt::format("buffer {} float32 [16] intermediate\n", b);
  const auto call = [&](int k, std::vector<std::pair<std::string, int>> from, const std::string& to,
                        int size) {
    text += fmt::format("external op{} \"f\" \"f\"\n", k);
    for (const auto& [name, n] : from) {
      text += fmt::format("  argument tensor {} float32 [{}] strides [1] offset 0\n", name, n);
    }
    text += fmt::format("  result {} float32 [{}] strides [1] offset 0\n", to, size);
  };
  call(0, {{"in0", 16}}, "buf0", 4096);
  call(1, {{"in0", 16}}, "buf1", 4096);
  call(2, {{"buf0", 4096}}, "buf2", 16);
  call(3, {{"buf1", 4096}}, "buf3", 16);
  call(4, {{"buf2", 16}, {"buf3", 16}}, "out0", 16);
  const Schedule s = schedule(loops::parse_program(text));
  EXPECT_EQ(s.arena_bytes, Expr(4096 * 4 + 2 * 64));
}

}  // namespace
}  // namespace stax::schedule
