#include "fuzz/oracle_file.h"

#include <fmt/core.h>

#include <cmath>

namespace stax::fuzz {

namespace {

template <class Items, class F>
std::string list(const Items& items, F&& text) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + text(item);
  return "[" + out + "]";
}

std::string integers(const std::vector<int64_t>& values) {
  return list(values, [](int64_t v) { return fmt::format("{}", v); });
}

std::string python_text(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

struct ArgumentText {
  std::string operator()(NoneType) const { return "null"; }
  std::string operator()(Ref r) const { return fmt::format("[\"tensor\", {}]", r.id); }
  std::string operator()(const RefArg::Tensors& refs) const {
    return fmt::format("[\"tensors\", {}]",
                       list(refs, [](const auto& r) { return fmt::format("{}", r->id); }));
  }
  std::string operator()(const Number& n) const {
    if (n.kind == Number::Kind::boolean)
      return fmt::format("[\"number\", {}]", n.integer.is(1) ? "true" : "false");
    if (!n.is_float()) return fmt::format("[\"number\", {}]", n.integer.value());
    const std::string digits = fmt::format("{:.17g}", n.floating);
    return fmt::format("[\"number\", {}{}]", digits,
                       digits.find_first_of(".e") == std::string::npos ? ".0" : "");
  }
  std::string operator()(const std::vector<Expr>& values) const {
    return fmt::format("[\"integers\", {}]", list(values, [](Expr e) { return e.str(); }));
  }
  std::string operator()(const std::vector<double>& values) const {
    return fmt::format("[\"floats\", {}]", list(values, [](double d) { return fmt::format("{:.17g}", d); }));
  }
  std::string operator()(DType dtype) const { return fmt::format("[\"dtype\", \"{}\"]", name(dtype)); }
  std::string operator()(const std::string& text) const { return fmt::format("[\"string\", \"{}\"]", text); }
};

// dtype, sizes and elements of a tensor.
std::string array_text(const Array& array) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string data;
  const int64_t size = itemsize(array.dtype);
  kernels::for_each_offset(array.view(), [&](int64_t at) {
    for (int64_t k = at * size; k < (at + 1) * size; ++k) {
      const auto byte = std::to_integer<unsigned>(array.data[static_cast<size_t>(k)]);
      data += kDigits[byte >> 4];
      data += kDigits[byte & 15];
    }
  });
  return fmt::format("\"dtype\": \"{}\", \"sizes\": {}, \"data\": \"{}\"", name(array.dtype),
                     integers(array.sizes), data);
}

std::vector<std::string> step_texts(const Program& program) {
  ShapeEnv env;
  graph::Graph graph;
  graph::Builder builder(ops::table(), env, graph);
  Values values;
  for (const Array& a : program.inputs) values.inputs.push_back(builder.input(meta_of(a)));
  std::vector<std::string> out;
  for (const Step& step : program.steps) {
    const auto results = builder.call_all(step.op, bind_args(step, values));
    const auto meta = [](const graph::Var& v) {
      return fmt::format("[{}, {}]", python_text(name(v.dtype())),
                         list(v.sizes(), [](Expr e) { return e.str(); }));
    };
    out.push_back(
        fmt::format("{{\"op\": {}, \"args\": {}, \"results\": {}}}", python_text(step.op),
                    list(step.args, [](const RefArg& a) { return std::visit(ArgumentText(), a.value); }),
                    list(results, meta)));
    values.results.insert(values.results.end(), results.begin(), results.end());
  }
  return out;
}

}  // namespace

std::string oracle_line(const Program& program, const Outcome& outcome) {
  std::vector<std::string> outputs;
  const auto add = [&](Ref value, const Array& array) {
    outputs.push_back(fmt::format("{{\"value\": {}, {}}}", value.id, array_text(array)));
  };
  for (size_t k = 0; k < program.outputs.size(); ++k) add(program.outputs[k], outcome.results[k]);
  for (const auto& w : program.write_backs) add(w.value, outcome.inputs[static_cast<size_t>(w.input)]);
  const auto same = [](const std::string& text) { return text; };
  return fmt::format(
      "{{\"seed\": {}, \"first_result\": {}, \"inputs\": {}, \"steps\": {}, \"outputs\": {}}}\n",
      program.seed, static_cast<int>(Ref::kFirstResult),
      list(program.inputs, [](const Array& a) { return "{" + array_text(a) + "}"; }),
      list(step_texts(program), same), list(outputs, same));
}

}  // namespace stax::fuzz
