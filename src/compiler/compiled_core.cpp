// Finds the artifact for a call, or makes one.
#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <ostream>
#include <thread>

#include "capture/functional_trace.h"
#include "compiler/decisions.h"
#include "compiler/guards.h"
#include "compiler/key.h"
#include "compiler/program.h"
#include "compiler/small_array.h"
#include "support/check.h"
#include "support/log.h"
#include "tensor/sym_int.h"
#include "tuning/search.h"

namespace stax {
namespace detail {
namespace {

using compiler::CallTensors;
using compiler::CompiledProgram;
using compiler::Key;
using compiler::NumberCell;
using log::Channel;

constexpr int64_t kMaxArtifacts = 8;
constexpr int64_t kMostBuckets = 256;
constexpr int64_t kMaxCompilations = 256;

/// Values of size symbols in one call, by number.
struct SymbolValues {
  std::span<const int64_t> span() const { return {heap.empty() ? fixed : heap.data(), count}; }
  int64_t* resize(size_t size) {
    count = size;
    if (size > std::size(fixed)) heap.resize(size);
    return heap.empty() ? fixed : heap.data();
  }
  int64_t fixed[16];
  std::vector<int64_t> heap;
  size_t count = 0;
};

/// What one kind of arguments led to.
struct Entry {
  Key key;
  int32_t kind = 0;        // position of the first entry whose key is of the same kind
  bool only_kind = false;  // key.is_only_kind()
  compiler::Guards guards;
  std::shared_ptr<const CompiledProgram> program;  // null: runs eagerly
  std::shared_ptr<const void> prototype;
  std::vector<char> wanted;  // by leaf of the result, tensors first: comes from the program
  std::string eager_reason;

