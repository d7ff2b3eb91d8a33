#include "compiler/export_record.h"

#include <algorithm>
#include <numeric>

#include "capture/functional_trace.h"
#include "support/check.h"
#include "tensor/sym_int.h"

namespace stax {
namespace compiler {

using capture::Captured;
using capture::CapturedInput;
using graph::TensorMeta;

namespace {

Tensor without_memory(DType dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t bytes = itemsize(dtype);
  for (const int64_t size : sizes) {
    STAX_CHECK(size >= 0, "a tensor of the negative size {} is described", size);
    STAX_CHECK(!__builtin_mul_overflow(bytes, std::max(size, int64_t{1}), &bytes),
               "a tensor is described whose bytes leave 64 bits");
  }
  StoragePtr storage(Storage::adopt(nullptr, bytes, kCPU, nullptr));
  return Tensor(detail::ImplPtr(new StridedImpl(dtype, extents_of(sizes, strides), 0, std::move(storage))));
}

/// Row-major strides for dimensions in the order `order`, outermost first.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes, const std::vector<size_t>& order) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = step;
    STAX_CHECK(!__builtin_mul_overflow(step, std::max(sizes[order[k]], int64_t{1}), &step),
               "a tensor is described whose elements leave 64 bits");
  }
  return strides;
}

/// Dimensions, outermost first, in which a tensor without holes lies; row-major where it has holes.
std::vector<size_t> order_of(const StridedImpl& tensor) {
  std::vector<size_t> rows(static_cast<size_t>(tensor.dim()));
  std::iota(rows.begin(), rows.end(), size_t{0});
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < rows.size(); ++d) sizes.push_back(tensor.size(static_cast<int64_t>(d)));
  std::vector<size_t> order = rows;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (sizes[a] == 1 || sizes[b] == 1) return false;
    return tensor.stride(static_cast<int64_t>(a)) > tensor.stride(static_cast<int64_t>(b));
  });
  const std::vector<int64_t> strides = dense_strides(sizes, order);
  for (size_t d = 0; d < rows.size(); ++d) {
    if (sizes[d] != 1 && strides[d] != tensor.stride(static_cast<int64_t>(d))) return rows;
  }
  return order;
}

}  // namespace

ExampleArguments::ExampleArguments(const detail::Leaves& leaves) {
  for (const Tensor* t : leaves.tensors) {
    const StridedImpl& tensor = strided(*t);
    orders.push_back(order_of(tensor));
    std::vector<int64_t> sizes;
    for (int64_t d = 0; d < tensor.dim(); ++d) sizes.push_back(tensor.size(d));
    dtypes.push_back(tensor.dtype());
    tensors.push_back(without_memory(tensor.dtype(), sizes, dense_strides(sizes, orders.back())));
  }
  for (const Scalar* s : leaves.numbers) numbers.push_back(*s);
  for (const int64_t i : leaves.integers) integers.emplace_back(i);
}

ExampleArguments ExampleArguments::resized(const std::vector<std::vector<int64_t>>& sizes) const {
  ExampleArguments out = *this;
  for (size_t k = 0; k < tensors.size(); ++k) {
    out.tensors[k] = without_memory(dtypes[k], sizes[k], dense_strides(sizes[k], orders[k]));
  }
  return out;
}

Captured record(detail::FunctionCall& call, const ExampleArguments& arguments,
                const capture::SymbolOptions& symbol_options, const Recorder& recorder) {
  capture::TraceOptions options;
  options.refuse_reads = true;
  options.decide = recorder.decide;
  const auto trace = capture::FunctionalTrace::start(std::move(options));
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : arguments.tensors) pointers.push_back(&t);
  capture::InputSymbols symbols = capture::make_symbols(trace->env(), pointers, {}, symbol_options);
  if (recorder.begin) recorder.begin(trace->env(), symbols);
  const capture::TraceScope scope(trace.get());
  std::vector<Tensor> traced;
  for (const Tensor& tensor : arguments.tensors) {
    const size_t k = traced.size();
    traced.push_back(trace->argument(tensor, static_cast<int32_t>(k), symbols.tensors[k]));
  }
  call.run(traced, arguments.numbers, arguments.integers);
  std::vector<Tensor*> result_tensors;
  std::vector<Scalar*> result_numbers;
  std::vector<SymInt*> result_integers;
  call.leaves(result_tensors, result_numbers, result_integers);
  std::vector<Tensor> results;
  std::vector<Expr> sizes;
  for (const Tensor* t : result_tensors) {
    if (t->defined()) results.push_back(*t);
  }
  for (const Scalar* s : result_numbers) {
    if (s->traced()) results.emplace_back(s->traced());
    if (s->is_symbolic()) sizes.push_back(to_expr(s->integer()));
  }
  for (const SymInt* i : result_integers) sizes.push_back(to_expr(*i));
  Captured captured = trace->finish(results);
  captured.symbols = std::move(symbols);
  captured.integers = std::move(sizes);
  return captured;
}

