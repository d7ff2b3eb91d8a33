#include "compiler/export_record.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "capture/functional_trace.h"
#include "support/check.h"
#include "support/plural.h"
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
  // Dimensions of one element stay in their places: their strides say nothing.
  std::vector<size_t> order, longer;
  std::ranges::copy_if(rows, std::back_inserter(longer), [&](size_t d) { return sizes[d] != 1; });
  std::ranges::stable_sort(longer, [&](size_t a, size_t b) {
    return tensor.stride(static_cast<int64_t>(a)) > tensor.stride(static_cast<int64_t>(b));
  });
  auto next = longer.begin();
  for (const size_t d : rows) order.push_back(sizes[d] == 1 ? d : *next++);
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

namespace {

/// Numbers the values of recordings: equal computations get one number.
class ValueNumbers {
 public:
  /// What a recording returns and writes.
  std::string signature(const Recording& recording) {
    rename_ = &recording.rename;
    const Captured& captured = recording.captured;
    const graph::Graph& graph = captured.graph;
    values_.clear();
    for (const graph::Node& node : graph.nodes) values_.push_back(numbers_of(node, captured));
    std::string out;
    for (const capture::CapturedOutput& o : captured.outputs) {
      out += fmt::format("result {} {} {} {}", o.input, o.same_as, o.argument, o.whole);
      if (o.output >= 0) out += fmt::format(" {}", value(graph.outputs[static_cast<size_t>(o.output)].value));
      if (o.output >= 0 || o.input >= 0) out += text(o.meta, !o.whole);
      out += "\n";
    }
    for (const graph::WriteBack& w : graph.write_backs) {
      out += fmt::format("write {} {} {}\n", w.input, value(w.value), w.region ? text(*w.region, true) : "");
    }
    for (const Expr e : captured.integers) out += text(e) + "\n";
    return out + text(captured.random_count);
  }

 private:
  std::string text(Expr e) const { return substitute(e, *rename_).str(); }
  std::string text(const std::vector<Expr>& list) const {
    std::string out = "[";
    for (const Expr e : list) out += text(e) + ",";
    return out + "]";
  }
  std::string text(const TensorMeta& meta, bool layout = false) const {
    std::string out = std::string(name(meta.dtype)) + text(meta.sizes);
    return layout ? out + text(meta.strides) + text(meta.offset) : out;
  }
  int number(const std::string& key) { return numbers_.emplace(key, numbers_.size()).first->second; }
  int value(const graph::Value& v) const {
    return values_[static_cast<size_t>(v.node)][static_cast<size_t>(v.result)];
  }

  std::string text(const Argument<graph::Value>& argument) const {
    return std::visit(
        [&](const auto& v) -> std::string {
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<V, NoneType>) {
            return "None";
          } else if constexpr (std::is_same_v<V, graph::Value>) {
            return fmt::format("%{}", value(v));
          } else if constexpr (std::is_same_v<V, Argument<graph::Value>::Tensors>) {
            std::string out;
            for (const auto& t : v) out += t ? fmt::format("%{},", value(*t)) : "None,";
            return out;
          } else if constexpr (std::is_same_v<V, Number>) {
            return fmt::format("{} {} {}", static_cast<int>(v.kind), text(v.integer), v.floating);
          } else if constexpr (std::is_same_v<V, std::vector<Expr>>) {
            return text(v);
          } else if constexpr (std::is_same_v<V, std::vector<double>>) {
            std::string out;
            for (const double d : v) out += fmt::format("{},", d);
            return out;
          } else if constexpr (std::is_same_v<V, DType>) {
            return std::string(name(v));
          } else {
            return v;
          }
        },
        argument.value);
  }

  std::vector<int> numbers_of(const graph::Node& node, const Captured& captured) {
    const std::string meta = text(node.results[0]);
    if (node.kind == graph::NodeKind::input) {
      const CapturedInput& input = captured.inputs[static_cast<size_t>(node.input)];
      const void* tensor = input.tensor.defined() ? input.tensor.impl() : nullptr;
      const int n = number(fmt::format("input {} {} {} {}", input.argument, input.start, tensor, meta));
      shapes_.emplace(n, meta);
      return {n};
    }
    if (node.kind == graph::NodeKind::constant) {
      std::string key = "constant " + meta;
      key.append(reinterpret_cast<const char*>(node.data->data()), node.data->size());
      const int n = number(key);
      shapes_.emplace(n, meta);
      return {n};
    }
    if (const std::optional<int> same = same_elements(node, meta)) return {*same};
    std::string key = node.op->schema.full_name() + "(";
    for (const auto& argument : node.args) key += text(argument) + "; ";
    std::vector<int> out;
    for (size_t r = 0; r < node.results.size(); ++r) {
      out.push_back(number(fmt::format("{}) {} {}", key, r, text(node.results[r]))));
      shapes_.emplace(out.back(), text(node.results[r]));
    }
    return out;
  }

  /// A value with the elements of another one in the same row-major order: that value, or one number for each
  /// shape of it.
  std::optional<int> same_elements(const graph::Node& node, const std::string& meta) {
    const std::string& op = node.op->schema.name;
    const bool copies = op == "clone" || op == "view_as_is" || op == "expand";
    const bool reshapes = op == "view" || op == "reshape_copy" || op == "unsqueeze_at" || op == "squeeze_at";
    if ((!copies && !reshapes) || !node.args[0].is_tensor()) return std::nullopt;
    if (op == "view" && node.op->schema.overload == "dtype") return std::nullopt;
    int from = value(node.args[0].tensor());
    if (shapes_.at(from) == meta) return from;
    if (!reshapes) return std::nullopt;
    if (const auto root = roots_.find(from); root != roots_.end()) from = root->second;
    if (shapes_.at(from) == meta) return from;
    const int n = number(fmt::format("reshape %{} {}", from, meta));
    shapes_.emplace(n, meta);
    roots_.emplace(n, from);
    return n;
  }

  const std::function<std::optional<Expr>(Symbol)>* rename_ = nullptr;
  std::map<std::string, int> numbers_;
  std::map<int, std::string> shapes_;
  std::map<int, int> roots_;  // of what is reshaped
  std::vector<std::vector<int>> values_;
};

}  // namespace

bool equivalent(const Recording& a, const Recording& b) {
  ValueNumbers numbers;
  return numbers.signature(a) == numbers.signature(b);
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
             "{} names are given for {} among the arguments", names.size(),
             counted(symbols.tensors.size(), "tensor"));
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