  /// Of a call of the key's kind.
  bool fits(const CallTensors& call, SymbolValues& symbols) const {
    if (guards.empty()) {
      symbols.resize(0);
      return true;
    }
    compiler::SmallArray<int64_t, 48> registers(guards.registers());
    return guards.hold(call, registers.data(), symbols.resize(guards.symbols()));
  }
  std::string misfit(const Leaves& leaves, const CallTensors& call) const {
    const std::string by_key = key.misfit(leaves, call);
    return by_key.empty() ? guards.misfit(call) : by_key;
  }
  std::vector<std::string> conditions() const {
    std::vector<std::string> all = key.conditions();
    for (std::string& guard : guards.conditions()) all.push_back(std::move(guard));
    return all;
  }
};
using EntryPtr = std::shared_ptr<const Entry>;

NumberCell cell_of(const Scalar& number) {
  NumberCell cell{};
  switch (number.kind()) {
    case Scalar::Kind::boolean:
      cell.boolean = static_cast<int64_t>(number.integer()) != 0;
      break;
    case Scalar::Kind::integer:
      cell.integer = number.integer();
      break;
    case Scalar::Kind::floating:
      cell.floating = number.floating();
      break;
  }
  return cell;
}

bool checks_decisions() {
  static const bool checks = compiler::checks("decisions");
  return checks;
}

/// What the entry was decided by, asked again at the sizes of this call.
compiler::DecisionCheck decisions_of(const Entry& entry, const Leaves& leaves) {
  std::vector<const StridedImpl*> tensors;
  for (const Tensor* tensor : leaves.tensors) tensors.push_back(&strided(*tensor));
  return {entry.program->captured(), tensors, {leaves.integers.data(), leaves.integers.size()}};
}

/// `symbols`: the values that the entry's guards found in this call.
void run_entry(const Entry& entry, const Leaves& leaves, std::span<const int64_t> symbols,
               CallResults& results) {
  compiler::SmallArray<NumberCell, 4> numbers(leaves.numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = cell_of(*leaves.numbers[k]);
  results.tensors.resize(entry.program->result_count());
  results.integers.resize(entry.program->captured().integers.size());
  const std::span<const Tensor* const> arguments{leaves.tensors.data(), leaves.tensors.size()};
  if (checks_decisions()) [[unlikely]] {
    const compiler::DecisionCheck decisions = decisions_of(entry, leaves);
    std::vector<int64_t> late;
    decisions.before();
    entry.program->run(arguments, numbers, results.tensors.data(), symbols, results.integers.data(), &late);
    decisions.after(late);
  } else {
    entry.program->run(arguments, numbers, results.tensors.data(), symbols, results.integers.data());
  }
  results.prototype = entry.prototype.get();
  results.wanted = entry.wanted.data();
}

std::vector<NumberCell> cells_of(const Leaves& leaves) {
  std::vector<NumberCell> cells;
  for (const Scalar* number : leaves.numbers) cells.push_back(cell_of(*number));
  return cells;
}

/// Runs `call` under a new trace. Its results are the captured graph's; or, where the function read a value,
/// the call keeps them, made concrete, and `read_where` says where.
struct TraceOutcome {
  std::optional<capture::Captured> captured;
  std::vector<char> wanted;
  std::string read_where;
};

/// The values that the hints of an environment give its size symbols, by number.
std::vector<int64_t> hints_of(const ShapeEnv& env) {
  std::vector<int64_t> values;
  for (Symbol s{SymbolKind::size, 0}; env.hint(s); ++s.number) values.push_back(*env.hint(s));
  return values;
}

/// Makes the kept results of a call whose trace was read concrete.
void settle(const ShapeEnv& env, std::span<Tensor* const> tensors, std::span<Scalar* const> numbers,
            std::span<SymInt* const> integers) {
  const auto number = [&](const SymInt& i) { return *env.hint(to_expr(i)); };
  for (Tensor* t : tensors) {
    if (t->defined()) *t = capture::unwrapped(*t);
  }
  for (Scalar* s : numbers) {
    if (s->traced()) *s = Tensor(s->traced()).item();
    if (s->is_symbolic()) *s = Scalar(number(s->integer()));
  }
  for (SymInt* i : integers) *i = number(*i);
}

TraceOutcome trace(const Leaves& leaves, FunctionCall& call, const capture::SymbolOptions& symbol_options,
                   bool refuse_reads) {
  const std::span<const Tensor* const> arguments(leaves.tensors.data(), leaves.tensors.size());
  capture::TraceOptions options;
  options.refuse_reads = refuse_reads;
  options.evaluate = [&](capture::Captured captured) {
    const std::vector<int64_t> symbols = hints_of(*captured.env);
    const std::shared_ptr<ShapeEnv> env = captured.env;
    const auto program = CompiledProgram::make(
        std::move(captured), compiler::PipelineOptions{compiler::Backend::reference, false});
    std::vector<Tensor> results(program->result_count());
    std::vector<int64_t> late;
    program->run(arguments, cells_of(leaves), results.data(), symbols, nullptr, &late);
    for (size_t k = 0; k < late.size(); ++k) {
      env->set_value({SymbolKind::unbacked, static_cast<int32_t>(k)}, late[k]);
    }
    return results;
  };
  const auto trace = capture::FunctionalTrace::start(std::move(options));
  capture::InputSymbols symbols = capture::make_symbols(
      trace->env(), arguments, {leaves.integers.data(), leaves.integers.size()}, symbol_options);
  const capture::TraceScope scope(trace.get());
  std::vector<Tensor> tensors;
  std::vector<Scalar> numbers;
  std::vector<SymInt> integers;
  for (const Tensor* tensor : arguments) {
    const size_t k = tensors.size();
    tensors.push_back(trace->argument(*tensor, static_cast<int32_t>(k), symbols.tensors[k]));
  }
  for (const Scalar* number : leaves.numbers) {
    numbers.push_back(trace->number(*number, static_cast<int32_t>(numbers.size())));
  }
  for (const Expr e : symbols.integers) integers.push_back(to_sym_int(e));
  call.run(tensors, numbers, integers);
  std::vector<Tensor*> result_tensors;
  std::vector<Scalar*> result_numbers;
  std::vector<SymInt*> result_integers;
  call.leaves(result_tensors, result_numbers, result_integers);
  TraceOutcome outcome;
  if (trace->was_read()) {
    outcome.read_where = trace->read_where();
    settle(trace->env(), result_tensors, result_numbers, result_integers);
    return outcome;
  }
  std::vector<Tensor> results;
  std::vector<Expr> sizes;
  for (const Tensor* t : result_tensors) {
    outcome.wanted.push_back(t->defined() ? 1 : 0);
    if (t->defined()) results.push_back(*t);
  }
  for (const Scalar* s : result_numbers) {
    outcome.wanted.push_back(s->traced() ? 1 : s->is_symbolic() ? 2 : 0);
    if (s->traced()) {
      results.emplace_back(s->traced());
    } else if (s->is_symbolic()) {
      sizes.push_back(to_expr(s->integer()));
    }
  }
  for (const SymInt* i : result_integers) {
    outcome.wanted.push_back(i->is_symbolic() ? 2 : 0);
    if (i->is_symbolic()) sizes.push_back(to_expr(*i));
  }
  outcome.captured = trace->finish(results);
  outcome.captured->symbols = std::move(symbols);
  outcome.captured->integers = std::move(sizes);
  return outcome;
}

/// Backend "debug" has no symbolic shapes: an input whose shape the program uses enters with all of it.
void fix_what_was_read(capture::Captured& captured) {
  std::vector<Symbol> read;
  const auto use = [&](Expr e) {
    for (const Symbol s : e.symbols()) read.push_back(s);
  };
  for (const Guard& guard : captured.env->guards()) {
    use(guard.condition.left);
    use(guard.condition.right);
  }
  for (const graph::Node& node : captured.graph.nodes) {
    for (const auto& argument : node.args) {
      if (argument.is_number()) use(argument.number().integer);
      if (const auto* list = std::get_if<std::vector<Expr>>(&argument.value))
        std::ranges::for_each(*list, use);
    }
  }
  std::ranges::for_each(captured.integers, use);
  for (const graph::TensorMeta& meta : captured.symbols.tensors) {
    const auto is_read = [&](Expr e) {
      return std::ranges::any_of(e.symbols(), [&](Symbol s) { return std::ranges::count(read, s) > 0; });
    };
    if (std::ranges::none_of(meta.sizes, is_read)) continue;
    for (const Expr size : meta.sizes) captured.env->specialize(size);
  }
}

/// UserError where the function holds for one value of a declared dimension only.
void check_declared(const capture::Captured& captured) {
  for (const capture::DeclaredDim& dim : captured.symbols.dims) {
    if (dim.root.is_constant() || dim.min == dim.max) continue;
    const int64_t value = *captured.env->hint(dim.root);
    const Interval range = captured.env->ranges().interval(dim.root);
    if (range.lower == range.upper || !captured.env->proves(eq(dim.root, value))) continue;
    std::string reasons;
    for (const Guard& guard : captured.env->guards()) {
      const Condition& c = guard.condition;
      if (!c.left.contains(dim.root.symbol()) && !c.right.contains(dim.root.symbol())) continue;
      reasons += "\n  - " + guard.str();
    }
    throw_user_error(fmt::format(
        "dimension {} is declared dynamic, within {}, but the function fixes it to {}; keep sizes symbolic "
        "(SymInt), or declare it as Dim::fixed(). What fixes {}:{}",
        dim.name,
        (dim.max == DimOptions::kNoLimit ? Interval::at_least(dim.min) : Interval::of(dim.min, dim.max))
            .str(),
        value, dim.root.str(), reasons));
  }
}

/// The call's key, without what the captured graph does not depend on.
Key relaxed_key(const Leaves& leaves, const CallTensors& call, const capture::Captured* captured,
                bool dynamic) {
  Key key = Key::of(leaves, call);
  const std::vector<compiler::TensorKey> exact = key.tensors;
  for (size_t k = 0; k < key.tensors.size(); ++k) {
    const bool shares = key.tensors[k].alias >= 0 ||
                        std::any_of(exact.begin(), exact.end(), [&](const compiler::TensorKey& t) {
                          return t.alias == static_cast<int32_t>(k);
                        });
    if (dynamic && !shares) key.forget_sizes(k);
    key.tensors[k].offset_matters = shares || (captured != nullptr && captured->offset_matters[k] != 0);
  }
  for (size_t k = 0; k < key.numbers.size(); ++k) {
    if (captured == nullptr || !captured->number_matters[k]) key.numbers[k].reset();
  }
  if (captured != nullptr) {
    std::vector<const Storage*> storages;
    for (const capture::CapturedInput& input : captured->inputs) {
      if (input.tensor.defined()) storages.push_back(strided(input.tensor).storage().get());
    }
    key.guard_captured(std::move(storages), call, !captured->graph.write_backs.empty());
  }
  return key;
}

}  // namespace

struct CompiledCore::State {
  CompileOptions options;
  std::mutex mutex;
  std::condition_variable done;
  struct Pending {
    Key key;
    std::thread::id owner;
  };
  std::list<Pending> pending;
  int64_t compilations = 0;
  bool warned = false;
  // Written under the mutex, read without: entries only ever get more, and never move.
  std::vector<EntryPtr> entries;
  std::atomic<int> count{0};

