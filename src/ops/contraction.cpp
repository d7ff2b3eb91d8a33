// Sums of products over named or numbered dimensions: einsum, tensordot, inner, bilinear.
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>

#include "ops/matmul_rules.h"
#include "ops/shape_rules.h"
#include "ops/vocabulary.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::ops {
namespace {

// A dimension's label: the letter, or for those that an ellipsis stands for kEllipsis + position from the
// back.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 1000;

struct Term {
  Var value;
  Labels labels;  // one for each dimension of value, all different
};

bool contains(const Labels& labels, Label l) {
  return std::find(labels.begin(), labels.end(), l) != labels.end();
}

Var sum_over(Builder& b, const Var& x, const Exprs& dims) {
  return dims.empty() ? x : b.call("sum.dim_IntList", {x, dims, false, x.dtype()});
}

// The term without the dimensions that `drop` names: a plain sum, with the dtype of one.
Term sum_labels(Builder& b, const Term& t, const std::function<bool(Label)>& drop) {
  Exprs dims;
  Labels kept;
  for (size_t d = 0; d < t.labels.size(); ++d) {
    if (drop(t.labels[d])) {
      dims.emplace_back(static_cast<int64_t>(d));
    } else {
      kept.push_back(t.labels[d]);
    }
  }
  return {dims.empty() ? t.value : b.call("sum.dim_IntList", {t.value, dims}), kept};
}

Var permuted(Builder& b, const Term& t, const Labels& order) {
  Exprs dims;
  for (const Label l : order)
    dims.emplace_back(
        static_cast<int64_t>(std::find(t.labels.begin(), t.labels.end(), l) - t.labels.begin()));
  return b.call("permute", {t.value, dims});
}

// The product of two terms, summed over the labels that `keep` does not name: one batched matrix product.
Term contract(Builder& b, Term x, Term y, const std::function<bool(Label)>& keep) {
  x = sum_labels(b, x, [&](Label l) { return !keep(l) && !contains(y.labels, l); });
  y = sum_labels(b, y, [&](Label l) { return !keep(l) && !contains(x.labels, l); });
  Labels batch, left, right, inner;
  for (const Label l : x.labels) (contains(y.labels, l) ? (keep(l) ? batch : inner) : left).push_back(l);
  for (const Label l : y.labels) {
    if (!contains(x.labels, l)) right.push_back(l);
  }
  const auto sizes_of = [](const Term& t, const Labels& labels) {
    Exprs sizes;
    for (const Label l : labels)
      sizes.push_back(t.value.size(std::find(t.labels.begin(), t.labels.end(), l) - t.labels.begin()));
    return sizes;
  };
  const auto joined = [](std::initializer_list<Labels> parts) {
    Labels out;
    for (const Labels& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
  };
  const Exprs batch_sizes = sizes_of(x, batch), left_sizes = sizes_of(x, left);
  const Exprs right_sizes = sizes_of(y, right), inner_sizes = sizes_of(x, inner);
  Exprs sizes = batch_sizes;
  sizes.insert(sizes.end(), left_sizes.begin(), left_sizes.end());
  sizes.insert(sizes.end(), right_sizes.begin(), right_sizes.end());
  const Labels labels = joined({batch, left, right});
  if (inner.empty()) {
    // No sum: a product with broadcasting.
    Var u = permuted(b, x, joined({batch, left}));
    for (size_t k = 0; k < right.size(); ++k) u = b.call("unsqueeze", {u, -1});
    Var v = permuted(b, y, joined({batch, right}));
    for (size_t k = 0; k < left.size(); ++k) v = b.call("unsqueeze", {v, static_cast<int64_t>(batch.size())});
    return {u * v, labels};
  }
  // Only one of them may have become wider by a sum.
  const DType common = graph::promote_types(x.value.dtype(), y.value.dtype());
  for (Term* t : {&x, &y}) {
    if (is_integral(common) && t->value.dtype() != common) t->value = b.call("to.dtype", {t->value, common});
  }
  const Var u = b.call("reshape", {permuted(b, x, joined({batch, left, inner})),
                                   Exprs{product(batch_sizes), product(left_sizes), product(inner_sizes)}});
  const Var v = b.call("reshape", {permuted(b, y, joined({batch, inner, right})),
                                   Exprs{product(batch_sizes), product(inner_sizes), product(right_sizes)}});
  const Var out = batch.empty()
                      ? matrix_product(b, b.call("select.int", {u, 0, 0}), b.call("select.int", {v, 0, 0}))
                      : b.call("bmm", {u, v});
  return {b.call("reshape", {out, sizes}), labels};
}

// ---- einsum ----

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
  bool explicit_output = false;
};

Equation parse_equation(const std::string& text) {
  std::string s;
  for (const char c : text) {
    if (!std::isspace(static_cast<unsigned char>(c))) s.push_back(c);
  }
  Equation e;
  const size_t arrow = s.find("->");
  e.explicit_output = arrow != std::string::npos;
  if (e.explicit_output) e.output = s.substr(arrow + 2);
  const std::string inputs = s.substr(0, arrow);
  for (size_t begin = 0;;) {
    const size_t comma = inputs.find(',', begin);
    e.inputs.push_back(inputs.substr(begin, comma - begin));
    if (comma == std::string::npos) return e;
    begin = comma + 1;
  }
}

// Labels of one subscript; an ellipsis stands for `hidden` dimensions (less than 0: it may not occur).
Labels read_labels(const std::string& subscript, int64_t hidden) {
  Labels out;
  bool seen = false;
  for (size_t k = 0; k < subscript.size(); ++k) {
    const char c = subscript[k];
    if (std::isalpha(static_cast<unsigned char>(c))) {
      out.push_back(c);
      continue;
    }
    STAX_CHECK(subscript.compare(k, 3, "...") == 0 && !seen,
               "einsum: expected letters and at most one '...' in the subscript '{}'", subscript);
    seen = true;
    k += 2;
    for (int64_t at = hidden; at-- > 0;) out.push_back(kEllipsis + static_cast<Label>(at));
  }
  return out;
}

int64_t letters(const std::string& subscript) {
  return std::count_if(subscript.begin(), subscript.end(), [](unsigned char c) { return std::isalpha(c); });
}

// The operand with one dimension a label: repeated labels become diagonals.
Term read_term(Builder& b, Var value, Labels labels, const std::string& subscript) {
  STAX_CHECK(static_cast<int64_t>(labels.size()) == value.dim(),
             "einsum: the subscript '{}' names {}, but its operand has {}", subscript,
             counted(labels.size(), "dimension"), value.dim());
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t j = i + 1; j < labels.size();) {
      if (labels[i] != labels[j]) {
        ++j;
        continue;
      }
      STAX_CHECK(b.env().expect(eq(value.size(i), value.size(j))),
                 "einsum: a label repeated in '{}' has sizes {} and {}", subscript, value.size(i).str(),
                 value.size(j).str());
      // diagonal() puts the merged dimension last; it goes back to place i.
      value = b.call("diagonal", {value, 0, static_cast<int64_t>(i), static_cast<int64_t>(j)});
      value = b.call("movedim.intlist", {value, Exprs{-1}, Exprs{static_cast<int64_t>(i)}});
      labels.erase(labels.begin() + static_cast<int64_t>(j));
    }
  }
  return {value, labels};
}

