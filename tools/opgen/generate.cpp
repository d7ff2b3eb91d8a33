#include "tools/opgen/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

namespace stax::opgen {
namespace {

using graph::Op;
using graph::Param;
using graph::ParamType;

// Methods that tensor.h declares by hand, because their C++ form differs from the schema.
const std::set<std::string> kHandWrittenMethods = {"contiguous", "copy",          "copy_",
                                                   "data_ptr",   "defined",       "device",
                                                   "dim",        "dtype",         "fill",
                                                   "fill_",      "index",         "index_put",
                                                   "index_put_", "is_contiguous", "is_floating_point",
                                                   "item",       "itemsize",      "nbytes",
                                                   "new_empty",  "new_full",      "new_ones",
                                                   "new_zeros",  "numel",         "options",
                                                   "size",       "sizes",         "storage_offset",
                                                   "str",        "stride",        "strides",
                                                   "to",         "zero",          "zero_"};

// Functions that another header declares by hand.
const std::set<std::string> kHandWrittenFunctions = {"copy_",  "empty", "fill_",     "from_blob",
                                                     "tensor", "zero_", "index_put_"};

const std::set<std::string> kKeywords = {
    "and",     "auto",     "bool",     "break",    "case",    "char",     "class",    "const",  "continue",
    "default", "delete",   "do",       "double",   "else",    "enum",     "explicit", "export", "extern",
    "false",   "float",    "for",      "friend",   "if",      "inline",   "int",      "long",   "namespace",
    "new",     "not",      "operator", "or",       "private", "public",   "register", "return", "short",
    "signed",  "sizeof",   "static",   "struct",   "switch",  "template", "this",     "throw",  "true",
    "try",     "typename", "union",    "unsigned", "using",   "virtual",  "void",     "while",  "xor"};

/// Numbers that name a dimension are plain; every other integer may be a size, which may be symbolic.
bool names_dimension(const std::string& name) {
  return name.starts_with("dim") || name.ends_with("dim") || name.starts_with("axis");
}

struct CppParam {
  std::string type, name, default_value;  // no default: empty
  bool options = false;                   // dtype given as TensorOptions
  int32_t repeat = 0;
  std::string exact =
      {};  // concept of plain C++ types that would convert to another overload's type; or empty
};

struct Function {
  const Op* op = nullptr;
  std::string name, result;
  std::vector<CppParam> params;
  bool method = false;
  bool integer_form = false;  // a second form of another overload, with int64_t in place of SymInt