  bool strict() const { return options.fullgraph || options.strict_native; }
  capture::SymbolOptions symbol_options() const {
    capture::SymbolOptions symbols{options.dynamic, options.dynamic_shapes};
    symbols.record_decisions = checks_decisions();
    return symbols;
  }
  /// The entry that serves a call; `symbols` receives the values of its symbols.
  const Entry* find(const Leaves& leaves, const CallTensors& call, SymbolValues& symbols) const {
    const int n = count.load(std::memory_order_acquire);
    int32_t right = -1, wrong = -1;  // kinds: most entries are of one, which is looked at once
    for (int k = 0; k < n; ++k) {
      const Entry& entry = *entries[static_cast<size_t>(k)];
      if (entry.kind != right) {
        if (right >= 0 || entry.kind == wrong) continue;
        if (!entry.key.matches_kind(leaves, call)) {
          wrong = entry.kind;
          continue;
        }
        right = entry.kind;
      }
      if (!entry.fits(call, symbols)) continue;
      if (entry.only_kind || entry.key.matches_rest(leaves, call)) return &entry;
    }
    return nullptr;
  }
  /// Adds an entry, if there is room. Under the mutex.
  void keep(Entry& entry, const EntryPtr& pointer) {
    const int n = count.load(std::memory_order_relaxed);
    if (n >= static_cast<int>(entries.size())) return;
    entry.kind = n;
    entry.only_kind = entry.key.is_only_kind();
    for (int k = 0; k < n && entry.kind == n; ++k) {
      const Entry& other = *entries[static_cast<size_t>(k)];
      if (other.key.same_kind(entry.key)) entry.kind = other.kind;
    }
    entries[static_cast<size_t>(n)] = pointer;
    count.store(n + 1, std::memory_order_release);
  }

