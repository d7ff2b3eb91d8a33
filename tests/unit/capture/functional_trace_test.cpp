// What a trace records: graphs written out by hand.
#include "capture/functional_trace.h"

#include <gtest/gtest.h>

#include "stax/error.h"
#include "stax/factories.h"
#include "stax/functions.h"
#include "stax/operators.h"

namespace stax::capture {
namespace {

/// Traces `function` on `inputs`; evaluation is not expected.
template <class F>
Captured trace(const std::vector<Tensor>& inputs, F&& function) {
  const auto trace = FunctionalTrace::start(TraceOptions{.refuse_reads = true});
  const TraceScope scope(trace.get());
  std::vector<Tensor> arguments;
  for (const Tensor& t : inputs)
    arguments.push_back(trace->argument(t, static_cast<int32_t>(arguments.size())));
  const std::vector<Tensor> results = function(arguments);
  Captured captured = trace->finish(results);
  graph::verify(captured.graph);
  return captured;
}

using Args = const std::vector<Tensor>&;

TEST(FunctionalTrace, RecordsOperators) {
  const Captured c =
      trace({zeros({2, 3}), zeros({3})}, [](Args a) { return std::vector{(a[0] + a[1]) * 2}; });
  EXPECT_EQ(c.graph.str(),
            "%arg: float32[2, 3] = input 0\n"
            "%arg_1: float32[3] = input 1\n"
            "%add: float32[2, 3] = add.Tensor(%arg, %arg_1, 1)\n"
            "%mul: float32[2, 3] = mul.Tensor(%add, 2)\n"
            "return %mul\n");
  EXPECT_EQ(c.inputs[0].argument, 0);
  EXPECT_EQ(c.inputs[1].argument, 1);
  EXPECT_TRUE(c.outputs[0].whole);
}

TEST(FunctionalTrace, WritesThroughViewsGiveNewValues) {
  const Captured c = trace({zeros({2, 3})}, [](Args a) {
    a[0].select(0, 1).add_(1);
    return std::vector{a[0] * 2};
  });
  EXPECT_EQ(c.graph.str(),
            "%arg: float32[2, 3] = input 0\n"
            "%select: float32[3] offset 3 = select.int(%arg, 0, 1)\n"
            "%add: float32[3] = add.Tensor(%select, 1, 1)\n"
            "%select_scatter: float32[2, 3] = select_scatter(%arg, %add, 0, 1)\n"
            "%clone: float32[2, 3] = clone(%select_scatter)\n"
            "%mul: float32[2, 3] = mul.Tensor(%clone, 2)\n"
            "write_back 0 (region float32[3] offset 3) <- %add\n"
            "return %mul\n");
}

TEST(FunctionalTrace, ReturnsViewsOfInputs) {
  const Tensor x = zeros({2, 3});
  const Captured c = trace({x}, [&](Args a) { return std::vector{a[0].t(), a[0], a[0]}; });
  ASSERT_EQ(c.outputs.size(), 3u);
  EXPECT_EQ(c.outputs[0].input, 0);
  EXPECT_EQ(c.outputs[0].argument, -1);
  EXPECT_EQ(c.outputs[0].meta.strides, (std::vector<Expr>{1, 3}));
  EXPECT_EQ(c.outputs[1].argument, 0);
  EXPECT_EQ(c.outputs[2].same_as, 1);
  EXPECT_TRUE(c.graph.write_backs.empty());
}

TEST(FunctionalTrace, OverlappingInputsShareOneBase) {
  const Tensor base = zeros({8});
  const Captured c = trace({base.slice(0, 0, 4), base.slice(0, 2, 6)}, [](Args a) {
    a[0].mul_(3);
    return std::vector{a[0] + a[1]};
  });
  ASSERT_EQ(c.graph.inputs.size(), 1u);
  EXPECT_TRUE(c.inputs[0].flat);
  EXPECT_EQ(c.inputs[0].start, 0);
  EXPECT_EQ(c.graph.meta({c.graph.inputs[0], 0}).sizes, std::vector<Expr>{6});
  EXPECT_EQ(c.offset_matters, (std::vector<char>{1, 1}));
  ASSERT_EQ(c.graph.write_backs.size(), 1u);
}

TEST(FunctionalTrace, DisjointPartsOfOneStorageStayApart) {
  const Tensor base = zeros({8});
  const Captured c = trace({base.slice(0, 0, 4), base.slice(0, 4, 8)}, [](Args a) {
    a[0].mul_(3);
    return std::vector{a[0] + a[1]};
  });
  EXPECT_EQ(c.graph.inputs.size(), 2u);
  EXPECT_FALSE(c.inputs[0].flat);
}

TEST(FunctionalTrace, CapturedTensorsBecomeInputs) {
  const Tensor w = zeros({3});
  const Captured c = trace({zeros({3})}, [&](Args a) { return std::vector{a[0] + w, w}; });
  ASSERT_EQ(c.inputs.size(), 2u);
  EXPECT_TRUE(c.inputs[1].tensor.is_same(w));
  EXPECT_TRUE(c.outputs[1].tensor.is_same(w));
}

TEST(FunctionalTrace, NumbersOfTheProgramBecomeConstants) {
  const Captured c = trace({}, [](Args) { return std::vector{tensor({1.f, 2.f}) + 1}; });
  EXPECT_EQ(c.graph.inputs.size(), 0u);
  EXPECT_EQ(c.graph.nodes[0].kind, graph::NodeKind::constant);
}

TEST(FunctionalTrace, CountsRandomNumbers) {
  const Captured c = trace({}, [](Args) { return std::vector{rand({2, 3}), randn({4})}; });
  EXPECT_EQ(c.random_count, 10);
  EXPECT_NE(c.graph.str().find("randn([4], None, 6)"), std::string::npos) << c.graph.str();
}

TEST(FunctionalTrace, TheOffsetMattersOnlyWhereItIsAsked) {
  const auto run = [](bool asks) {
    const Captured c = trace({zeros({3})}, [&](Args a) {
      return std::vector{a[0] + (asks ? int64_t{a[0].storage_offset()} : 0)};
    });
    return c.offset_matters[0] != 0;
  };
  EXPECT_TRUE(run(true));
  EXPECT_FALSE(run(false));
}

TEST(FunctionalTrace, RefusesReadsNamingThePlace) {
  try {
    trace({zeros({})}, [](Args a) { return std::vector{a[0] + a[0].item<float>()}; });
    FAIL() << "expected an error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("functional_trace_test.cpp"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace stax::capture