// Operands with a size of 1 where others have more broadcast: they lose that dimension.
void drop_broadcast_labels(Builder& b, std::vector<Term>& terms) {
  std::map<Label, Expr> sizes;
  for (const Term& t : terms) {
    for (size_t d = 0; d < t.labels.size(); ++d) {
      const Expr size = t.value.size(static_cast<int64_t>(d));
      const auto [it, fresh] = sizes.emplace(t.labels[d], size);
      if (fresh || b.env().surely(eq(size, it->second)) || b.env().surely(eq(size, 1))) continue;
      if (b.env().surely(eq(it->second, 1))) {
        it->second = size;
        continue;
      }
      STAX_CHECK(b.env().expect(eq(it->second, size)), "einsum: a label has sizes {} and {}",
                 it->second.str(), size.str());
    }
  }
  for (Term& t : terms) {
    for (size_t d = 0; d < t.labels.size();) {
      const Expr size = t.value.size(static_cast<int64_t>(d));
      if (!b.env().surely(eq(size, 1)) || b.env().surely(eq(sizes[t.labels[d]], 1))) {
        ++d;
        continue;
      }
      t.value = b.call("select.int", {t.value, static_cast<int64_t>(d), 0});
      t.labels.erase(t.labels.begin() + static_cast<int64_t>(d));
    }
  }
}

