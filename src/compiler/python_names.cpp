#include "compiler/python_names.h"

#include <set>

namespace stax::compiler {
namespace {

struct Row {
  std::string_view op;
  const char* name;
  const char* symbol;
};
constexpr Row kInfix[] = {
    {"add.Tensor", "add", "+"},     {"sub.Tensor", "sub", "-"},         {"mul.Tensor", "mul", "*"},
    {"div.Tensor", "truediv", "/"}, {"pow.Tensor_Tensor", "pow", "**"}, {"pow.Tensor_Scalar", "pow", "**"},
    {"pow.Scalar", "pow", "**"},    {"remainder.Tensor", "mod", "%"},   {"matmul", "matmul", "@"},
    {"mm", "matmul", "@"},          {"eq.Tensor", "eq", "=="},          {"ne.Tensor", "ne", "!="},
    {"lt.Tensor", "lt", "<"},       {"le.Tensor", "le", "<="},          {"gt.Tensor", "gt", ">"},
    {"ge.Tensor", "ge", ">="},
};

}  // namespace

std::optional<Infix> infix_of(std::string_view op) {
  for (const Row& row : kInfix) {
    if (row.op == op) return Infix{row.name, row.symbol};
  }
  return std::nullopt;
}

bool is_neural(std::string_view op) {
  static const std::set<std::string_view> names = {"relu",
                                                   "relu6",
                                                   "gelu",
                                                   "silu",
                                                   "mish",
                                                   "elu",
                                                   "selu",
                                                   "celu",
                                                   "leaky_relu",
                                                   "prelu",
                                                   "softplus",
                                                   "softsign",
                                                   "hardtanh",
                                                   "hardswish",
                                                   "hardsigmoid",
                                                   "hardshrink",
                                                   "softshrink",
                                                   "tanhshrink",
                                                   "logsigmoid",
                                                   "threshold",
                                                   "glu",
                                                   "layer_norm",
                                                   "rms_norm",
                                                   "group_norm",
                                                   "batch_norm",
                                                   "linear",
                                                   "embedding",
                                                   "conv1d",
                                                   "conv2d",
                                                   "conv3d",
                                                   "max_pool1d",
                                                   "max_pool2d",
                                                   "max_pool3d",
                                                   "avg_pool1d",
                                                   "avg_pool2d",
                                                   "avg_pool3d",
                                                   "interpolate",
                                                   "pad",
                                                   "one_hot",
                                                   "dropout",
                                                   "scaled_dot_product_attention"};
  return names.contains(op);
}

bool is_python_name(std::string_view name) {
  static const std::set<std::string_view> names = {
      "abs",     "all",    "any",    "bin",    "bool",  "bytes",  "chr",     "complex",  "dict",   "dir",
      "divmod",  "eval",   "exec",   "filter", "float", "format", "getattr", "hash",     "hex",    "id",
      "input",   "int",    "iter",   "len",    "list",  "map",    "max",     "min",      "next",   "object",
      "oct",     "open",   "ord",    "pow",    "print", "range",  "repr",    "reversed", "round",  "set",
      "setattr", "slice",  "sorted", "str",    "sum",   "super",  "tuple",   "type",     "vars",   "zip",
      "and",     "as",     "assert", "class",  "def",   "del",    "elif",    "else",     "except", "for",
      "from",    "global", "if",     "import", "in",    "is",     "lambda",  "not",      "or",     "pass",
      "raise",   "return", "try",    "while",  "with",  "yield"};
  return names.contains(name);
}

}  // namespace stax::compiler