  size_t required() const {
    size_t count = 0;
    for (size_t i = 0; i < params.size(); ++i) {
      if (params[i].default_value.empty()) count = i + 1;
    }
    return count;
  }
};

std::string cpp_type(const Param& param) {
  const bool optional = param.optional;
  switch (param.type) {
    case ParamType::tensor:
      return optional ? "const std::optional<Tensor>&" : "const Tensor&";
    case ParamType::tensors:
      return param.optional_elements ? "OptionalTensorList" : "TensorList";
    case ParamType::scalar:
      return optional ? "const std::optional<Scalar>&" : "const Scalar&";
    case ParamType::integer: {
      const std::string type = names_dimension(param.name) ? "int64_t" : "SymInt";
      return optional ? "std::optional<" + type + ">" : type;
    }
    case ParamType::integers:
      return optional ? "OptionalIntList" : "IntList";
    case ParamType::floating:
      return optional ? "std::optional<double>" : "double";
    case ParamType::floats:
      return optional ? "OptionalFloatList" : "FloatList";
    case ParamType::boolean:
      return optional ? "std::optional<bool>" : "bool";
    case ParamType::string:
      return optional ? "std::optional<std::string_view>" : "std::string_view";
    case ParamType::dtype:
      return optional ? "std::optional<DType>" : "DType";
  }
  return {};
}

std::string cpp_default(const Param& param) {
  if (!param.has_default) return {};
  std::string text = param.default_text;
  if (text == "None") return "std::nullopt";
  if (text == "True") return "true";
  if (text == "False") return "false";
  if (text == "inf") return "std::numeric_limits<double>::infinity()";
  if (text == "-inf") return "-std::numeric_limits<double>::infinity()";
  if (param.type == ParamType::string) {
    if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"'))
      text = text.substr(1, text.size() - 2);
    return "\"" + text + "\"";
  }
  if (param.type == ParamType::dtype) return "DType::" + text;
  if (text.starts_with("[")) return "{" + text.substr(1, text.size() - 2) + "}";
  return text;
}

std::string cpp_result(const graph::Schema& schema) {
  const auto& returns = schema.returns;
  if (returns.size() == 1 && returns[0] == "Tensor") return "Tensor";
  if (returns.size() == 1 && returns[0] == "Tensor[]") return "std::vector<Tensor>";
  std::string list;
  for (const std::string& item : returns) {
    if (item != "Tensor") return {};
    list += list.empty() ? "Tensor" : ", Tensor";
  }
  return list.empty() ? std::string() : "std::tuple<" + list + ">";
}

bool takes_options(const Op& op, const Param& param) {
  if (param.type != ParamType::dtype || !param.keyword_only || !param.optional) return false;
  const auto& params = op.schema.params;
  const bool like = op.schema.name.ends_with("_like");
  return like || std::none_of(params.begin(), params.end(), [](const Param& p) {
           return p.type == ParamType::tensor || p.type == ParamType::tensors;
         });
}

Function make_function(const Op& op) {
  Function f;
  f.op = &op;
  f.name = op.schema.name;
  if (kKeywords.contains(f.name)) f.name += "_";
  f.result = cpp_result(op.schema);
  for (const Param& param : op.schema.params) {
    CppParam p{cpp_type(param), param.name, cpp_default(param), false, param.repeat};
    if (takes_options(op, param)) p = {"TensorOptions", "options", "{}", true, 0};
    if (kKeywords.contains(p.name)) p.name += "_";
    f.params.push_back(std::move(p));
  }
  // A parameter with a default before one without cannot be written in C++.
  for (size_t i = 0, required = f.required(); i < required; ++i) f.params[i].default_value.clear();
  const auto& params = op.schema.params;
  f.method = !params.empty() && params[0].name == "self" && params[0].type == ParamType::tensor &&
             !params[0].optional;
  return f;
}

bool same_prefix(const Function& a, const Function& b, size_t count) {
  if (a.params.size() < count || b.params.size() < count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (a.params[i].type != b.params[i].type) return false;
  }
  return true;
}

/// Takes defaults from `later` until no call of arguments of the same types fits both. False where the two
/// cannot be told apart.
bool separate(const Function& earlier, Function& later) {
  const size_t longest = std::min(earlier.params.size(), later.params.size());
  for (size_t n = 0; n <= longest; ++n) {
    if (!same_prefix(earlier, later, n)) return true;
    if (earlier.required() > n || later.required() > n) continue;
    if (later.params.size() == n) return false;
    for (size_t i = 0; i <= n; ++i) later.params[i].default_value.clear();
  }
  return true;
}

/// Second operands that may also be numbers, which then promote as numbers do.
bool takes_number(const Function& f, size_t i) {
  static const std::set<std::string> names = {"other", "exponent", "value", "self", "min", "max"};
  const Op& op = *f.op;
  const Param& param = op.schema.params[i];
  const bool by_element =
      op.op_class == graph::OpClass::pointwise || op.schema.overload.starts_with("Tensor");
  return by_element && i > 0 && param.type == ParamType::tensor && !param.optional &&
         names.contains(param.name);
}

/// The forms of `f` with numbers in place of some operands.
std::vector<Function> number_forms(const Function& f) {
  std::vector<size_t> places;
  for (size_t i = 0; i < f.params.size(); ++i) {
    if (takes_number(f, i)) places.push_back(i);
  }
  std::vector<Function> forms;
  for (size_t mask = 1; mask < (size_t{1} << places.size()); ++mask) {
    forms.push_back(f);
    for (size_t k = 0; k < places.size(); ++k) {
      if (mask >> k & 1) forms.back().params[places[k]].type = "const Scalar&";
    }
  }
  return forms;
}

bool is_list(const std::string& type) {
  return type == "IntList" || type == "OptionalIntList";
}

/// Where one overload takes a number and another a list, a bool, a string or another kind of number, a plain
/// number or bool has to fit one best.
void settle_numbers(std::vector<Function>& overloads) {
  std::vector<Function> extra;
  for (Function& f : overloads) {
    for (size_t i = 0; i < f.params.size(); ++i) {
      bool list = false, number = false, truth = false, dimension = false, fraction = false, size = false;
      for (const Function& other : overloads) {
        if (&other == &f || !same_prefix(f, other, i) || other.params.size() <= i) continue;
        const std::string& type = other.params[i].type;
        list = list || is_list(type);
        truth = truth || type == "bool" || type == "ExactBool";
        dimension = dimension || type == "int64_t";
        fraction = fraction || type == "double";
        size = size || type == "std::optional<SymInt>";
        number = number || is_list(type) || type == "SymInt" || type == "int64_t" ||
                 type.find("Scalar") != std::string::npos;
      }
      if (f.params[i].type == "SymInt" && list) {
        extra.push_back(f);
        extra.back().params[i].type = "int64_t";
        extra.back().integer_form = true;
      } else if (f.params[i].type == "int64_t" && list) {
        extra.push_back(f);
        extra.back().params[i].type = "SymInt";
        extra.back().integer_form = true;
      } else if (f.params[i].type == "bool" && number) {
        f.params[i].type = "ExactBool";
        if (dimension) f.params[i].exact = "std::same_as<bool>";
      } else if (f.params[i].type == "const std::optional<Scalar>&" && truth) {
        f.params[i].type = "const OptionalNumber&";
      } else if (f.params[i].type == "std::string_view" && number) {
        f.params[i].type = "ExactString";
      } else if (f.params[i].type == "SymInt" && fraction) {
        f.params[i].exact = "std::integral";
      } else if ((f.params[i].type == "SymInt" && size) ||
                 (f.params[i].type == "std::optional<SymInt>" && list)) {
        f.params[i].exact = "detail::WholeNumber";
      }
    }
  }
  overloads.insert(overloads.end(), extra.begin(), extra.end());
}

void add_number_forms(std::vector<Function>& overloads) {
  for (size_t i = 0, rows = overloads.size(); i < rows; ++i) {
    for (Function& form : number_forms(overloads[i])) {
      const bool distinct = std::all_of(overloads.begin(), overloads.end(),
                                        [&](const Function& earlier) { return separate(earlier, form); });
      if (distinct) overloads.push_back(std::move(form));
    }
  }
}

std::string parameters(const Function& f, size_t first, bool defaults) {
  std::string text;
  for (size_t i = first; i < f.params.size(); ++i) {
    const CppParam& p = f.params[i];
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", p.type, p.name);
    if (defaults && !p.default_value.empty()) text += " = " + p.default_value;
  }
  return text;
}

std::string arguments(const Function& f, std::string_view self) {
  std::string text;
  for (size_t i = 0; i < f.params.size(); ++i) {
    const bool is_self = i == 0 && !self.empty();
    text += fmt::format("{}{}", text.empty() ? "" : ", ", is_self ? self : f.params[i].name);
  }
  return text;
}

std::string build_call(const Function& f) {
  std::string text =
      fmt::format("  static const graph::Op& op = ops::table().at(\"{}\");\n  capture::Call call(op, {});\n",
                  f.op->schema.full_name(), f.params.size());
  for (const CppParam& p : f.params) {
    const std::string repeat = p.repeat > 1 && is_list(p.type) ? fmt::format(", {}", p.repeat) : "";
    text += fmt::format("  call.add({}{});\n", p.name, repeat);
  }
  return text;
}

std::string finish_call(const Function& f) {
  if (f.result == "Tensor") return "  return call.one();\n";
  if (f.result == "std::vector<Tensor>") return "  return call.all();\n";
  std::string items;
  for (size_t i = 0; i < f.op->schema.returns.size(); ++i) {
    items += fmt::format("{}std::move(results[{}])", i == 0 ? "" : ", ", i);
  }
  return "  std::vector<Tensor> results = call.all();\n  return {" + items + "};\n";
}

class Writer {
 public:
  explicit Writer(int shards) : bodies_(static_cast<size_t>(shards)) {}

