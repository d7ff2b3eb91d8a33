// From operator graph to loops. A value of the graph is lazy: either stored in a buffer, or a formula over
// the index variables i0, i1, ... of its shape that is computed where it is used. Reductions, external calls,
// outputs, and formulas that are expensive and used more than once become nodes with buffers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/target.h"
#include "graph/graph.h"
#include "loops/program.h"
#include "lowering/split.h"

namespace stax::lowering {

class Lowering;

/// A scalar value inside the body under construction; operators and functions below make bodies read as
/// formulas.
struct V {
  loops::BodyBuilder* body = nullptr;
  loops::ValueId id = -1;
  DType dtype() const { return body->dtype(id); }
};

using Index = std::vector<Expr>;

/// A tensor while lowering.
class Lazy {
 public:
  DType dtype = DType::float32;
  std::vector<Expr> sizes;

  // Stored: element `index` lies at offset + sum(index * stride) of the buffer.
  loops::BufferId buffer = -1;
  std::vector<Expr> strides;
  Expr offset;
  // Computed: the value at (i0, i1, ...), of dtype compute_dtype(dtype).
  loops::ValueId formula = -1;

  bool stored() const { return buffer >= 0; }
  int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
};

/// What a pointwise body is given: one value per tensor or number of the call, already loaded and converted
/// as the row's dtype rule says (absent optional ones have id -1), and the call's other arguments.
struct PointwiseArgs {
  std::vector<V> values;        // by schema position; id -1 where the argument is neither tensor nor number
  const graph::LazyArgs* args;  // the call's arguments
  DType result;                 // dtype of the result

  const V& operator[](size_t position) const { return values[position]; }
  const V& operator[](std::string_view name) const { return values[args->schema().position(name)]; }
};

class Lowering {
 public:
  Lowering(ShapeEnv& env, const Target& target) : env_(env), chooser_(Sizes(env)), target_(target) {}

  ShapeEnv& env() { return env_; }
  const Target& target() const { return target_; }
  const std::vector<Choice>& choices() const { return chooser_.choices(); }
  loops::BodyBuilder& body() { return body_; }

  /// The value of `tensor` at `index`, whose expressions may use index symbols and indirect(v).
  V load(const Lazy& tensor, const Index& index);
  /// Like load(), evaluated only where `mask` is true; `other` elsewhere. Memory is not touched where it is
  /// false.
  V masked_load(const Lazy& tensor, const Index& index, V mask, V other);
  /// An index expression that is the int64 value `v`.
  Expr indirect(V v);
  /// `v` as an index into a dimension of `size`: checked, negative values counted from the end where `wrap`.
  Expr checked(V v, Expr size, bool wrap);

  V constant(DType dtype, double value);
  V constant(DType dtype, int64_t value);
  V number(const Number& number, DType dtype);
  V index_value(Expr e);  // int64
  V scalar(DType dtype, int32_t number);
  /// Word `word` of the random bits at `counter` (from the program's random offset on): int64 in [0, 2^32).
  /// The program's run-time scalars 0 and 1 are seed and offset of the generator.
  V random_bits(Expr counter, int32_t word);

  /// A lazy tensor given by its value at each index.
  Lazy pointwise(DType dtype, std::vector<Expr> sizes, const std::function<V(const Index&)>& value);

  /// A reduction: results at index i of reduce `op` over r of value(i, r). Several operands for
  /// welford_combine. The results (one per dtype in `dtypes`) are stored. finish(results) may compute what is
  /// stored from them instead.
  struct Reduction {
    loops::OpCode op;
    DType accumulate;                  // dtype that the operands are converted to
    std::vector<Expr> sizes, reduced;  // iteration and reduction ranges
    std::function<std::vector<V>(const Index& i, const Index& r)> value;
    std::vector<DType> dtypes;  // of the stored results
    std::function<std::vector<V>(const std::vector<V>& results)>
        finish;           // default: the results themselves, cast
    int32_t results = 1;  // how many results the reduction has that finish needs
  };
  std::vector<Lazy> reduce(const Reduction& reduction);

  /// Buffers with results of reductions in two levels, on a GPU.
  const std::set<loops::BufferId>& split_results() const { return split_results_; }

  /// A scan: results at index i of scan `op` over value(.) along dimension `dim` of `sizes`, up to i. They
  /// are stored, one per dtype in `dtypes`, row-major on a GPU, and with `dim` innermost on a CPU.
  struct Scan {
    loops::OpCode op;
    DType accumulate;         // dtype that the values are converted to
    std::vector<Expr> sizes;  // at least one
    size_t dim = 0;
    std::function<V(const Index& i)> value;
    std::vector<DType> dtypes;
    /// What is stored, from the results at index i; default: the results themselves, cast.
    std::function<std::vector<V>(const std::vector<V>& results, const Index& i)> finish;
  };
  std::vector<Lazy> scan(const Scan& scan);

  /// Orders of runs of elements, one after another along dimension `dim`: of each run, the first `keep`
  /// values(run, key, kept), in ascending order of the keys key(run, position), of which no two are the same.
  /// `sizes` are those of the result, but along `dim` the number of runs, which `run` counts, too. Where
  /// there is a `kept`, the values are stored only where it is true, and the key may be of no element
  /// elsewhere. For a GPU, where one block has to cover a run: `length` is proven to be at most 2048.
  struct Order {
    std::vector<Expr> sizes;
    size_t dim = 0;
    Expr length, keep;
    std::function<V(const Index& run, Expr position)> key;  // int64
    std::function<std::vector<V>(const Index& run, V key, std::optional<V> kept)> values;
    std::vector<DType> dtypes;
  };
  std::vector<Lazy> order(const Order& order);

