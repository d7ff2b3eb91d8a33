// Which types the arguments of a compiled function have: those that it declares. And what is left of the
// options of a compiled function that is called inside another one.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>

#include "cpu/compile_testing.h"

namespace stax {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using T = Tensor;

std::atomic<int> traces = 0;

/// Calls of the function since the last time this was asked.
int traces_since() {
  return traces.exchange(0);
}

T scaled(const T& x, const Scalar& rate) {
  ++traces;
  return x * rate;
}

struct Scaling {
  T operator()(const T& x, Scalar rate) const { return scaled(x, rate); }
};

template <class F>
void expect_one_program_for_plain_numbers(F function) {
  const auto compiled = compile(function, strict());
  const T x = tensor({2.f, 4.f});
  (void)traces_since();
  expect_floats(compiled(x, 0.5), {1, 2});
  expect_floats(compiled(x, 2.5), {5, 10});
  expect_floats(compiled(x, -1.f), {-2, -4});
  expect_floats(compiled(x, Scalar(0.25)), {0.5, 1});
  EXPECT_EQ(traces_since(), 1);
  EXPECT_EQ(compiled.artifacts().size(), 1u);
  // Integers and bools are Scalars of other kinds: they promote otherwise.
  expect_floats(compiled(x, 3), {6, 12});
  expect_floats(compiled(x, int64_t{-2}), {-4, -8});
  EXPECT_EQ(traces_since(), 1);
  expect_floats(compiled(x, true), {2, 4});
  EXPECT_EQ(traces_since(), 1);
  EXPECT_TRUE(compiled.explain(x, 7.5).cached);
}

TEST(CompileArguments, PlainNumbersForAScalarAreOneProgramEach) {
  expect_one_program_for_plain_numbers(scaled);
  expect_one_program_for_plain_numbers(&scaled);
  expect_one_program_for_plain_numbers([](const T& x, Scalar rate) { return scaled(x, rate); });
  expect_one_program_for_plain_numbers(
      [](const T& x, const Scalar& rate) noexcept { return scaled(x, rate); });
  expect_one_program_for_plain_numbers([n = 0](T x, Scalar rate) mutable { return ++n, scaled(x, rate); });
  expect_one_program_for_plain_numbers(Scaling());
  expect_one_program_for_plain_numbers(std::function<T(const T&, const Scalar&)>(scaled));
  const Scaling scaling;
  expect_one_program_for_plain_numbers(std::cref(scaling));
  expect_one_program_for_plain_numbers(compile(scaled));
}

TEST(CompileArguments, PlainIntegersForASymIntAreOneProgram) {
  const auto compiled = compile(
      [](const T& x, SymInt n) {
        ++traces;
        return x.slice(0, 0, n).sum(0) + n;
      },
      strict());
  const T x = tensor({1.f, 2.f, 4.f, 8.f});
  (void)traces_since();
  EXPECT_EQ(compiled(x, 2).item<float>(), 5);
  EXPECT_EQ(compiled(x, 3).item<float>(), 10);
  EXPECT_EQ(compiled(x, int64_t{4}).item<float>(), 19);
  EXPECT_EQ(traces_since(), 1);
}

struct Model {
  T weight;
  T scaled_by(const T& x, const Scalar& rate) const { return scaled(x * weight, rate); }
};

}  // namespace

template <>
struct Traversable<Model> {
  static void fields(auto& model, auto&& visit) { visit(model.weight); }
};