  void write(const Function& f) {
    std::string& out = bodies_[next_++ % bodies_.size()];
    const bool function = !kHandWrittenFunctions.contains(f.name);
    if (function) {
      functions_ += fmt::format("/// {}\n", f.op->schema_text);
      functions_ += fmt::format("STAX_API {} {}({});\n", f.result, f.name, parameters(f, 0, true));
      out += fmt::format("{} {}({}) {{\n{}{}}}\n", f.result, f.name, parameters(f, 0, false), build_call(f),
                         finish_call(f));
    }
    if (f.method && function && !kHandWrittenMethods.contains(f.name)) {
      methods_ += fmt::format("{} {}({}) const;\n", f.result, f.name, parameters(f, 1, true));
      out += fmt::format("{} Tensor::{}({}) const {{\n  return stax::{}({});\n}}\n", f.result, f.name,
                         parameters(f, 1, false), f.name, arguments(f, "*this"));
    }
    if (f.op->in_place_variant && f.method && f.result == "Tensor") write_in_place(f, out);
    write_exact(f);
  }

  Generated finish() {
    Generated result;
    result.functions =
        "// The operators. Generated from the op table.\n#pragma once\n\n#include <limits>\n\n"
        "#include \"stax/tensor.h\"\n\nnamespace stax {\n\n" +
        functions_ + "\n}  // namespace stax\n";
    result.methods = "// The operators as methods. Generated from the op table.\n" + methods_;
    for (const std::string& body : bodies_) {
      result.sources.push_back(
          "// Operator functions. Generated from the op table.\n#include \"stax/functions.h\"\n\n#include "
          "\"capture/dispatch.h\"\n#include \"ops/table.h\"\n\nnamespace stax {\n\n" +
          body + "\n}  // namespace stax\n");
    }
    return result;
  }

