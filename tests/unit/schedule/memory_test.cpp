// Places of intermediates: nothing that is alive at one time overlaps, and room is used again.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loops/parse.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"

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

TEST(MemoryPlan, SymbolicSizesReuseOnlyWhatProvablyFits) {
  const loops::Program p = chain({"s0", "s0", "s0", "s1"}, "bind s0 size 0 0\nbind s1 value 0 0\n");
  const Schedule s = schedule(p);
  ASSERT_EQ(s.slots.size(), 4u);
  EXPECT_EQ(s.slots[2].offset, s.slots[0].offset);  // as large as the first, which is free by then
  EXPECT_NE(s.slots[3].offset, s.slots[1].offset);  // s1 may exceed s0
  EXPECT_NE(s.slots[3].offset, s.slots[0].offset);
  const auto value = [](Symbol symbol) { return int64_t{symbol.number == 0 ? 10 : 1000}; };
  for (const Slot& slot : s.slots) {
    EXPECT_EQ(evaluate(slot.offset, value) % 64, 0);
    EXPECT_LE(evaluate(slot.offset + slot.size, value), evaluate(s.arena_bytes, value));
  }
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
