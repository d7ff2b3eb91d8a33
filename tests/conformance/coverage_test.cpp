// The recorded calls of tests/data/recorded_rows give what was recorded, and between them reach every
// operator.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "cli/verify/replay.h"
#include "conformance/row_values.h"
#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "ops/table.h"
#include "stax/error.h"
#include "symbolic/shape_env.h"

namespace stax {
namespace {

namespace fs = std::filesystem;
using graph::VarArg;

std::vector<std::string> recorded_files() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(STAX_TEST_DATA "/recorded_rows")) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Evaluates calls as ever, and notes their rows with those that they are made of.
class NotingBackend final : public capture::EagerBackend {
 public:
  std::vector<Tensor> call(const graph::Op& op, const capture::Arguments& arguments) override {
    note(op, arguments);
    return capture::default_eager_backend().call(op, arguments);
  }
  const std::set<std::string>& rows() const { return rows_; }

 private:
  void note(const graph::Op& op, const capture::Arguments& arguments) {
    rows_.insert(op.schema.full_name());
    ShapeEnv env;
    graph::Graph graph;
    graph::Builder builder(ops::table(), env, graph);
    std::vector<VarArg> args;
    for (const auto& argument : arguments) {
      args.push_back(map_tensors<graph::Var>(argument, [&](const Tensor& tensor) {
        return builder.input(graph::dense(tensor.dtype(), to_exprs(tensor.sizes())));
      }));
    }
    try {
      for (const graph::Var& result : builder.call_bound(op, std::move(args)))
        graph.outputs.push_back({result.value(), -1});
      note(graph);
      note(graph::decompose({ops::table(), env}, graph));
    } catch (const UserError&) {  // the call itself raises it, too
    }
  }
  void note(const graph::Graph& graph) {
    for (const graph::Node& node : graph.nodes) {
      if (node.op != nullptr) rows_.insert(node.op->schema.full_name());
    }
  }

  std::set<std::string> rows_;
};

class InstalledBackend {
 public:
  explicit InstalledBackend(capture::EagerBackend* backend) { capture::install_eager_backend(backend); }
  ~InstalledBackend() { capture::install_eager_backend(nullptr); }
};

/// Rows that no recorded call reaches, and the test that has values of theirs.
const std::set<std::string_view> kTestedElsewhere = {
#include "conformance/tested_elsewhere.inc"
};

void expect_elements(const Tensor& got, const std::vector<double>& expected) {
  const Tensor flat = got.to(kFloat64).contiguous();
  ASSERT_EQ(static_cast<int64_t>(flat.numel()), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(flat.data_ptr<double>()[i], expected[i], 1e-6) << i;
}

TEST(RecordedCalls, GiveWhatWasRecordedAndReachEveryRow) {
  NotingBackend backend;
  size_t calls = 0;
  {
    const InstalledBackend installed(&backend);
    for (const std::string& path : recorded_files()) {
      const cli::RecordedFile file(path);
      std::vector<size_t> all(file.size());
      std::iota(all.begin(), all.end(), size_t{0});
      const auto check = [&](size_t number, const cli::Outcome& outcome) {
        EXPECT_EQ(outcome.verdict, cli::Verdict::passed)
            << file.name() << ", call " << number << ": " << outcome.reason;
        ++calls;
      };
      cli::replay(file, cli::ReplayMode::reference, all, {.begins = [](size_t) {}, .ends = check});
    }
    for (const RowValues& row : row_values()) {
      SCOPED_TRACE(row.row);
      const std::vector<Tensor> got = capture::call(row.row, row.arguments, row.named);
      ASSERT_EQ(got.size(), row.expected.size());
      for (size_t r = 0; r < got.size(); ++r) expect_elements(got[r], row.expected[r]);
    }
  }
  EXPECT_GE(calls, 1600u);
  for (const graph::Op& op : ops::table().rows()) {
    const std::string name = op.schema.full_name();
    EXPECT_NE(backend.rows().contains(name), kTestedElsewhere.contains(name))
        << (backend.rows().contains(name) ? "reached, though listed as tested elsewhere: "
                                          : "no recorded call and no listed test has values of this row: ")
        << op.schema_text;
  }
}

}  // namespace
}  // namespace stax
