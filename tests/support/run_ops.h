// Runs one operator of the op table on arrays, through the whole path of eager mode: graph, passes, lowering,
// reference executor. For tests of rows and kernels.
#pragma once

#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/pass_table.h"
#include "kernels/dynamic.h"
#include "kernels/element.h"
#include "lowering/lowering.h"
#include "ops/table.h"
#include "reference/executor.h"
#include "support/check.h"

namespace stax::testing {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A strided array that owns its memory; element 0 is the first one of `data`.
struct Array {
  DType dtype = DType::float32;
  std::vector<int64_t> sizes, strides;
  std::vector<std::byte> data;

  TensorView view() const { return {const_cast<std::byte*>(data.data()), dtype, sizes, strides}; }
  /// The elements in row-major order.
  std::vector<double> values() const { return kernels::read_all<double>(view()); }
  std::vector<int64_t> integers() const { return kernels::read_all<int64_t>(view()); }
};

inline std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

/// Room for the elements that sizes and strides reach, all zero.
inline Array empty_array(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    count = sizes[d] == 0 || count == 0 ? 0 : count + (sizes[d] - 1) * strides[d];
  Array out{dtype, std::move(sizes), std::move(strides), {}};
  out.data.resize(static_cast<size_t>(std::max<int64_t>(count, 1) * itemsize(dtype)));
  return out;
}

/// Values in row-major order, laid out with these strides.
inline Array strided_array(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides,
                           const std::vector<double>& values) {
  Array out = empty_array(dtype, std::move(sizes), std::move(strides));
  kernels::with_element_type(dtype, [&](auto type) {
    using Stored = typename decltype(type)::Stored;
    size_t k = 0;
    kernels::for_each_offset(out.view(), [&](int64_t at) {
      reinterpret_cast<Stored*>(out.data.data())[at] = kernels::narrow<Stored>(values.at(k++));
    });
  });
  return out;
}
inline Array array(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& values) {
  std::vector<int64_t> strides = dense_strides(sizes);
  return strided_array(dtype, std::move(sizes), std::move(strides), values);
}

using Arg = Argument<Array>;
using Args = std::vector<Arg>;
using NamedArgs = std::vector<std::pair<std::string, Arg>>;

inline std::vector<Array> run_dynamic(const graph::Op& op, const Args& args) {
  std::vector<Argument<TensorView>> views;
  for (const Arg& a : args)
    views.push_back(map_tensors<TensorView>(a, [](const Array& t) { return t.view(); }));
  std::vector<Array> out;
  out.reserve(8);
  kernels::find_dynamic(op.schema.full_name())(views, [&](DType dtype, const std::vector<int64_t>& sizes) {
    out.push_back(empty_array(dtype, sizes, dense_strides(sizes)));
    return out.back().view();
  });
  return out;
}

/// Runs the program on `inputs`, and reads its results.
inline std::vector<Array> run_lowered(const lowering::Lowered& lowered, std::vector<Array>& inputs) {
  std::vector<void*> in, out;
  for (Array& a : inputs) in.push_back(a.data.data());
  std::vector<Array> outputs;
  for (const loops::BufferId id : lowered.program.outputs) {
    const loops::Buffer& buffer = lowered.program.buffers[id];
    std::vector<int64_t> sizes, strides;
    for (const Expr e : buffer.sizes) sizes.push_back(e.value());
    for (const Expr e : buffer.strides) strides.push_back(e.value());
    outputs.push_back(empty_array(buffer.dtype, sizes, strides));
  }
  for (Array& a : outputs) out.push_back(a.data.data());
  const auto executable = reference::Executable::prepare(lowered.program);
  std::vector<loops::Constant> scalars(lowered.program.scalars.size());
  executable->run({in, out, scalars, nullptr});
  std::vector<Array> results;
  for (const lowering::ResultView& r : lowered.results) {
    const Array& storage = r.output >= 0 ? outputs[r.output] : inputs[r.alias_of_input];
    TensorView view = storage.view();
    view.sizes.clear();
    view.strides.clear();
    for (const Expr e : r.meta.sizes) view.sizes.push_back(e.value());
    for (const Expr e : r.meta.strides) view.strides.push_back(e.value());
    view.data = static_cast<std::byte*>(view.data) + r.meta.offset.value() * itemsize(view.dtype);
    Array result = empty_array(view.dtype, view.sizes, dense_strides(view.sizes));
    int64_t n = 0;
    const int64_t size = itemsize(view.dtype);
    kernels::for_each_offset(view, [&](int64_t at) {
      std::memcpy(result.data.data() + n++ * size, static_cast<const std::byte*>(view.data) + at * size,
                  static_cast<size_t>(size));
    });
    results.push_back(std::move(result));
  }
  return results;
}

/// Runs one operator with arguments in schema order.
inline std::vector<Array> run_bound(const graph::Op& op, const Args& args) {
  if (op.op_class == graph::OpClass::dynamic) return run_dynamic(op, args);
  ShapeEnv env;
  graph::Graph graph;
  graph::Builder builder(ops::table(), env, graph);
  std::vector<Array> inputs;
  std::vector<graph::VarArg> vars;
  for (const Arg& a : args) {
    vars.push_back(map_tensors<graph::Var>(a, [&](const Array& t) {
      graph::TensorMeta meta;
      meta.dtype = t.dtype;
      for (const int64_t s : t.sizes) meta.sizes.emplace_back(s);
      for (const int64_t s : t.strides) meta.strides.emplace_back(s);
      inputs.push_back(t);
      return builder.input(meta);
    }));
  }
  for (const graph::Var& v : builder.call_bound(op, vars)) graph.outputs.push_back({v.value(), -1});
  const graph::Graph done = graph::run_passes({ops::table(), env}, graph);
  return run_lowered(lowering::lower(ops::table(), done, env), inputs);
}

/// Runs the first overload of `name` ("sum", or "sum.dim_IntList") that takes these arguments.
inline std::vector<Array> run(const std::string& name, const Args& positional, const NamedArgs& named = {}) {
  std::vector<const graph::Op*> candidates;
  if (const graph::Op* op = ops::table().find(name)) {
    candidates = {op};
  } else {
    candidates = ops::table().overloads(name);
  }
  if (const auto& all = ops::table().overloads(name); !all.empty()) candidates = all;
  std::string reasons;
  for (const graph::Op* op : candidates) {
    std::string why;
    if (const auto bound = graph::bind<Array>(op->schema, positional, named, &why))
      return run_bound(*op, *bound);
    reasons += "\n  " + op->schema.full_name() + ": " + why;
  }
  throw std::invalid_argument("no overload of '" + name + "' takes these arguments:" + reasons);
}

/// run() of an operator with one result.
inline Array run_one(const std::string& name, const Args& positional, const NamedArgs& named = {}) {
  return run(name, positional, named).at(0);
}

}  // namespace stax::testing