// Without an arrow: the ellipsis, then the letters that occur once, in order.
Labels implicit_output(const std::vector<Labels>& inputs, int64_t hidden) {
  Labels out;
  for (int64_t at = hidden; at-- > 0;) out.push_back(kEllipsis + static_cast<Label>(at));
  std::map<Label, int> count;
  for (const Labels& labels : inputs) {
    for (const Label l : labels) ++count[l];
  }
  for (const auto& [l, n] : count) {
    if (n == 1 && l < kEllipsis) out.push_back(l);
  }
  return out;
}

Labels check_output(const Equation& equation, const std::vector<Term>& terms, int64_t hidden) {
  const Labels output = read_labels(equation.output, hidden);
  for (size_t k = 0; k < output.size(); ++k) {
    STAX_CHECK(std::count(output.begin(), output.end(), output[k]) == 1,
               "einsum: a label stands twice in the output '{}'", equation.output);
    const bool known = output[k] >= kEllipsis || std::any_of(terms.begin(), terms.end(), [&](const Term& t) {
                         return contains(t.labels, output[k]);
                       });
    STAX_CHECK(known, "einsum: the output label '{}' stands in no input", static_cast<char>(output[k]));
  }
  return output;
}

Var einsum_of(Builder& b, const std::string& text, const Vars& operands) {
  const Equation equation = parse_equation(text);
  STAX_CHECK(!operands.empty() && equation.inputs.size() == operands.size(),
             "einsum: '{}' has {}, but there are {}", text, counted(equation.inputs.size(), "subscript"),
             counted(operands.size(), "operand"));
  int64_t most_hidden = 0;
  std::vector<Labels> subscripts;
  for (size_t k = 0; k < operands.size(); ++k) {
    const int64_t hidden = operands[k].dim() - letters(equation.inputs[k]);
    const bool dots = equation.inputs[k].find('.') != std::string::npos;
    STAX_CHECK(hidden >= 0, "einsum: the subscript '{}' names more dimensions than its operand's {}",
               equation.inputs[k], operands[k].dim());
    if (dots) most_hidden = std::max(most_hidden, hidden);
    subscripts.push_back(read_labels(equation.inputs[k], hidden));
  }
  std::vector<Term> terms;
  for (size_t k = 0; k < operands.size(); ++k)
    terms.push_back(read_term(b, operands[k], subscripts[k], equation.inputs[k]));
  const Labels output = equation.explicit_output ? check_output(equation, terms, most_hidden)
                                                 : implicit_output(subscripts, most_hidden);
  drop_broadcast_labels(b, terms);
  Term result = terms[0];
  for (size_t k = 1; k < terms.size(); ++k) {
    result = contract(b, result, terms[k], [&](Label l) {
      return contains(output, l) || std::any_of(terms.begin() + static_cast<int64_t>(k) + 1, terms.end(),
                                                [&](const Term& t) { return contains(t.labels, l); });
    });
  }
  result = sum_labels(b, result, [&](Label l) { return !contains(output, l); });
  return permuted(b, result, output);
}

Vars einsum(Builder& b, const VarArgs& a) {
  Vars operands;
  for (const auto& t : a["tensors"].tensors()) operands.push_back(*t);
  return {einsum_of(b, a["equation"].string(), operands)};
}

// ---- tensordot, inner, bilinear ----

Var tensordot_over(Builder& b, const Var& x, const Var& y, const Exprs& x_dims, const Exprs& y_dims) {
  STAX_CHECK(x_dims.size() == y_dims.size(), "tensordot: {} dimensions of one tensor, but {} of the other",
             x_dims.size(), y_dims.size());
  Term left{x, {}}, right{y, {}};
  for (int64_t d = 0; d < x.dim(); ++d) left.labels.push_back(static_cast<Label>(d));
  for (int64_t d = 0; d < y.dim(); ++d) right.labels.push_back(kEllipsis + static_cast<Label>(d));
  std::set<Label> summed;
  for (size_t k = 0; k < x_dims.size(); ++k) {
    STAX_CHECK(x.dim() > 0 && y.dim() > 0, "tensordot: a zero-dim tensor has no dimension {} to sum over",
               x.dim() == 0 ? x_dims[k].str() : y_dims[k].str());
    const auto i = graph::wrap_dim(x_dims[k].value(), x.dim(), "tensordot");
    const auto j = graph::wrap_dim(y_dims[k].value(), y.dim(), "tensordot");
    STAX_CHECK(right.labels[j] >= kEllipsis && summed.insert(static_cast<Label>(i)).second,
               "tensordot: a dimension is given twice");
    // A size of 1 broadcasts: the other tensor is summed.
    const bool same = b.env().surely(eq(x.size(i), y.size(j)));
    if (!same && b.env().surely(eq(x.size(i), 1))) {
      right.value = b.call("sum.dim_IntList", {right.value, Exprs{j}, true, y.dtype()});
    } else if (!same && b.env().surely(eq(y.size(j), 1))) {
      left.value = b.call("sum.dim_IntList", {left.value, Exprs{i}, true, x.dtype()});
    } else {
      STAX_CHECK(b.env().expect(eq(x.size(i), y.size(j))),
                 "tensordot: dimension {} of size {} meets {} of size {}", i, x.size(i).str(), j,
                 y.size(j).str());
    }
    right.labels[j] = static_cast<Label>(i);
  }
  return contract(b, left, right, [&](Label l) { return summed.count(l) == 0; }).value;
}