  std::shared_ptr<Entry> compile(const Leaves& leaves, const CallTensors& tensors, FunctionCall& call) const;
  void use(const Entry& entry, const Leaves& leaves, const SymbolValues& symbols, FunctionCall& call,
           CallResults& results) const;
  void miss(const Leaves& leaves, const CallTensors& tensors, FunctionCall& call, CallResults& results);
  void log_miss(const Leaves& leaves, const CallTensors& tensors) const;
  void retrace(const Entry& entry, const Leaves& leaves, FunctionCall& call) const;
  compiler::PipelineOptions pipeline_options() const {
    compiler::PipelineOptions out{compiler::Backend::native, options.strict_native};
    out.tuning = options.tuning;
    out.tf32 = options.matmul_precision != "highest";
    out.batch_invariant = options.batch_invariant;
    return out;
  }
};

std::shared_ptr<Entry> CompiledCore::State::compile(const Leaves& leaves, const CallTensors& tensors,
                                                    FunctionCall& call) const {
  auto entry = std::make_shared<Entry>();
  TraceOutcome outcome = trace(leaves, call, symbol_options(), strict());
  entry->key = relaxed_key(leaves, tensors, outcome.captured ? &*outcome.captured : nullptr, options.dynamic);
  if (!outcome.captured) {
    entry->eager_reason = "it reads a value: " + outcome.read_where;
    return entry;
  }
  entry->wanted = std::move(outcome.wanted);
  entry->prototype = call.take_prototype();
  if (options.backend == "debug") fix_what_was_read(*outcome.captured);
  entry->program =
      CompiledProgram::make(std::move(*outcome.captured), pipeline_options(), options.backend == "debug");
  check_declared(entry->program->captured());
  // After lowering, whose decisions are among them.
  entry->guards = compiler::Guards(entry->program->captured());
  if (log::enabled(Channel::guards)) {
    for (const std::string& guard : entry->conditions()) log::write(Channel::guards, guard);
  }
  return entry;
}

void CompiledCore::State::use(const Entry& entry, const Leaves& leaves, const SymbolValues& symbols,
                              FunctionCall& call, CallResults& results) const {
  static const bool retraces = compiler::checks("retrace");
  if (!entry.program) return call.run_plain();
  if (retraces) retrace(entry, leaves, call);
  run_entry(entry, leaves, symbols.span(), results);
}

/// STAX_CHECK=retrace: what the function does now, against what the artifact does.
void CompiledCore::State::retrace(const Entry& entry, const Leaves& leaves, FunctionCall& call) const {
  const TraceOutcome outcome = trace(leaves, call, symbol_options(), true);
  // Sizes that happen to be equal in this call share a symbol: that is another graph for another reason.
  const std::vector<graph::TensorMeta>& inputs = entry.program->captured().symbols.tensors;
  const auto same = [](const graph::TensorMeta& a, const graph::TensorMeta& b) {
    return a.sizes == b.sizes && a.strides == b.strides;
  };
  if (!std::ranges::equal(outcome.captured->symbols.tensors, inputs, same)) return;
  const std::string now = outcome.captured->graph.str(), then = entry.program->captured().graph.str();
  if (now == then) return;
  log::warn(
      fmt::format("the function does something else now than when it was compiled for {}; what it "
                  "captures has changed: make it an argument.\nthen:\n{}now:\n{}",
                  entry.key.str(), then, now));
}

void CompiledCore::State::log_miss(const Leaves& leaves, const CallTensors& tensors) const {
  if (!log::enabled(Channel::recompiles)) return;
  std::string text = "compiling for " + Key::of(leaves, tensors).str();
  for (int k = 0; k < count; ++k) {
    text += fmt::format("\n  artifact {}: {}", k, entries[static_cast<size_t>(k)]->misfit(leaves, tensors));
  }
  log::write(Channel::recompiles, text);
}

void CompiledCore::State::miss(const Leaves& leaves, const CallTensors& tensors, FunctionCall& call,
                               CallResults& results) {
  // Calls that may share an artifact wait for one another: with symbolic sizes all of one rank.
  const Key key = options.dynamic ? relaxed_key(leaves, tensors, nullptr, true) : Key::of(leaves, tensors);
  SymbolValues symbols;
  std::list<Pending>::iterator mine;
  {
    std::unique_lock lock(mutex);
    while (true) {
      if (const Entry* entry = find(leaves, tensors, symbols)) {
        lock.unlock();
        return use(*entry, leaves, symbols, call, results);
      }
      const auto other =
          std::find_if(pending.begin(), pending.end(), [&](const Pending& p) { return p.key.same(key); });
      if (other == pending.end()) break;
      if (other->owner == std::this_thread::get_id()) {  // the function calls itself
        lock.unlock();
        return call.run_plain();
      }
      done.wait(lock);
    }
    if (compilations >= kMaxCompilations) {
      STAX_CHECK(
          !strict(),
          "a compiled function was compiled {} times, the limit; something in its arguments differs in "
          "every call: see STAX_LOG=recompiles",
          kMaxCompilations);
      if (!std::exchange(warned, true)) {
        log::warn(
            fmt::format("a compiled function was compiled {} times, the limit; other arguments than "
                        "those run eagerly from now on: see STAX_LOG=recompiles",
                        kMaxCompilations));
      }
      lock.unlock();
      return call.run_plain();
    }
    ++compilations;
    log_miss(leaves, tensors);
    mine = pending.insert(pending.end(), {key, std::this_thread::get_id()});
  }
  std::shared_ptr<Entry> entry;
  std::exception_ptr error;
  try {
    entry = compile(leaves, tensors, call);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex);
    pending.erase(mine);
    if (entry) keep(*entry, entry);
  }
  done.notify_all();
  if (error) std::rethrow_exception(error);
  if (!entry->program) return;  // the call ran while it was traced, and keeps its result
  results.owner = entry;
  STAX_ASSERT(entry->fits(tensors, symbols), "[compile] an artifact does not fit its own example: {}",
              entry->misfit(leaves, tensors));
  run_entry(*entry, leaves, symbols.span(), results);
}

namespace {

/// The number of artifacts that declared buckets make of one.
int64_t buckets_of(const DynamicShapes& shapes) {
  std::map<std::string, int64_t> counts;  // by name
  for (const auto& dims : shapes) {
    for (const auto& [at, dim] : dims) {
      if (dim.kind() != Dim::Kind::named) continue;
      const DimOptions& options = dim.options();
      int64_t count = 1 + static_cast<int64_t>(options.buckets.size());
      if (options.power_of_two_buckets) {
        count += std::bit_width(static_cast<uint64_t>(options.max)) -
                 std::bit_width(static_cast<uint64_t>(options.min));
      }
      counts[dim.name()] = count;
    }
  }
  int64_t all = 1;
  for (const auto& [name, count] : counts) all = std::min(all * count, kMostBuckets);
  return all;
}

}  // namespace

bool is_tracing() {
  return capture::current_trace() != nullptr;
}

CompiledCore::CompiledCore(CompileOptions options) : state_(std::make_shared<State>()) {
  STAX_CHECK(options.backend == "stax" || options.backend == "debug",
             "compile: there is no backend '{}'; expected stax or debug", options.backend);
  STAX_CHECK(options.dynamic || options.dynamic_shapes.empty(),
             "compile: dynamic_shapes are declared, but dynamic is false; set both");
  const std::string& precision = options.matmul_precision;
  STAX_CHECK(precision == "highest" || precision == "high" || precision == "medium",
             "compile: matmul_precision is '{}'; expected 'highest', 'high' or 'medium'", precision);
  if (options.tuning.empty()) options.tuning = tuning::default_strategy();
  if (options.tuning != "none") (void)tuning::strategy_named(options.tuning);
  STAX_CHECK(!options.strict_native || options.backend == "stax",
             "compile: strict_native asks for kernels, which backend '{}' does not make", options.backend);
  state_->entries.resize(static_cast<size_t>(kMaxArtifacts * buckets_of(options.dynamic_shapes)));
  state_->options = std::move(options);
}

void CompiledCore::call(const Leaves& leaves, FunctionCall& call, CallResults& results) const {
  const CallTensors tensors(leaves);
  SymbolValues symbols;
  if (const Entry* entry = state_->find(leaves, tensors, symbols)) [[likely]] {
    return state_->use(*entry, leaves, symbols, call, results);
  }
  state_->miss(leaves, tensors, call, results);
}

std::vector<Artifact> CompiledCore::artifacts() const {
  std::vector<Artifact> out;
  const int n = state_->count.load(std::memory_order_acquire);
  for (int k = 0; k < n; ++k) {
    const Entry& entry = *state_->entries[static_cast<size_t>(k)];
    Artifact artifact{entry.key.str(), entry.conditions(), {}, "eager", {}, {}};
    if (entry.program) {
      const compiler::Stages& stages = entry.program->stages();
      artifact.target = stages.target;
      artifact.graph = stages.graph.str();
      if (stages.fallback.empty() && !(stages.kernels.empty() && stages.gpu_kernels.empty()))
        artifact.plan = compiler::plan_of(stages).str();
      for (const codegen::Kernel& kernel : stages.kernels) {
        artifact.kernels.push_back({kernel.info.name, codegen::print_module(std::span(&kernel, 1)).source});
      }
      for (const compiler::GpuKernel& kernel : stages.gpu_kernels)
        artifact.kernels.push_back({kernel.tile.name, kernel.sources.plain});
    }
    out.push_back(std::move(artifact));
  }
  return out;
}

Explanation CompiledCore::explain(const Leaves& leaves, FunctionCall& call) const {
  const CallTensors tensors(leaves);
  Explanation out;
  out.key = Key::of(leaves, tensors).str();
  SymbolValues symbols;
  const Entry* entry = state_->find(leaves, tensors, symbols);
  out.cached = entry != nullptr;
  const int n = state_->count.load(std::memory_order_acquire);
  for (int k = 0; k < n; ++k) {
    const std::string misfit = state_->entries[static_cast<size_t>(k)]->misfit(leaves, tensors);
    if (!misfit.empty()) out.misfits.push_back(fmt::format("artifact {}: {}", k, misfit));
  }
  std::optional<compiler::Stages> fresh;
  const compiler::Stages* stages = nullptr;
  if (entry && !entry->program) {
    out.fallback = entry->eager_reason;
    return out;
  }
  if (entry) {
    stages = &entry->program->stages();
  } else {
    TraceOutcome outcome = trace(leaves, call, state_->symbol_options(), true);
    fresh = compiler::run_stages(outcome.captured->graph, *outcome.captured->env, state_->pipeline_options());
    stages = &*fresh;
  }
  out.captured = stages->captured.str();
  out.graph = stages->graph.str();
  out.fallback = stages->fallback;
  for (const schedule::Decision& d : stages->schedule.decisions) {
    out.decisions.push_back(
        fmt::format("{} {} and {}: {}", d.fused ? "fused" : "kept apart", d.first, d.second, d.reason));
  }
  for (std::string& line : compiler::choices_in_words(*stages)) out.decisions.push_back(std::move(line));
  for (const codegen::KernelInfo& info : compiler::infos_of(*stages)) out.kernels.push_back(info.name);
  return out;
}

}  // namespace detail

std::string Explanation::str() const {
  std::string text =
      fmt::format("arguments: {}\n{}\n", key, cached ? "an artifact fits" : "no artifact fits");
  const auto list = [&](std::string_view title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text += fmt::format("{}:\n", title);
    for (const std::string& line : lines) text += "  " + line + "\n";
  };
  list("artifacts that do not fit", misfits);
  if (!captured.empty()) text += "recorded:\n" + captured;
  if (!graph.empty()) text += "after the passes:\n" + graph;
  list("decisions", decisions);
  list("kernels", kernels);
  if (!fallback.empty()) text += "no kernels: " + fallback + "\n";
  return text;
}

std::ostream& operator<<(std::ostream& out, const Explanation& explanation) {
  return out << explanation.str();
}

}  // namespace stax