std::string signature(const Captured& captured, const std::function<std::optional<Expr>(Symbol)>& rename) {
  const auto text = [&](Expr e) { return substitute(e, rename).str() + ","; };
  const auto meta_text = [&](const TensorMeta& meta) {
    std::string out = fmt::format("{}[", name(meta.dtype));
    for (const Expr e : meta.sizes) out += text(e);
    return out + "]";
  };
  std::string out;
  for (graph::Node node : captured.graph.nodes) {
    for (const TensorMeta& meta : node.results) out += meta_text(meta);
    if (node.kind != graph::NodeKind::call) {
      const CapturedInput* input =
          node.kind == graph::NodeKind::input ? &captured.inputs[static_cast<size_t>(node.input)] : nullptr;
      out += input != nullptr ? fmt::format("input {} {}\n", input->argument, input->start) : "constant\n";
      if (node.data) out.append(reinterpret_cast<const char*>(node.data->data()), node.data->size());
      continue;
    }
    for (Argument<graph::Value>& argument : node.args) {
      if (auto* list = std::get_if<std::vector<Expr>>(&argument.value)) {
        for (Expr& e : *list) e = substitute(e, rename);
      } else if (auto* number = std::get_if<Number>(&argument.value)) {
        number->integer = substitute(number->integer, rename);
      }
    }
    out += call_text(captured.graph, node) + "\n";
  }
  for (const graph::Output& o : captured.graph.outputs) {
    out += fmt::format("return {} {} {}\n", o.value.node, o.value.result, o.alias_of_input);
  }
  for (const graph::WriteBack& w : captured.graph.write_backs) {
    out += fmt::format("write {} {} {}\n", w.input, w.value.node, w.value.result);
  }
  for (const capture::CapturedOutput& o : captured.outputs) {
    out += fmt::format("result {} {} {} {} {}\n", o.output, o.input, o.same_as, o.argument,
                       o.output < 0 && o.input < 0 ? "" : meta_text(o.meta));
  }
  for (const Expr e : captured.integers) out += text(e);
  return out;
}

void freeze(Captured& captured) {
  std::vector<CapturedInput> inputs;
  std::vector<graph::NodeId> ids;
  std::vector<int32_t> moved(captured.inputs.size(), -1);
  for (size_t k = 0; k < captured.inputs.size(); ++k) {
    CapturedInput& input = captured.inputs[k];
    graph::Node& node = captured.graph.nodes[static_cast<size_t>(captured.graph.inputs[k])];
    if (input.argument >= 0) {
      moved[k] = node.input = static_cast<int32_t>(inputs.size());
      ids.push_back(captured.graph.inputs[k]);
      inputs.push_back(std::move(input));
      continue;
    }
    Tensor tensor = input.tensor;
    if (input.flat) {
      const std::vector<int64_t> sizes = {node.results[0].sizes[0].value()}, strides = {1};
      tensor = new_view(strided(tensor), node.results[0].dtype, extents_of(sizes, strides), input.start);
    }
    node.kind = graph::NodeKind::constant;
    node.data = strided(constant_copy(tensor)).storage()->constant_bytes();
    node.results[0] = graph::dense(node.results[0].dtype, node.results[0].sizes, node.results[0].device);
    node.input = -1;
  }
  for (graph::WriteBack& w : captured.graph.write_backs) {
    w.input = moved[static_cast<size_t>(w.input)];
    STAX_CHECK(w.input >= 0, "an exported function writes to a tensor that it captured; make it an argument");
  }
  for (graph::Output& o : captured.graph.outputs) {
    if (o.alias_of_input >= 0) o.alias_of_input = moved[static_cast<size_t>(o.alias_of_input)];
  }
  for (capture::CapturedOutput& o : captured.outputs) {
    const bool lost = o.same_as < 0 && o.input >= 0 && moved[static_cast<size_t>(o.input)] < 0;
    STAX_CHECK(!lost && !o.tensor.defined(),
               "an exported function returns a tensor that it captured, or a view of it; return a clone");
    if (o.input >= 0) o.input = moved[static_cast<size_t>(o.input)];
  }
  captured.inputs = std::move(inputs);
  captured.graph.inputs = std::move(ids);
}

bool is_identifier(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(
             name, [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

std::vector<ExportInput> inputs_of(const capture::InputSymbols& symbols,
                                   const std::vector<std::string>& names) {
  std::vector<ExportInput> inputs;
  STAX_CHECK(names.empty() || names.size() == symbols.tensors.size(),
             "{} names are given for {} tensors among the arguments", names.size(), symbols.tensors.size());
  for (size_t k = 0; k < symbols.tensors.size(); ++k) {
    const std::string name = names.empty() ? fmt::format("arg{}", k) : names[k];
    STAX_CHECK(is_identifier(name), "the name '{}' of a tensor is no identifier", name);
    STAX_CHECK(std::ranges::none_of(inputs, [&](const ExportInput& i) { return i.name == name; }),
               "two tensors are named {}", name);
    inputs.push_back({name, symbols.tensors[k]});
  }
  return inputs;
}

}  // namespace compiler

namespace detail {

Tensor tensor_without_memory(const TensorSpec& spec) {
  std::vector<size_t> order(spec.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return compiler::without_memory(spec.dtype, spec.sizes, compiler::dense_strides(spec.sizes, order));
}

}  // namespace detail
}  // namespace stax
