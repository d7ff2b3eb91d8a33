// The text form of programs reads back to the same program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "loops/constant_text.h"
#include "loops/parse.h"
#include "loops/parse_expr.h"
#include "stax/error.h"

namespace stax::loops {
namespace {

constexpr std::string_view kEverything = R"(buffer in0 float32 [64, s0] strides [s0, 1] input
buffer in1 bool [64] strides [1] input mutated
buffer c0 int64 [2] strides [1] constant data 01000000000000000200000000000000
buffer out0 float16 [64] strides [1] output
buffer buf0 int64 [64] strides [1] intermediate
inputs [in0, in1]
outputs [out0]
scalars [float64, int64]
bind s0 size 0 1
node op0 "sum \"x\"" [i0 < 64] [r0 < s0]
  v0 = load float32 in0[i0*s0 + r0]
  v1 = reduce_argmax int64 v0
  v2 = result float32 v1 number 1
  v3 = load bool in1[i0]
  store out0[i0] v2 mask v3
  v5 = check_index int64 v1 mask v3 size 64 number 1
  v6 = load float32 in0[s0*t0] mask v3 indirect v5
  v7 = constant float32 -0.0
  v8 = constant float32 inf
  v9 = constant int64 -9223372036854775808
  v10 = scalar float64 0
  v11 = index_value int64 i0//8
  v12 = random_bits int64 v9 v11 number 3
  atomic_add buf0[t0] v12 indirect v5
external op1 "sort" "sort.stable"
  argument tensor in0 float32 [64] strides [s0] offset 3
  argument none
  argument tensors {in0 float32 [] strides [] offset 0; none}
  argument bool 1
  argument int -3
  argument float 0.5
  argument ints [1, s0]
  argument floats [1.0, -0.0]
  argument dtype bfloat16
  argument string "a \"b\""
  result buf0 int64 [64] strides [1] offset 0
)";

TEST(LoopText, RoundTrips) {
  const Program p = parse_program(kEverything);
  const std::string once = p.str();
  EXPECT_EQ(parse_program(once).str(), once);
  EXPECT_EQ(parse_program(once).nodes[0].body, p.nodes[0].body);
  ASSERT_EQ(p.nodes.size(), 2u);
  EXPECT_EQ(p.nodes[0].origin, "sum \"x\"");
  EXPECT_EQ(p.nodes[0].body[6].op, OpCode::load);
  EXPECT_EQ(p.nodes[0].body[6].args, std::vector<ValueId>{3});
  EXPECT_EQ(p.nodes[0].body[6].indirect, std::vector<ValueId>{5});
  EXPECT_EQ(p.nodes[0].body[9].constant.as_int(), INT64_MIN);
  EXPECT_EQ(p.nodes[1].arguments.size(), 10u);
  EXPECT_TRUE(p.nodes[1].arguments[3].boolean());
  EXPECT_EQ(p.nodes[1].arguments[9].string(), "a \"b\"");
  EXPECT_EQ(p.buffers[2].data->size(), 16u);
  EXPECT_EQ(p.bindings[0].dim, 1);
}

// Sizes that only data determines: who allocates, what binds their symbols, what is checked of them.
TEST(LoopText, RoundTripsSymbolsThatResultsBind) {
  const std::string text = R"(buffer in0 float32 [s0] strides [1] input
buffer buf0 int64 [u0, 1] strides [1, 1] intermediate
buffer out0 int64 [u0] strides [1] output
inputs [in0]
outputs [out0]
bind s0 size 0 0
assert [u0] <= [s0 - 1] "at most \"all\" but one" "model.cpp:7"
assert [u1 % 2] == [0] "" ""
external op0 "nonzero" "dynamic_kernels.nonzero"
  argument tensor in0 float32 [s0] strides [1] offset 0
  result buf0 int64 [u0, 1] strides [1, 1] offset 0
  dynamic
  binds u0 0 0
  binds u1 0 -1
node op1 "copy" [i0 < u0]
  v0 = load int64 buf0[i0]
  store out0[i0] v0
)";
  const Program p = parse_program(text);
  EXPECT_EQ(p.str(), text);
  ASSERT_EQ(p.nodes.at(0).binds.size(), 2u);
  EXPECT_TRUE(p.nodes[0].dynamic);
  EXPECT_EQ(p.nodes[0].binds[1].symbol, (Symbol{SymbolKind::unbacked, 1}));
  EXPECT_EQ(p.nodes[0].binds[1].dim, -1);
  ASSERT_EQ(p.assertions.size(), 2u);
  EXPECT_EQ(p.assertions[0].words, "at most \"all\" but one");
  EXPECT_EQ(p.assertions[0].where, "model.cpp:7");
  EXPECT_EQ(p.assertions[1].condition, eq(mod(Expr(Symbol{SymbolKind::unbacked, 1}), 2), 0));
}

TEST(LoopText, PrintsWhatItRead) {
  EXPECT_EQ(parse_program(kEverything).str(), kEverything);
}

