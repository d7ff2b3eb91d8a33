// Every rule of the verifier rejects a program that breaks it, and names the rule.
#include <gtest/gtest.h>

#include "loops/parse.h"
#include "stax/error.h"

namespace stax::loops {
namespace {

constexpr std::string_view kHead = R"(
buffer a float32 [8, 4] input
buffer h float16 [8] input
buffer o float32 [8] output
buffer q int64 [8] intermediate
)";

std::string failure(std::string_view body) {
  try {
    verify(parse_program(std::string(kHead) + "node n \"sum\" [i0 < 8] [r0 < 4]\n" + std::string(body)));
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

TEST(Verify, AcceptsAGoodProgram) {
  EXPECT_EQ(failure("v0 = load float32 a[4*i0 + r0]\nv1 = reduce_sum float32 v0\nstore o[i0] v1"), "");
}

TEST(Verify, RejectsEachBrokenRule) {
  const std::pair<std::string, std::string> broken[] = {
      {"v0 = load float32 a[4*i0 + r0]\nstore o[i0] v0", "reduction space"},
      {"v0 = load float32 a[i1]\nstore o[i0] v0", "bound by nothing"},
      {"v0 = load float32 a[s0]\nstore o[i0] v0", "bound by nothing"},
      {"v0 = load float32 a[t0]\nstore o[i0] v0", "bound by nothing"},
      {"v0 = load int32 a[i0]\nstore o[i0] v0", "loaded as"},
      {"v0 = load float16 h[i0]\nstore o[i0] v0", "half types"},
      {"v0 = load float32 a[i0]\nstore h[i0] v0", "not marked mutated"},
      {"v0 = load float32 a[i0]\nv1 = eq float32 v0 v0\nstore o[i0] v1", "gives bool"},
      {"v0 = load float32 a[i0]\nv1 = cast int64 v0\nv2 = add float32 v0 v1\nstore o[i0] v2",
       "differ in dtype"},
      {"v0 = load float32 a[i0]\nv1 = add float32 v0\nstore o[i0] v1", "operands where"},
      {"v0 = load float32 a[i0]\nv1 = where float32 v0 v0 v0\nstore o[i0] v1", "not bool"},
      {"v0 = load float32 a[i0]\nv1 = bitcast int64 v0\nstore o[i0] v0", "different sizes"},
      {"v0 = load float32 a[i0]\nv1 = result float32 v0 number 1\nstore o[i0] v0", "other than a reduction"},
      {"v0 = load float32 a[i0]\nv1 = reduce_sum float32 v0\nv2 = result float32 v1 number 1\nstore o[i0] v1",
       "no result 1"},
      {"v0 = load float32 a[i0]\nv1 = reduce_sum float32 v0\nv2 = reduce_max float32 v1\nstore o[i0] v2",
       "depends on a reduce result"},
      {"v0 = load int64 q[i0]\nv1 = load float32 a[i0]\nstore o[i0] v1", "read before it is written"},
      {"v0 = scalar float32 0\nstore o[i0] v0", "does not exist"},
      {"v0 = load float32 a[i0]", "never written"},
  };
  for (const auto& [body, words] : broken) {
    const std::string message = failure(body);
    EXPECT_NE(message.find(words), std::string::npos) << body << "\ngave: " << message;
    EXPECT_NE(message.find("[loops verifier]"), std::string::npos);
  }
}

}  // namespace
}  // namespace stax::loops
