#include <bit>

#include "compiler/export_file.h"
#include "support/hash.h"

namespace stax::compiler {

using capture::Captured;
using capture::CapturedInput;
using capture::CapturedOutput;
using graph::Node;
using graph::NodeKind;
using graph::TensorMeta;
using graph::Value;

namespace {

class Writer {
 public:
  explicit Writer(const detail::ExportedState& state) : state_(state) {}

  std::string file() {
    const std::string text = program().dump();
    std::string head(kExportMagic);
    put(head, kExportVersion, 4);
    put(head, text.size(), 8);
    put(head, data_.size(), 8);
    const auto sum = sha256(head + text + data_);
    return head + std::string(sum.begin(), sum.end()) + text + data_;
  }

 private:
  static void put(std::string& out, uint64_t value, int bytes) {
    for (int k = 0; k < bytes; ++k) out.push_back(static_cast<char>(value >> (8 * k)));
  }
  template <class List, class F>
  static Json list(const List& items, F&& one) {
    Json out = Json::array();
    for (const auto& item : items) out.push_back(one(item));
    return out;
  }
  static Json text(Expr e) { return e.str(); }
  static Json texts(const std::vector<Expr>& items) { return list(items, text); }
  static Json bits(double value) { return std::bit_cast<int64_t>(value); }
  static Json object(std::initializer_list<std::pair<const char*, Json>> members) {
    Json out = Json::object();
    for (const auto& [key, value] : members) out.set(key, value);
    return out;
  }
  static Json meta(const TensorMeta& m) {
    return object({{"dtype", std::string(name(m.dtype))},
                   {"sizes", texts(m.sizes)},
                   {"strides", texts(m.strides)},
                   {"offset", text(m.offset)}});
  }
  static Json interval(const Interval& i) {
    Json out = Json::array();
    out.push_back(i.lower ? Json(*i.lower) : Json());
    out.push_back(i.upper ? Json(*i.upper) : Json());
    return out;
  }
  static Json condition(const Condition& c) {
    return object({{"left", text(c.left)},
                   {"is", kRelationTexts[static_cast<int>(c.relation)]},
                   {"right", text(c.right)}});
  }
  static Json value(const Value& v) {
    Json out = Json::array();
    out.push_back(v.node);
    out.push_back(v.result);
    return out;
  }
  static Json argument(const Argument<Value>& a) {
    return std::visit(
        [](const auto& v) -> Json {
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<V, NoneType>) {
            return nullptr;
          } else if constexpr (std::is_same_v<V, Value>) {
            return object({{"value", value(v)}});
          } else if constexpr (std::is_same_v<V, Argument<Value>::Tensors>) {
            return object({{"values", list(v, [](const auto& t) { return t ? value(*t) : Json(); })}});
          } else if constexpr (std::is_same_v<V, Number>) {
            if (v.is_float()) return object({{"float", bits(v.floating)}});
            return object({{v.kind == Number::Kind::boolean ? "bool" : "int", text(v.integer)}});
          } else if constexpr (std::is_same_v<V, std::vector<Expr>>) {
            return object({{"ints", texts(v)}});
          } else if constexpr (std::is_same_v<V, std::vector<double>>) {
            return object({{"floats", list(v, bits)}});
          } else if constexpr (std::is_same_v<V, DType>) {
            return object({{"dtype", std::string(name(v))}});
          } else {
            return object({{"text", v}});
          }
        },
        a.value);
  }

  Json node(const Node& n) {
    Json out = object({{"name", n.name}, {"results", list(n.results, meta)}});
    if (n.kind == NodeKind::input) out.set("input", n.input);
    if (n.kind == NodeKind::constant) {
      out.set("data", static_cast<int64_t>(data_.size()));
      data_.append(reinterpret_cast<const char*>(n.data->data()), n.data->size());
    }
    if (n.kind == NodeKind::call) {
      out.set("op", n.op->schema.full_name());
      out.set("args", list(n.args, argument));
    }
    return out;
  }

  Json program() {
    const ExportContract& contract = state_.contract;
    const Captured& captured = state_.captured;
    Json out = Json::object();
    out.set("arguments", list(contract.inputs, [](const ExportInput& i) {
              return object({{"name", i.name}, {"meta", meta(i.meta)}});
            }));
    out.set("symbols", list(contract.symbols, [](const ExportSymbol& s) {
              return object({{"name", s.name},
                             {"hint", s.hint},
                             {"declared", interval(s.declared)},
                             {"assumed", interval(s.assumed)}});
            }));
    out.set("guards", list(contract.guards, [](const Guard& g) { return condition(g.condition); }));
    out.set("assertions", list(contract.assertions, condition));
    out.set("late", list(contract.late, [](const Assertion& a) {
              return object({{"holds", condition(a.condition)}, {"words", a.words}, {"where", a.where}});
            }));
    out.set("nodes", list(captured.graph.nodes, [&](const Node& n) { return node(n); }));
    out.set("inputs", list(captured.inputs, [](const CapturedInput& i) {
              return object({{"argument", i.argument}, {"flat", i.flat}, {"start", i.start}});
            }));
    out.set("outputs", list(captured.graph.outputs, [](const graph::Output& o) {
              return object({{"value", value(o.value)}, {"alias", o.alias_of_input}});
            }));
    out.set("writes", list(captured.graph.write_backs, [](const graph::WriteBack& w) {
              return object({{"input", w.input},
                             {"value", value(w.value)},
                             {"region", w.region ? meta(*w.region) : Json()}});
            }));
    out.set("results", list(captured.outputs, [](const CapturedOutput& o) {
              return object({{"output", o.output},
                             {"input", o.input},
                             {"same_as", o.same_as},
                             {"argument", o.argument},
                             {"whole", o.whole},
                             {"meta", meta(o.meta)}});
            }));
    out.set("integers", texts(captured.integers));
    out.set("random_count", text(captured.random_count));
    out.set("offset_matters", list(captured.offset_matters, [](char c) { return Json(c != 0); }));
    return out;
  }

  const detail::ExportedState& state_;
  std::string data_;
};

}  // namespace

std::string export_file(const detail::ExportedState& state) {
  return Writer(state).file();
}

}  // namespace stax::compiler
