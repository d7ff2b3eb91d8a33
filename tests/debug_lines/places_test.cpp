// Where Stax has debug lines itself, errors name the user's line and none of Stax. This program has its own
// copy of Stax's sources, compiled with debug lines, and stands for a Stax whose functions debug lines name
// without their namespace, as they do for inlined ones.
#include <gtest/gtest.h>

#include "support/call_stack.cpp"

stax::CallStack operator_of_stax();
stax::CallStack example_beside_stax();
stax::CallStack program_elsewhere();

namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.ends_with(end);
}

TEST(Places, OfProgramsThatCallStax) {
  const int line = __LINE__ + 1;
  const stax::CallStack stack = operator_of_stax();
  EXPECT_PRED2(ends_with, stack.user_place(), "tests/debug_lines/places_test.cpp:" + std::to_string(line));
}

TEST(Places, OfProgramsThatLieBesideStax) {
  EXPECT_PRED2(ends_with, example_beside_stax().user_place(), "/examples/program.cpp:42");
}

TEST(Places, OfProgramsThatLieElsewhere) {
  EXPECT_EQ(program_elsewhere().user_place(), "/elsewhere/src/program.cpp:57");
}

}  // namespace

#line 10 STAX_PRETENDED_SOURCE
stax::CallStack operator_of_stax() {
  return stax::CallStack::take();
}
#line 41 STAX_PRETENDED_EXAMPLE
stax::CallStack example_beside_stax() {
  return operator_of_stax();
}
#line 56 "/elsewhere/src/program.cpp"
stax::CallStack program_elsewhere() {
  return operator_of_stax();
}
