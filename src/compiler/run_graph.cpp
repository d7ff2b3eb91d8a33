// Backend "debug", and what no stages serve: the captured graph runs operator by operator.
#include <algorithm>
#include <cstring>

#include "capture/dispatch.h"
#include "compiler/program.h"
#include "support/check.h"
#include "tensor/sym_int.h"

namespace stax::compiler {

using capture::CapturedInput;
using capture::CapturedOutput;
using graph::Node;
using graph::NodeKind;
using graph::TensorMeta;

namespace {

/// `value` laid out as the graph says.
Tensor laid_out(const Tensor& value, Extents extents) {
  const StridedImpl& impl = strided(value);
  bool same = true;
  for (int64_t d = 0; d < extents.rank(); ++d) {
    same = same && impl.stride(d) == static_cast<int64_t>(extents.strides()[d]);
  }
  if (same) return value;
  const Tensor out = new_tensor(value.dtype(), std::move(extents), value.device());
  copy_elements(impl.view(), strided(out).view());
  return out;
}

}  // namespace

/// One run.
struct CompiledProgram::GraphRun {
  /// Numbers for the expressions of one call.
  struct Evaluator {
    std::span<const int64_t> symbols;
    const std::vector<int64_t>& late;

    int64_t operator()(Symbol s) const {
      const auto at = static_cast<size_t>(s.number);
      return s.kind == SymbolKind::unbacked ? late[at] : symbols[at];
    }
    int64_t operator()(Expr e) const { return evaluate(e, *this); }
    Extents extents(const TensorMeta& meta) const {
      Extents out(meta.dim());
      for (size_t d = 0; d < meta.sizes.size(); ++d) {
        out.sizes()[d] = (*this)(meta.sizes[d]);
        out.strides()[d] = (*this)(meta.strides[d]);
      }
      return out;
    }
    void resolve(Argument<Tensor>& argument) const {
      if (auto* list = std::get_if<std::vector<Expr>>(&argument.value)) {
        for (Expr& e : *list) e = (*this)(e);
      } else if (auto* number = std::get_if<Number>(&argument.value)) {
        number->integer = (*this)(number->integer);
      }
    }
  };

  const CompiledProgram& program;
  Call& call;
  const graph::Graph& graph = program.captured_.graph;
  Evaluator evaluator{call.symbols, call.late};
  std::vector<std::vector<Tensor>> values =
      std::vector<std::vector<Tensor>>(graph.nodes.size());            // the results of nodes
  std::vector<char> known = std::vector<char>(program.late_symbols_);  // late symbols whose values are there
  std::vector<char> checked = {};                                      // assertions

