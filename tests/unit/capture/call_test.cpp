#include <gtest/gtest.h>

#include "capture/dispatch.h"
#include "stax/stax.h"
#include "tensor/tensor_impl.h"

namespace stax {
namespace {

using capture::Arguments;

std::vector<double> values(const Tensor& x) {
  std::vector<double> out;
  const Tensor flat = x.to(kFloat64).contiguous();
  const double* data = flat.data_ptr<double>();
  return {data, data + static_cast<int64_t>(flat.numel())};
}

TEST(Call, BindsByNameAsPythonDoes) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(values(capture::call("sum", {x})[0]), (std::vector<double>{10}));
  EXPECT_EQ(values(capture::call("sum", {x, Number::of(int64_t{0})})[0]), (std::vector<double>{4, 6}));
  EXPECT_EQ(
      values(capture::call("sum", {x}, {{"dim", std::vector<Expr>{1}}, {"keepdim", Number::of(true)}})[0]),
      (std::vector<double>{3, 7}));
  EXPECT_EQ(values(capture::call("add", {x, Number::of(1.0)}, {{"alpha", Number::of(int64_t{2})}})[0]),
            (std::vector<double>{3, 4, 5, 6}));
}

TEST(Call, SaysWhyNoFormFits) {
  const Tensor x = tensor({1.0});
  EXPECT_THROW(capture::call("no_such_operator", {x}), UserError);
  try {
    capture::call("sum", {x}, {{"axes", Number::of(int64_t{0})}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("sum.dim_IntList"), std::string::npos) << error.what();
  }
}

TEST(Call, InPlaceFormUpdatesItsArgument) {
  const Tensor x = tensor({1.0, 2.0});
  const Tensor same = capture::call("mul_", {x, Number::of(3.0)})[0];
  EXPECT_TRUE(same.is_same(x));
  EXPECT_EQ(values(x), (std::vector<double>{3, 6}));
}

TEST(Call, OutTakesTheResults) {
  const Tensor x = tensor({{1.0, 5.0}, {3.0, 2.0}}), out = zeros({2});
  const auto dim = [](int64_t d) { return std::pair("dim", Argument<Tensor>(d)); };
  const Tensor same = capture::call("amax", {x}, {dim(0), {"out", out}})[0];
  EXPECT_TRUE(same.is_same(out));
  EXPECT_EQ(values(out), (std::vector<double>{3, 5}));
  // A view is written through; pointwise results are converted.
  const Tensor columns = zeros({2, 2}, kFloat64);
  capture::call("add", {tensor({1, 2}), Number::of(int64_t{1})}, {{"out", columns.select(1, 0)}});
  EXPECT_EQ(values(columns), (std::vector<double>{2, 0, 3, 0}));
  const Tensor low = zeros({2}), high = zeros({2});
  capture::call("aminmax", {x}, {dim(1), {"out", Argument<Tensor>::Tensors{low, high}}});
  EXPECT_EQ(values(low), (std::vector<double>{1, 2}));
  EXPECT_EQ(values(high), (std::vector<double>{5, 3}));
  EXPECT_THROW(capture::call("amax", {x}, {dim(0), {"out", zeros({2}, kInt32)}}), UserError) << "dtype";
  EXPECT_THROW(capture::call("amax", {x}, {dim(0), {"out", zeros({3})}}), UserError) << "shape";
  EXPECT_THROW(capture::call("aminmax", {x}, {dim(0), {"out", low}}), UserError) << "one of two";
  EXPECT_THROW(capture::call("amax", {x}, {dim(0), {"out", zeros({1}).expand({2})}}), UserError) << "overlap";
}

TEST(InPlace, WritesThroughViewsAndChecks) {
  Tensor x = tensor({{1, 2}, {3, 4}});
  x[1].add_(10);
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 13, 14}));
  x.t().copy_(tensor({{1, 2}, {3, 4}}));
  EXPECT_EQ(values(x), (std::vector<double>{1, 3, 2, 4}));
  x += 1;
  EXPECT_EQ(values(x), (std::vector<double>{2, 4, 3, 5}));
  EXPECT_THROW(x.mul_(0.5), UserError) << "a float result does not fit an integer tensor";
  EXPECT_THROW(x.add_(tensor({{{1, 1}, {1, 1}}, {{1, 1}, {1, 1}}})), UserError) << "the shape would grow";
  EXPECT_THROW(tensor({1, 2}).expand({2, 2}).add_(1), UserError) << "elements share their place";
  EXPECT_THROW(x.copy_(tensor({1, 2, 3})), UserError);
  x.copy_(tensor({7.9, -1.9}));
  EXPECT_EQ(values(x), (std::vector<double>{7, -1, 7, -1}));
}

TEST(InPlace, OverlappingSourceIsReadBeforeItIsWritten) {
  Tensor x = tensor({0, 1, 2, 3, 4});
  x.index({Slice(1, None)}).copy_(x.index({Slice(None, -1)}));
  EXPECT_EQ(values(x), (std::vector<double>{0, 0, 1, 2, 3}));
}

TEST(InPlace, ReadOnlyMemoryIsRefused) {
  Tensor x = tensor({1.0, 2.0});
  dlpack::ManagedVersioned* managed = to_dlpack(x);
  managed->flags |= dlpack::kReadOnly;
  const Tensor y = from_dlpack(managed);
  EXPECT_THROW(y.add_(1), UserError);
  EXPECT_THROW(y.fill_(0), UserError);
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
}

TEST(Call, ContiguousIsARowMajorCopy) {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}).t();
  for (const Tensor& dense : {x.contiguous(), capture::call("contiguous", {x})[0]}) {
    EXPECT_TRUE(dense.strides() == IntList({2, 1}));
    EXPECT_EQ(values(dense), (std::vector<double>{1, 4, 2, 5, 3, 6}));
    EXPECT_FALSE(dense.is_alias_of(x));
  }
}

/// Records the calls it gets.
struct RecordingTrace final : capture::Trace {
  std::vector<std::string> names;
  std::vector<Tensor> call(const graph::Op& op, Arguments arguments) override {
    names.push_back(op.schema.full_name());
    capture::TraceScope suspend(nullptr);
    return capture::dispatch(op, std::move(arguments));
  }
  void write(const Tensor& self, const Tensor& source, std::string_view) override {
    names.push_back("write");
    capture::TraceScope suspend(nullptr);
    capture::write(self, source, "copy_");
  }
  std::vector<Tensor> gradients(const Tensor&, const std::vector<Tensor>&) override { return {}; }
  Argument<Tensor> scalar_argument(const Scalar&) override { return {}; }
  int64_t fix(Expr) override { return 4; }
  bool decide(const Condition&) override { return true; }
  void check(const Condition&, std::string_view, const std::source_location&) override {}
};

TEST(Trace, GetsEveryCallOfItsThread) {
  RecordingTrace trace;
  const Tensor x = tensor({1.0, 2.0});
  {
    const capture::TraceScope scope(&trace);
    Tensor y = x + 1;
    y.mul_(2);
    const SymInt s = to_sym_int(Expr(Symbol{SymbolKind::size, 0}));
    EXPECT_EQ(static_cast<int64_t>(s), 4);
    EXPECT_TRUE(s > 2);
  }
  EXPECT_EQ(trace.names, (std::vector<std::string>{"add.Tensor", "mul.Tensor", "write"}));
  EXPECT_EQ(capture::current_trace(), nullptr);
}

}  // namespace
}  // namespace stax