Vars tensordot_count(Builder& b, const VarArgs& a) {
  const int64_t count = a["dims"].integer().value(), rank = a.tensor(0).dim();
  STAX_CHECK(count >= 0 && count <= rank && count <= a.tensor(1).dim(),
             "tensordot: {} dimensions are more than the operands have ({} and {})", count, rank,
             a.tensor(1).dim());
  Exprs x_dims, y_dims;
  for (int64_t k = 0; k < count; ++k) {
    x_dims.emplace_back(rank - count + k);
    y_dims.emplace_back(k);
  }
  return {tensordot_over(b, a.tensor(0), a.tensor(1), x_dims, y_dims)};
}

Vars inner(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1);
  if (x.dim() == 0 || y.dim() == 0) return {x * y};
  check_product_dtypes(x.dtype(), y.dtype(), "inner");
  return {tensordot_over(b, x, y, {-1}, {-1})};
}

// result[..., o] = sum of input1[..., i] weight[o, i, j] input2[..., j].
Vars bilinear(Builder& b, const VarArgs& a) {
  const Var x = a.tensor(0), y = a.tensor(1), weight = a.tensor(2);
  STAX_CHECK(weight.dim() == 3 && x.dim() == y.dim() && x.dim() >= 1,
             "bilinear: expected inputs of as many dimensions and a weight of 3, got {}, {} and {}", x.dim(),
             y.dim(), weight.dim());
  STAX_CHECK(b.env().expect(eq(x.size(-1), weight.size(1))) && b.env().expect(eq(y.size(-1), weight.size(2))),
             "bilinear: inputs of shape {} and {} do not fit a weight of shape {}", shape_text(x.sizes()),
             shape_text(y.sizes()), shape_text(weight.sizes()));
  const Exprs batch(x.sizes().begin(), x.sizes().end() - 1);
  const auto rows = [&](const Var& v) { return b.call("reshape", {v, Exprs{product(batch), v.size(-1)}}); };
  const Var by_input = b.call("reshape", {b.call("permute", {weight, Exprs{1, 0, 2}}),
                                          Exprs{weight.size(1), weight.size(0) * weight.size(2)}});
  const Var partial = b.call("reshape", {matrix_product(b, rows(x), by_input, true),
                                         Exprs{product(batch), weight.size(0), weight.size(2)}});
  const Var second = b.call("unsqueeze", {convert_to(b, rows(y), partial.dtype()), 1});
  Var out = sum_over(b, partial * second, {Expr(-1)});
  if (!a["bias"].is_none()) out = out + convert_to(b, a["bias"].tensor(), out.dtype());
  Exprs sizes = batch;
  sizes.push_back(weight.size(0));
  return {b.call("reshape", {convert_to(b, out, x.dtype()), sizes})};
}

}  // namespace

Ops contraction_rows() {
  return {
      composite("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", einsum),
      composite("einsum.tensors(Tensor[] tensors, str equation) -> Tensor", einsum),
      composite("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
                [](Builder& b, const VarArgs& a) -> Vars {
                  return {tensordot_over(b, a.tensor(0), a.tensor(1), a[2].integers(), a[3].integers())};
                }),
      composite("tensordot.count(Tensor self, Tensor other, int dims=2) -> Tensor", tensordot_count),
      composite("inner(Tensor self, Tensor other) -> Tensor", inner),
      composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
                bilinear),
  };
}

}  // namespace stax::ops