 private:
  /// A plain bool or integer converts to the int64_t or double of another overload more readily than to the
  /// class that is meant, so it is taken by its own type.
  void write_exact(const Function& f) {
    for (size_t i = 0; i < f.params.size(); ++i) {
      if (f.params[i].exact.empty()) continue;
      Function plain = f, wrapped = f;
      plain.params[i].type = "Exact";
      wrapped.params[i].name = fmt::format("{}({})", f.params[i].type, f.params[i].name);
      const std::string head = fmt::format("template <{} Exact>\n{} {}", f.params[i].exact, f.result, f.name);
      functions_ += fmt::format("{}({}) {{\n  return {}({});\n}}\n", head, parameters(plain, 0, true), f.name,
                                arguments(wrapped, ""));
      if (!f.method) continue;
      methods_ += fmt::format("{}({}) const {{\n  return {}({});\n}}\n", head, parameters(plain, 1, true),
                              f.name, rest_arguments(wrapped));
    }
  }

  void write_in_place(const Function& f, std::string& out) {
    const std::string name = f.name + "_";
    if (kHandWrittenMethods.contains(name) || kHandWrittenFunctions.contains(name)) return;
    const std::string rest = parameters(f, 1, true), plain = parameters(f, 1, false);
    functions_ +=
        fmt::format("STAX_API Tensor& {}(Tensor& self{}{});\n", name, rest.empty() ? "" : ", ", rest);
    methods_ += fmt::format("Tensor& {}({}) const;\n", name, rest);
    out += fmt::format(
        "Tensor& Tensor::{}({}) const {{\n  const Tensor& {} = *this;\n{}  "
        "call.in_place(\"{}\");\n  return const_cast<Tensor&>(*this);\n}}\n",
        name, plain, f.params[0].name, build_call(f), name);
    out += fmt::format("Tensor& {}(Tensor& self{}{}) {{\n  return self.{}({});\n}}\n", name,
                       plain.empty() ? "" : ", ", plain, name, rest_arguments(f));
  }

  static std::string rest_arguments(const Function& f) {
    std::string text;
    for (size_t i = 1; i < f.params.size(); ++i) text += (i == 1 ? "" : ", ") + f.params[i].name;
    return text;
  }

  std::vector<std::string> bodies_;
  size_t next_ = 0;
  std::string functions_, methods_;
};

}  // namespace

Generated generate(const std::vector<graph::Op>& rows, int shards) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<Function>> by_name;
  for (const Op& op : rows) {
    if (op.internal) continue;
    if (op.schema.name.starts_with("_")) continue;
    Function f = make_function(op);
    if (f.result.empty()) continue;
    auto& overloads = by_name[op.schema.name];
    if (overloads.empty()) names.push_back(op.schema.name);
    const bool distinct = std::all_of(overloads.begin(), overloads.end(),
                                      [&](const Function& earlier) { return separate(earlier, f); });
    if (distinct) overloads.push_back(std::move(f));
  }
  Writer writer(shards);
  for (const std::string& name : names) {
    add_number_forms(by_name[name]);
    settle_numbers(by_name[name]);
    for (const Function& f : by_name[name]) writer.write(f);
  }
  return writer.finish();
}

}  // namespace stax::opgen