  const Tensor& value(const graph::Value& v) const {
    return values[static_cast<size_t>(v.node)][static_cast<size_t>(v.result)];
  }
  Tensor input_view(size_t input, const TensorMeta& meta) const;
  std::vector<Tensor> constant(const Node& node) const;
  std::vector<Tensor> call_operator(const Node& node);
  void bind_results(const Node& node, std::span<const Tensor> results);
  void check_assertions();
  void write_back() const;
};

Tensor CompiledProgram::GraphRun::input_view(size_t input, const TensorMeta& meta) const {
  const CapturedInput& source = program.captured_.inputs[input];
  if (source.number >= 0) {
    const Tensor number = new_tensor(meta.dtype, evaluator.extents(meta));
    std::memcpy(strided(number).data(), &call.numbers[static_cast<size_t>(source.number)],
                static_cast<size_t>(itemsize(meta.dtype)));
    return number;
  }
  const StridedImpl& base = strided(program.source_of(input, call));
  return new_view(base, meta.dtype, evaluator.extents(meta),
                  source.flat ? source.start : int64_t{base.offset()});
}

std::vector<Tensor> CompiledProgram::GraphRun::constant(const Node& node) const {
  const TensorMeta& meta = node.results[0];
  const Tensor constant = new_tensor(meta.dtype, evaluator.extents(meta));
  std::copy(node.data->begin(), node.data->end(), strided(constant).data());
  return {constant.to(meta.device)};
}

std::vector<Tensor> CompiledProgram::GraphRun::call_operator(const Node& node) {
  capture::Arguments args;
  for (const auto& a : node.args) {
    evaluator.resolve(
        args.emplace_back(map_tensors<Tensor>(a, [&](const graph::Value& v) { return value(v); })));
  }
  // The generator counts for itself, call by call.
  if (node.op->effects & graph::kRandom) {
    args[static_cast<size_t>(node.op->schema.position("offset"))] = Argument<Tensor>(int64_t{0});
  }
  std::vector<Tensor> results = capture::eager_backend().call(*node.op, args);
  for (size_t r = 0; r < results.size(); ++r) results[r] = results[r].to(node.results[r].device);
  if (node.op->op_class == graph::OpClass::dynamic) {
    bind_results(node, results);
    check_assertions();
  }
  if (node.op->op_class != graph::OpClass::view) {
    for (size_t r = 0; r < results.size(); ++r)
      results[r] = laid_out(results[r], evaluator.extents(node.results[r]));
  }
  return results;
}

/// The values that a dynamic node's results give to symbols: sizes, or the one that an argument names.
void CompiledProgram::GraphRun::bind_results(const Node& node, std::span<const Tensor> results) {
  const auto bind = [&](Expr e, int64_t value) {
    if (e.kind() != ExprKind::symbol || e.symbol().kind != SymbolKind::unbacked) return;
    const auto at = static_cast<size_t>(e.symbol().number);
    if (!known[at]) call.late[at] = value;
    known[at] = 1;
  };
  if (node.op->schema.name == "bind_value") {
    return bind(node.args[1].number().integer, strided(results[0]).item({}).integer());
  }
  for (size_t r = 0; r < results.size(); ++r) {
    const std::vector<Expr>& sizes = node.results[r].sizes;
    for (size_t d = 0; d < sizes.size(); ++d)
      bind(sizes[d], strided(results[r]).size(static_cast<int64_t>(d)));
  }
}

/// Checks the assertions whose symbols are known, each once.
void CompiledProgram::GraphRun::check_assertions() {
  const std::vector<Assertion>& assertions = program.captured_.env->assertions();
  const auto waits = [&](Expr e) {
    return std::ranges::any_of(e.symbols(), [&](Symbol s) {
      return s.kind == SymbolKind::unbacked && !known[static_cast<size_t>(s.number)];
    });
  };
  checked.resize(assertions.size());
  for (size_t k = 0; k < assertions.size(); ++k) {
    const Condition& c = assertions[k].condition;
    if (checked[k] || waits(c.left) || waits(c.right)) continue;
    checked[k] = 1;
    if (!holds(c.relation, evaluator(c.left), evaluator(c.right))) {
      throw_failure(assertions[k], evaluator);
    }
  }
}

void CompiledProgram::GraphRun::write_back() const {
  std::vector<Tensor> written;  // values may look at memory that is about to change
  for (const graph::WriteBack& w : graph.write_backs) {
    const StridedImpl& from = strided(value(w.value));
    written.push_back(new_tensor(from.dtype(), from.sizes().values(), from.device()));
    copy_elements(from.view(), strided(written.back()).view());
  }
  for (size_t k = 0; k < written.size(); ++k) {
    const graph::WriteBack& w = graph.write_backs[k];
    const Tensor& whole = values[graph.inputs[w.input]][0];
    const StridedImpl& input = strided(whole);
    const Tensor target = w.region ? new_view(input, w.region->dtype, evaluator.extents(*w.region),
                                              int64_t{input.offset()} + evaluator(w.region->offset))
                                   : whole;
    copy_elements(strided(written[k]).view(), strided(target).view());
  }
}

std::vector<Tensor> CompiledProgram::run_graph(Call& call) const {
  GraphRun run{*this, call};
  run.check_assertions();
  for (size_t n = 0; n < run.graph.nodes.size(); ++n) {
    const Node& node = run.graph.nodes[n];
    switch (node.kind) {
      case NodeKind::input:
        run.values[n] = {run.input_view(static_cast<size_t>(node.input), node.results[0])};
        break;
      case NodeKind::constant:
        run.values[n] = run.constant(node);
        break;
      case NodeKind::call:
        run.values[n] = run.call_operator(node);
        break;
    }
  }
  run.write_back();
  if (late_symbols_ > 0) know_late(call);
  std::vector<Tensor> results(results_.size());
  for (size_t k = 0; k < results_.size(); ++k) {
    const CapturedOutput& output = captured_.outputs[k];
    if (output.output < 0 || output.same_as >= 0) {
      results[k] = result(k, call, {}, results.data());
      continue;
    }
    const Tensor base = run.value(run.graph.outputs[static_cast<size_t>(output.output)].value);
    const Result& facts = results_[k];
    results[k] = output.whole ? base
                              : new_view(strided(base), facts.dtype, extents(facts.layout, call),
                                         call.registers[static_cast<size_t>(facts.offset)]);
  }
  return results;
}

}  // namespace stax::compiler
