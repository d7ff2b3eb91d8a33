// Walks an operator graph and lowers each node by its row.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <type_traits>

#include "graph/broadcast.h"
#include "graph/op.h"
#include "loops/exponentials.h"
#include "lowering/host_functions.h"
#include "lowering/lowering.h"
#include "lowering/node_needs.h"
#include "lowering/scalar.h"
#include "lowering/view_dtype.h"
#include "support/check.h"
#include "tensor/element.h"

namespace stax::lowering {

using graph::Graph;
using graph::MetaArgs;
using graph::Node;
using graph::NodeKind;
using graph::Op;
using graph::OpClass;
using graph::TensorMeta;
using graph::Value;
using loops::BufferRole;
using loops::Inst;
using loops::OpCode;
using loops::ValueId;

namespace {

loops::Constant read_constant(const std::byte* data, DType dtype) {
  return visit_element(dtype, [&](auto element) {
    using E = decltype(element);
    typename E::Stored stored;
    std::memcpy(&stored, data, sizeof stored);
    const typename E::Value value = E::load(stored);
    if constexpr (std::is_floating_point_v<typename E::Value>) {
      return loops::Constant::of(double{value});
    } else {
      return loops::Constant::of(int64_t{value});
    }
  });
}

}  // namespace

struct GraphLowering {
  const graph::OpTable& table;
  const Graph& graph;
  Lowering lowering;
  std::vector<std::vector<Lazy>> values;  // by node and result
  const NodeNeeds needs;
  std::vector<Lazy> parameters;  // by input: the caller's memory, whatever the value is read from later
  std::set<Symbol> bound;        // by the results of dynamic nodes

  GraphLowering(const graph::OpTable& table, const Graph& graph, ShapeEnv& env, const Target& target)
      : table(table),
        graph(graph),
        lowering(env, target),
        values(graph.nodes.size()),
        needs(find_needs(graph)) {}

  size_t id_of(const Node& node) const { return static_cast<size_t>(&node - graph.nodes.data()); }

  /// The buffer of the first argument of node `id`, if it is all of an intermediate that nobody reads
  /// afterwards; or -1.
  loops::BufferId dying_buffer(size_t id) {
    const Node& node = graph.nodes[id];
    const Value base = node.args[0].tensor();
    if (needs.last_use[base.node] != static_cast<int32_t>(id)) return -1;
    const Lazy& t = lazy(base);
    if (!t.stored()) return -1;
    const loops::Buffer& buffer = lowering.program().buffers[t.buffer];
    const bool whole =
        t.offset.is(0) && t.dtype == buffer.dtype && t.sizes == buffer.sizes && t.strides == buffer.strides;
    if (buffer.role != BufferRole::intermediate || !whole) return -1;
    for (const Expr stride : t.strides) {
      if (stride.is(0)) return -1;
    }
    for (size_t n = 0; n < id; ++n) {
      if (needs.last_use[n] <= static_cast<int32_t>(id)) continue;
      for (const Lazy& other : values[n]) {
        if (other.stored() ? other.buffer == t.buffer : lowering.reads(other.formula, t.buffer, {}))
          return -1;
      }
    }
    return t.buffer;
  }

  /// The results' metas with the strides that they get in memory.
  std::vector<TensorMeta> placed(const Node& node) const {
    std::vector<TensorMeta> metas = node.results;
    if (!node.op->layout || needs.pinned[id_of(node)]) return metas;
    for (TensorMeta& m : metas) {
      if (std::vector<Expr> strides = node.op->layout(m); !strides.empty()) m.strides = std::move(strides);
    }
    return metas;
  }

  const Lazy& lazy(const Value& v) const { return values[v.node][v.result]; }

  void lower_input(const Node& node) {
    const TensorMeta& m = node.results[0];
    Lazy t = lowering.new_tensor(m.dtype, m.sizes, m.strides);
    loops::Program& program = lowering.program();
    program.buffers[t.buffer].role = BufferRole::input;
    program.buffers[t.buffer].name = fmt::format("in{}", node.input);
    if (program.inputs.size() <= static_cast<size_t>(node.input)) program.inputs.resize(node.input + 1);
    program.inputs[node.input] = t.buffer;
    bind_symbols(node.input, m);
    parameters.resize(program.inputs.size());
    parameters[node.input] = t;
    values[id_of(node)] = {std::move(t)};
  }

  void bind_symbols(int32_t input, const TensorMeta& m) {
    const auto bind = [&](Expr e, loops::SymbolBinding::Part part, size_t dim) {
      if (e.kind() != ExprKind::symbol) return;
      auto& bindings = lowering.program().bindings;
      for (const auto& b : bindings) {
        if (b.symbol == e.symbol()) return;
      }
      bindings.push_back({e.symbol(), part, input, static_cast<int32_t>(dim)});
    };
    for (size_t d = 0; d < m.sizes.size(); ++d) bind(m.sizes[d], loops::SymbolBinding::Part::size, d);
    for (size_t d = 0; d < m.strides.size(); ++d) bind(m.strides[d], loops::SymbolBinding::Part::stride, d);
  }