namespace {

TEST(CompileArguments, OfMembersAndGradientsAreConvertedToo) {
  const T x = tensor({2.f, 4.f});
  const auto member = compile(&Model::scaled_by, strict());
  const Model model{tensor({10.f, 100.f})};
  (void)traces_since();
  expect_floats(member(model, x, 0.5), {10, 200});
  expect_floats(member(model, x, 1.5), {30, 600});
  EXPECT_EQ(traces_since(), 1);
  const auto gradient =
      compile(grad([](const T& w, const Scalar& rate) { return scaled(w * w, rate).sum(); }));
  expect_floats(gradient(x, 0.5), {2, 4});  // 2 * rate * w
  expect_floats(gradient(x, 1.5), {6, 12});
  EXPECT_EQ(traces_since(), 1);
}

TEST(CompileArguments, NumbersOfEveryTypeAreThoseOfTheParameter) {
  const auto compiled = compile(
      [](const T& x, double factor, const std::string& way, std::optional<T> more) {
        ++traces;
        const T y = way == "times" ? x * factor : x + factor;
        return more ? y + *more : y;
      },
      strict());
  const T x = tensor({2.f, 4.f});
  (void)traces_since();
  expect_floats(compiled(x, 3, "times", std::nullopt), {6, 12});
  expect_floats(compiled(x, 3.f, std::string("times"), std::nullopt), {6, 12});
  expect_floats(compiled(x, 3.0, "times", std::optional<T>()), {6, 12});
  EXPECT_EQ(traces_since(), 1);
  expect_floats(compiled(x, 3.5, "plus", x), {7.5, 11.5});
  expect_floats(compiled(x, 3.5, std::string("plus"), std::optional<T>(x)), {7.5, 11.5});
  EXPECT_EQ(traces_since(), 1);
}

/// Without a signature the argument is what it is: a constant.
TEST(CompileArguments, OfGenericLambdasStayAsTheyArePassed) {
  const auto compiled = compile(
      [](const T& x, auto rate) {
        ++traces;
        static_assert(!std::is_same_v<decltype(rate), float>);
        return x * rate;
      },
      strict());
  const T x = tensor({2.f, 4.f});
  (void)traces_since();
  expect_floats(compiled(x, 0.5), {1, 2});
  expect_floats(compiled(x, 2.5), {5, 10});
  EXPECT_EQ(traces_since(), 2);
  expect_floats(compiled(x, Scalar(0.25)), {0.5, 1});
  expect_floats(compiled(x, Scalar(3.0)), {6, 12});
  EXPECT_EQ(traces_since(), 1);
}

TEST(CompileArguments, ASizeStaysASizeForAScalar) {
  const auto compiled = compile(
      [](const T& x, const Scalar& n) {
        ++traces;
        return x.slice(0, 0, n.toSymInt());
      },
      strict());
  const T x = tensor({1.f, 2.f, 4.f, 8.f});
  (void)traces_since();
  expect_floats(compiled(x, SymInt(2)), {1, 2});
  expect_floats(compiled(x, SymInt(3)), {1, 2, 4});
  EXPECT_EQ(traces_since(), 1);
}

std::string stderr_of(const std::function<void()>& run) {
  testing::internal::CaptureStderr();
  run();
  return testing::internal::GetCapturedStderr();
}

T twice(const T& x) {
  return x * 2;
}

struct Doubling {
  T operator()(const T& x) const { return x * 2; }
};

TEST(CompileInlined, WarnsOnceOfOptionsThatAreLost) {
  const auto inner = compile(Doubling(), {.dynamic = true, .batch_invariant = true});
  const auto outer = compile([&](const T& x) { return inner(x) + inner(x + 1); });
  const std::string warning = stderr_of([&] { expect_floats(outer(tensor({1.f, 2.f})), {6, 10}); });
  EXPECT_THAT(warning, AllOf(HasSubstr("Doubling"), HasSubstr("dynamic = true, batch_invariant = true have"),
                             Not(HasSubstr("fullgraph"))));
  EXPECT_EQ(warning.find("warning"), warning.rfind("warning")) << warning;
  EXPECT_EQ(stderr_of([&] { outer(tensor({1.f, 2.f, 3.f})); }), "");
}

TEST(CompileInlined, IsSilentWhereTheOuterFunctionHasTheOptions) {
  const T x = tensor({1.f, 2.f});
  const auto run = [&](const CompileOptions& inner_options, const CompileOptions& outer_options) {
    const auto inner = compile(twice, inner_options);
    const auto outer = compile([&](const T& y) { return inner(y) + 1; }, outer_options);
    return stderr_of([&] { expect_floats(outer(x), {3, 5}); });
  };
  EXPECT_EQ(run({}, {.dynamic = true, .fullgraph = true}), "");
  EXPECT_EQ(run({.dynamic = true}, {.dynamic = true}), "");
  EXPECT_EQ(run({.fullgraph = true}, {.strict_native = true}), "");
  EXPECT_EQ(run({.tuning = "none"}, {.tuning = "none"}), "");
  EXPECT_THAT(run({.tuning = "none"}, {}), HasSubstr("tuning = \"none\" has no effect"));
  EXPECT_THAT(run({.matmul_precision = "high"}, {}), HasSubstr("matmul_precision = \"high\""));
  EXPECT_THAT(run({.backend = "debug"}, {}), HasSubstr("backend = \"debug\""));
  EXPECT_THAT(run({.strict_native = true}, {.fullgraph = true}), HasSubstr("strict_native = true has"));
}

TEST(CompileInlined, WarnsWhereAnExportRecordsIt) {
  const auto inner = compile(Doubling(), {.batch_invariant = true});
  const std::string warning =
      stderr_of([&] { (void)export_program([&](const T& x) { return inner(x); }, std::tuple{zeros({2})}); });
  EXPECT_THAT(warning, HasSubstr("batch_invariant = true has no effect"));
}

}  // namespace
}  // namespace stax
