// The words that rows of the op table are written with, for the files of this folder only: names of other
// layers without their namespaces.
#pragma once

#include <vector>

#include "graph/builder.h"
#include "graph/op.h"

namespace stax::ops {

using graph::Builder;
using graph::MetaArgs;
using graph::num;
using graph::TensorMeta;
using graph::Var;
using graph::VarArg;
using graph::VarArgs;
using graph::wrap_dim;
using Exprs = std::vector<Expr>;
using Metas = std::vector<TensorMeta>;
using Ops = std::vector<graph::Op>;
using Rule = graph::DTypeRule;
using Vars = std::vector<Var>;

// The kinds of rows.
using graph::composite;
using graph::decomposed;
using graph::dynamic;
using graph::external;
using graph::in_place;
using graph::internal;
using graph::lowered;
using graph::pointwise;
using graph::view;

}  // namespace stax::ops