  /// Symbols that no input gives are values of the call: integer arguments, sizes of tensors that nothing
  /// else is read of.
  void bind_values() {
    auto& bindings = lowering.program().bindings;
    for (Symbol symbol{SymbolKind::size, 0}; lowering.env().hint(symbol); ++symbol.number) {
      const bool bound =
          std::any_of(bindings.begin(), bindings.end(), [&](const auto& b) { return b.symbol == symbol; });
      if (!bound) bindings.push_back({symbol, loops::SymbolBinding::Part::value, symbol.number, 0});
    }
  }

  void lower_constant(const Node& node) {
    const TensorMeta& m = node.results[0];
    if (m.numel().is(1)) {
      values[id_of(node)] = {lowering.pointwise(m.dtype, m.sizes, [&](const Index&) {
        return V{&lowering.body(), lowering.body().add(immediate(node))};
      })};
      return;
    }
    Lazy t = lowering.new_tensor(m.dtype, m.sizes, m.strides);
    loops::Buffer& buffer = lowering.program().buffers[t.buffer];
    buffer.role = BufferRole::constant;
    buffer.data = node.data;
    values[id_of(node)] = {std::move(t)};
  }

  // The value of a constant of one element, in its compute dtype.
  static Inst immediate(const Node& node) {
    Inst inst;
    inst.op = OpCode::constant;
    inst.dtype = loops::compute_dtype(node.results[0].dtype);
    inst.constant = read_constant(node.data->data(), node.results[0].dtype);
    return inst;
  }

  std::vector<Argument<TensorMeta>> meta_args(const Node& node) const {
    std::vector<Argument<TensorMeta>> out;
    for (const auto& a : node.args) {
      out.push_back(map_tensors<TensorMeta>(a, [&](const Value& v) { return graph.meta(v); }));
    }
    return out;
  }

  Lazy lower_pointwise(const Node& node, const graph::LazyArgs& args) {
    const Op& op = *node.op;
    const auto metas = meta_args(node);
    const graph::PointwiseDTypes dtypes = pointwise_dtypes(op, MetaArgs(op.schema, metas));
    const TensorMeta& result = node.results[0];
    return lowering.pointwise(result.dtype, result.sizes, [&](const Index& i) {
      PointwiseArgs in{{}, &args, dtypes.result};
      for (size_t k = 0; k < args.size(); ++k) {
        V v;
        const bool keeps_dtype = k == 0 && op.dtype_rule == graph::DTypeRule::promote_tail;
        if (args[k].is_tensor()) {
          v = load_broadcast(args[k].tensor(), i, result.sizes);
          if (!keeps_dtype) v = cast(v, dtypes.compute);
        } else if (args[k].is_number() && (op.schema.params[k].type == graph::ParamType::scalar ||
                                           op.schema.params[k].type == graph::ParamType::tensor)) {
          v = lowering.number(args[k].number(), keeps_dtype ? DType::boolean : dtypes.compute);
        }
        in.values.push_back(v);
      }
      return cast(op.body(in), dtypes.result);
    });
  }

  V load_broadcast(const Lazy& t, const Index& i, const std::vector<Expr>& sizes) {
    Index at;
    const size_t skip = i.size() - t.sizes.size();
    for (size_t d = 0; d < t.sizes.size(); ++d) {
      const bool broadcast = graph::repeats(lowering.env(), t.sizes[d], sizes[skip + d]);
      at.push_back(broadcast ? Expr(0) : i[skip + d]);
    }
    return lowering.load(t, at);
  }

  Lazy lower_view(const Node& node, const graph::LazyArgs& args) {
    const Value source = node.args[0].tensor();
    const Lazy& in = args.tensor(0);
    const TensorMeta& from = graph.meta(source);
    const TensorMeta& to = node.results[0];
    // A buffer may be laid out otherwise than its value's meta says: a scan stores what it scans along last.
    const bool as_meta = in.stored() && (in.strides == from.strides || !node.op->index_map);
    if (as_meta && in.dtype == to.dtype) {
      Lazy out = in;
      out.sizes = to.sizes;
      out.strides = to.strides;
      out.offset = in.offset + (to.offset - from.offset);
      return out;
    }
    if (in.dtype != to.dtype) return view_as_dtype(lowering, in, to);
    STAX_ASSERT(node.op->index_map, "lowering: {} needs a stored input", node.op->schema.full_name());
    const auto metas = meta_args(node);
    return lowering.pointwise(to.dtype, to.sizes, [&](const Index& i) {
      return lowering.load(in, node.op->index_map(lowering.env(), MetaArgs(node.op->schema, metas), to, i));
    });
  }