  /// Writes that land where data says: `base` copied, then value(i) stored at target(i) for every i in
  /// `sizes`; later ones win (or are added when `accumulate`).
  Lazy scatter(const Lazy& base, std::vector<Expr> sizes, const std::function<Index(const Index&)>& target,
               const std::function<V(const Index&)>& value, bool accumulate);

  /// Values that move to where data says: new tensors of `sizes`, one a dtype, with values(i) at target(i)
  /// for every i in `from` for which keep(i) is true (default: all). Every element is the target of one.
  struct Placement {
    std::vector<DType> dtypes;
    std::vector<Expr> sizes, from;
    std::function<Index(const Index&)> target;
    std::function<std::vector<V>(const Index&)> values;
    std::function<V(const Index&)> keep;
  };
  std::vector<Lazy> place(const Placement& placement);

  /// Names the buffer that the call being lowered may write into, since nobody reads its old value later; -1
  /// for none.
  void set_dying(loops::BufferId buffer) { dying_ = buffer; }
  /// True where the call being lowered may write into the memory of `base`.
  bool may_overwrite(const Lazy& base) const { return base.stored() && base.buffer == dying_; }
  /// True if computing the value `root` loads from `buffer`, elsewhere than at `but_at`.
  bool reads(loops::ValueId root, loops::BufferId buffer, std::optional<Expr> but_at) const;
  /// `base`, which may be overwritten, after `source` was written to `region`, a view of its memory: costs
  /// the region. A source that reads other elements of the buffer than it writes is computed first.
  Lazy overwrite(const Lazy& base, const Lazy& region, const Lazy& source);

  /// The same values in a buffer: `tensor` itself when it is stored, else a new buffer with these strides
  /// (row-major by default).
  Lazy realize(const Lazy& tensor);
  Lazy realize(const Lazy& tensor, const std::vector<Expr>& strides);
  /// A new buffer with the values of `tensor`.
  Lazy copy(const Lazy& tensor, const std::vector<Expr>& strides);
  /// A node that writes `value` to every element of the stored tensor `target`.
  void store_to(const Lazy& target, const Lazy& value);
  /// A new buffer that nodes yet to be emitted write.
  Lazy new_tensor(DType dtype, std::vector<Expr> sizes, std::vector<Expr> strides);

  /// A call of an external function; results are stored with the given metas.
  std::vector<Lazy> external(const std::string& function, const graph::LazyArgs& args,
                             const std::vector<graph::TensorMeta>& results);

  loops::Program& program() { return program_; }
  /// The value that changes nothing under the reduction `op`; 0 for those that have none.
  V identity(loops::OpCode op, DType dtype);

  /// Operator that the nodes emitted from now on are credited to, and where it was called. A node that checks
  /// indices names the operators that they belong to as well, and the place of that one if it is the only
  /// one.
  void set_origin(std::string origin, CallStack where = {});

 private:
  struct Store {
    loops::BufferId buffer = -1;
    Expr index;
    loops::ValueId value = -1;
    std::vector<loops::ValueId> indirect;
    bool accumulate = false;
    loops::ValueId mask = -1;  // nothing is stored where it is false
  };
  loops::BufferId new_buffer(DType dtype, std::vector<Expr> sizes, std::vector<Expr> strides,
                             loops::BufferRole role);
  void gather_first(Reduction& reduction);
  std::vector<Lazy> reduce_at_once(const Reduction& reduction);
  std::vector<Lazy> reduce_split(const Reduction& reduction, loops::OpCode combine, const Split& split);
  std::vector<Lazy> position_split(const Reduction& reduction, const Split& split);
  Reduction partial_reduction(const Reduction& reduction, const Split& split);
  V inside_or_identity(V value, Expr flat, Expr length, size_t rank, loops::OpCode op, DType accumulate);
  std::vector<V> scanned(const Scan& scan, V value);
  std::vector<Lazy> scan_at_once(const Scan& scan);
  std::vector<Lazy> scan_split(const Scan& scan, const Split& split);
  std::vector<Lazy> totals_before(const Scan& chunks, const Split& split);
  std::vector<Lazy> store_scan(const Scan& scan, std::vector<V> results, const Index& at,
                               const std::vector<Expr>& ranges, Expr chunk, bool exact);
  void credit(loops::Node& node, const std::vector<loops::ValueId>& copies) const;
  loops::ValueId reindex(loops::ValueId root, const Index& index, loops::ValueId mask);
  void emit(std::vector<Expr> ranges, std::vector<Expr> reduction_ranges, const std::vector<Store>& stores);

  ShapeEnv& env_;
  Chooser chooser_;
  Target target_;
  loops::Program program_;
  loops::BodyBuilder body_;  // formulas of all lazy tensors
  std::string origin_;
  CallStack where_;
  int32_t call_ = 0;  // counts calls of set_origin
  /// Of check_index values: the operators they belong to.
  struct Checker {
    std::string origin;
    CallStack where;
    int32_t call;
  };
  std::map<loops::ValueId, Checker> checkers_;
  loops::BufferId dying_ = -1;
  std::set<loops::BufferId> split_results_;
};

/// What a program's results are: views of its output buffers, or of the caller's inputs.
struct ResultView {
  int32_t output = -1;          // position in Program::outputs, or -1
  int32_t alias_of_input = -1;  // position in Graph::inputs, or -1
  graph::TensorMeta meta;       // sizes, strides, offset in that storage
};

struct Lowered {
  loops::Program program;
  std::vector<ResultView> results;  // parallel to Graph::outputs
  std::vector<Choice> choices;      // that depend on sizes
};

/// Lowers a graph that has no composite or decomposed operators left.
Lowered lower(const graph::OpTable& table, const graph::Graph& graph, ShapeEnv& env,
              const Target& target = {});

}  // namespace stax::lowering