TEST(LoopText, DefaultsRowMajorAndLists) {
  const Program p = parse_program("buffer a float32 [2, 3] input  # comment\n\nbuffer b bool [4] output\n");
  EXPECT_EQ(p.buffers[0].strides, (std::vector<Expr>{3, 1}));
  EXPECT_EQ(p.inputs, std::vector<BufferId>{0});
  EXPECT_EQ(p.outputs, std::vector<BufferId>{1});
}

TEST(LoopText, ReadsWritesInOrderOfFirstUse) {
  const Program p = parse_program(kEverything);
  EXPECT_EQ(p.nodes[0].reads(), (std::vector<BufferId>{0, 1, 4}));
  EXPECT_EQ(p.nodes[0].writes(), (std::vector<BufferId>{3, 4}));
  EXPECT_EQ(p.nodes[1].reads(), (std::vector<BufferId>{0}));
  EXPECT_EQ(p.nodes[1].writes(), (std::vector<BufferId>{4}));
}

TEST(LoopText, ErrorsNameTheLine) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"buffer a float33 [1] input", "line 1: expected a dtype instead of float33"},
           {"buffer a float32 [1] input\nnode n [i0 < 1]\nv0 = blur float32 v1", "line 3"},
           {"buffer a float32 [1] input\nnode n [i0 < 1]\nv0 = neg float32 v7", "defined before it"},
           {"node n [i0 < 1]\nv0 = load float32 a[0]", "declared buffer"},
           {"node n [i1 < 1]", "i0 <"},
           {"bind s0-1 size 0 1", "line 1: expected a symbol instead of s0 - 1"},
           {"v0 = neg float32 v1", "declaration"},
           {"node n \"abc", "closing quote"}}) {
    try {
      parse_program(text);
      FAIL() << text;
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  }
}

/// The text with a few changes: bytes, words and lines removed, doubled or put elsewhere.
std::string damaged(std::string text, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  constexpr std::string_view kPieces[] = {"0",
                                          "-1",
                                          "9223372036854775808",
                                          "[",
                                          "]",
                                          "\"",
                                          "%",
                                          "//",
                                          "i0",
                                          "t9",
                                          "mask",
                                          "number",
                                          "none",
                                          "\n",
                                          "{",
                                          ";",
                                          "node op9 [i0 < 0]\n",
                                          "v3",
                                          "c0",
                                          "\0"};
  for (size_t k = 1 + below(3); k > 0 && !text.empty(); --k) {
    const size_t at = below(text.size()), end = std::min(text.size(), text.find_first_of(" \n", at) + 1);
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, std::max<size_t>(end, at) - at);
        break;
      case 2:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 3:
        text.insert(below(text.size()), text.substr(at, 1 + below(40)));
        break;
      case 4:
        text.resize(at);
        break;
      case 5: {
        const size_t line = text.rfind('\n', at) + 1;  // 0 for the first one
        text.erase(line, text.find('\n', at) - line);
        break;
      }
    }
  }
  return text;
}

// Changed anywhere: a UserError, or a program that the verifier refuses or accepts and that prints.
TEST(LoopText, SurvivesDamage) {
  std::mt19937 random(2026);
  int read = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = damaged(std::string(kEverything), random);
    try {
      const Program program = parse_program(text);
      EXPECT_FALSE(program.str().empty());
      ++read;
      try {
        verify(program);
      } catch (const InternalError&) {  // what it says of a program that does not hold together
      }
    } catch (const UserError&) {
      ++refused;
    } catch (const std::exception& error) {
      FAIL() << "round " << i << " of seed 2026: " << error.what() << "\n" << text;
    }
  }
  EXPECT_GT(read, 1'000);
  EXPECT_GT(refused, 1'000);
}

TEST(LoopText, Expressions) {
  const Expr i = Symbol{SymbolKind::index, 0}, r = Symbol{SymbolKind::reduction, 1};
  EXPECT_EQ(parse_expr("128*i0 + r1"), 128 * i + r);
  EXPECT_EQ(parse_expr("(i0 + 3)//4"), floor_div(i + 3, 4));
  EXPECT_EQ(parse_expr("-i0 % 8"), mod(-i, 8));
  EXPECT_EQ(parse_expr("max(i0, 2) - min(r1, 3)"), max(i, 2) - min(r, 3));
  EXPECT_THROW(parse_expr("i0 +"), UserError);
  EXPECT_THROW(parse_expr("i"), UserError);
  EXPECT_THROW(parse_expr("3 4"), UserError);
  EXPECT_THROW(parse_expr(std::string(100000, '(')), UserError);
}

TEST(LoopText, ConstantsKeepTheirBits) {
  for (double v :
       {0.0, -0.0, 0.1, 1e300, 5e-324, 1.0 / 3, double(1e30f), double(INFINITY), double(-INFINITY)}) {
    const auto back = parse_constant(DType::float64, constant_text(DType::float64, Constant::of(v)));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->bits, Constant::of(v).bits) << v;
  }
  EXPECT_TRUE(std::isnan(parse_constant(DType::float64, "nan")->as_double()));
  EXPECT_FALSE(parse_constant(DType::int64, "1.5"));
}

}  // namespace
}  // namespace stax::loops