  void lower_call(const Node& node) {
    const Op& op = *node.op;
    lowering.set_origin(op.schema.name, node.where);
    std::vector<Argument<Lazy>> bound;
    // Views that have no index map (as_strided, a change of dtype) look at memory: what they view is stored
    // as its meta says.
    if (op.op_class == OpClass::view && !op.index_map) store_value(node.args[0].tensor());
    for (const auto& a : node.args)
      bound.push_back(map_tensors<Lazy>(a, [&](const Value& v) { return lazy(v); }));
    if (op.layout && !bound[0].tensor().stored()) {
      const auto& strides = needs.wanted[node.args[0].tensor().node];
      if (!strides.empty()) bound[0] = lowering.realize(bound[0].tensor(), strides);
    }
    const graph::LazyArgs args(op.schema, bound);
    const size_t id = id_of(node);
    std::vector<Lazy>& out = values[id];
    switch (op.op_class) {
      case OpClass::pointwise:
        // A copy of what nobody else reads is that value itself.
        if (is_clone(node) && dying_buffer(id) >= 0 && args.tensor(0).strides == node.results[0].strides) {
          out = {args.tensor(0)};
        } else {
          out = {lower_pointwise(node, args)};
        }
        break;
      case OpClass::view:
        out = {lower_view(node, args)};
        break;
      case OpClass::lowered:
        if (needs.in_place[id] && is_write(node)) lowering.set_dying(dying_buffer(id));
        out = op.lower(lowering, args);
        lowering.set_dying(-1);
        break;
      case OpClass::external:
        if (!is_host_function(op, lowering.target().kind)) out = op.lower(lowering, args);
        if (out.empty()) out = lowering.external(op.schema.full_name(), args, placed(node));
        break;
      case OpClass::dynamic:
        out = lowering.external(op.schema.full_name(), args, node.results);
        bind_results(lowering.program().nodes.back(), node);
        break;
      case OpClass::composite:
      case OpClass::decomposed:
        STAX_ASSERT(false, "lowering: {} has no lowering; the pass `decompose` should have replaced it",
                    op.schema.full_name());
    }
    check_results(node, out);
    if (needs.uses[id] > 1) store_expensive(node, out);
  }

  static void check_results(const Node& node, const std::vector<Lazy>& out) {
    const Op& op = *node.op;
    STAX_ASSERT(out.size() == node.results.size(), "lowering: {} gave {} results, its meta rule {}",
                op.schema.full_name(), out.size(), node.results.size());
    for (size_t k = 0; k < out.size(); ++k) {
      STAX_ASSERT(
          out[k].dtype == node.results[k].dtype && out[k].sizes.size() == node.results[k].sizes.size(),
          "lowering: result {} of {} has dtype {} and rank {}, its meta says {}", k, op.schema.full_name(),
          name(out[k].dtype), out[k].sizes.size(), node.results[k].str());
    }
  }

  /// Gives buffers to results that have several readers and are not worth computing in each.
  void store_expensive(const Node& node, std::vector<Lazy>& out) {
    const size_t id = id_of(node);
    for (size_t k = 0; k < out.size(); ++k) {
      // A half value that is stored has been rounded: for all its readers.
      const bool rounds = needs.stored[id] && is_half(out[k].dtype) && !out[k].stored();
      if (!rounds && (out[k].stored() || is_cheap(lowering.body().body(), out[k].formula) ||
                      is_cheap_after(lowering.split_results(), lowering.body().body(), out[k].formula)))
        continue;
      const bool free = k == 0 && !needs.pinned[id] && !needs.wanted[id].empty();
      out[k] = lowering.copy(out[k], free ? needs.wanted[id] : node.results[k].strides);
    }
  }

  /// The symbols that the node's results give their values: sizes, and the one that an argument names.
  void bind_results(loops::Node& to, const Node& node) {
    to.dynamic = true;
    const auto bind = [&](Expr e, size_t result, int32_t dim) {
      if (e.kind() != ExprKind::symbol || e.symbol().kind != SymbolKind::unbacked) return;
      if (!bound.insert(e.symbol()).second) return;
      to.binds.push_back({e.symbol(), static_cast<int32_t>(result), dim});
    };
    for (auto& argument : to.arguments) {
      if (!argument.is_number() || node.op->schema.name != "bind_value") continue;
      bind(argument.number().integer, 0, -1);
      argument = {};
    }
    for (size_t r = 0; r < node.results.size(); ++r) {
      const std::vector<Expr>& sizes = node.results[r].sizes;
      for (size_t d = 0; d < sizes.size(); ++d) bind(sizes[d], r, static_cast<int32_t>(d));
    }
  }

  // Makes a value stored, with the strides of its meta.
  const Lazy& store_value(const Value& v) {
    Lazy& t = values[v.node][v.result];
    const TensorMeta& m = graph.meta(v);
    const bool as_meta = t.stored() && (t.strides == m.strides || t.sizes != m.sizes);
    if (!as_meta) t = lowering.copy(t, m.strides);
    return t;
  }

  ResultView result(const graph::Output& output) {
    ResultView view;
    view.meta = graph.meta(output.value);
    if (output.alias_of_input >= 0) {
      view.alias_of_input = output.alias_of_input;
      return view;
    }
    loops::Program& program = lowering.program();
    const Lazy* t = &store_value(output.value);
    const BufferRole role = program.buffers[t->buffer].role;
    if (role == BufferRole::input || role == BufferRole::constant) {
      values[output.value.node][output.value.result] = lowering.copy(*t, graph::contiguous_strides(t->sizes));
      t = &lazy(output.value);
    }
    if (program.buffers[t->buffer].role != BufferRole::output) {
      program.buffers[t->buffer].role = BufferRole::output;
      program.buffers[t->buffer].name = fmt::format("out{}", program.outputs.size());
      program.outputs.push_back(t->buffer);
    }
    for (size_t k = 0; k < program.outputs.size(); ++k) {
      if (program.outputs[k] == t->buffer) view.output = static_cast<int32_t>(k);
    }
    view.meta.strides = t->strides;
    view.meta.offset = t->offset;
    return view;
  }

  // Writes new values of inputs. A new value may read inputs that are written too, so it is stored on its own
  // first, unless it reads no written input at all.
  void write_back() {
    std::vector<Lazy> staged;
    for (const graph::WriteBack& w : graph.write_backs) {
      const Lazy& t = lazy(w.value);
      const bool own_buffer = t.stored() && lowering.program().buffers[t.buffer].role != BufferRole::input;
      staged.push_back(own_buffer ? t : lowering.copy(t, graph::contiguous_strides(t.sizes)));
    }
    for (size_t k = 0; k < staged.size(); ++k) {
      const graph::WriteBack& w = graph.write_backs[k];
      Lazy target = parameters[w.input];
      if (w.region) {
        target.sizes = w.region->sizes;
        target.strides = w.region->strides;
        target.offset = target.offset + w.region->offset;
      }
      lowering.program().buffers[target.buffer].mutated = true;
      lowering.set_origin("copy_");
      lowering.store_to(target, staged[k]);
    }
  }

  Lowered run() {
    lowering.program().inputs.resize(graph.inputs.size());
    for (const Node& node : graph.nodes) {
      switch (node.kind) {
        case NodeKind::input:
          lower_input(node);
          break;
        case NodeKind::constant:
          lower_constant(node);
          break;
        case NodeKind::call:
          lower_call(node);
          break;
      }
    }
    Lowered out;
    lowering.set_origin("copy");
    for (const graph::Output& o : graph.outputs) out.results.push_back(result(o));
    write_back();
    bind_values();
    out.choices = lowering.choices();
    lowering.program().assertions = lowering.env().assertions();
    out.program = std::move(lowering.program());
    remove_unused(out.program);
    return out;
  }

  /// Whether it runs over no element: there is nothing to compute, nor to store.
  static bool is_empty(const loops::Node& node) {
    return node.kind == loops::NodeKind::loops &&
           std::ranges::any_of(node.ranges, [](Expr size) { return size.is(0); });
  }

  // Drops nodes whose results nobody reads, and those of results without elements that no other node reads.
  // (Buffers keep their numbers.)
  static void remove_unused(loops::Program& program) {
    std::vector<char> live(program.buffers.size(), 0), read(program.buffers.size(), 0);
    for (size_t b = 0; b < live.size(); ++b) {
      const auto& buffer = program.buffers[b];
      live[b] = buffer.role == BufferRole::output || (buffer.role == BufferRole::input && buffer.mutated);
    }
    std::vector<loops::Node> kept;
    for (size_t n = program.nodes.size(); n-- > 0;) {
      loops::Node& node = program.nodes[n];
      bool used = node.dynamic;
      const bool empty = is_empty(node);
      for (const loops::BufferId b : node.writes()) used |= read[b] != 0 || (live[b] != 0 && !empty);
      if (!used) continue;
      for (const loops::BufferId b : node.reads()) live[b] = read[b] = 1;
      kept.push_back(std::move(node));
    }
    program.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  }
};

Lowered lower(const graph::OpTable& table, const graph::Graph& graph, ShapeEnv& env, const Target& target) {
  Lowered lowered = GraphLowering(table, graph, env, target).run();
  if (target.kind == Target::Kind::cuda) loops::merge_split_softmax(lowered.program);
  loops::verify(lowered.program);
  return lowered;
}

}  // namespace stax::lowering
