// Finds the artifact for a call, or makes one.
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>

#include "capture/functional_trace.h"
#include "compiler/core_state.h"
#include "compiler/decisions.h"
#include "compiler/lost_options.h"
#include "compiler/trace_call.h"
#include "support/call_stack.h"
#include "support/check.h"
#include "support/log.h"
#include "tuning/search.h"

namespace stax {
namespace detail {

using compiler::CallTensors;
using compiler::CompiledProgram;
using compiler::Key;
using compiler::NumberCell;
using log::Channel;

namespace {

constexpr int64_t kMaxArtifacts = 8;
constexpr int64_t kMostBuckets = 256;
constexpr int64_t kMaxCompilations = 256;

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

bool checks_decisions() {
  static const bool checks = compiler::checks("decisions");
  return checks;
}

capture::SymbolOptions CompiledCore::State::symbol_options() const {
  capture::SymbolOptions symbols{options.dynamic, options.dynamic_shapes};
  symbols.record_decisions = checks_decisions();
  return symbols;
}

compiler::PipelineOptions CompiledCore::State::pipeline_options() const {
  compiler::PipelineOptions out{compiler::Backend::native, options.strict_native};
  out.tuning = options.tuning;
  out.tf32 = options.matmul_precision != "highest";
  out.batch_invariant = options.batch_invariant;
  return out;
}

const Entry* CompiledCore::State::find(const Leaves& leaves, const CallTensors& call,
                                       SymbolValues& symbols) const {
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

void CompiledCore::State::keep(Entry& entry, const EntryPtr& pointer) {
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

std::shared_ptr<Entry> CompiledCore::State::compile(const Leaves& leaves, const CallTensors& tensors,
                                                    FunctionCall& call) const {
  auto entry = std::make_shared<Entry>();
  TraceOutcome outcome = trace(leaves, call, options, symbol_options(), strict());
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
  const TraceOutcome outcome = trace(leaves, call, options, symbol_options(), true);
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

bool CompiledCore::State::exhausted() {
  if (compilations < kMaxCompilations) return false;
  STAX_CHECK(!strict(),
             "a compiled function was compiled {} times, the limit; something in its arguments differs in "
             "every call: see STAX_LOG=recompiles",
             kMaxCompilations);
  if (!std::exchange(warned, true)) {
    log::warn(
        fmt::format("a compiled function was compiled {} times, the limit; other arguments than "
                    "those run eagerly from now on: see STAX_LOG=recompiles",
                    kMaxCompilations));
  }
  return true;
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
    if (exhausted()) {
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

void CompiledCore::note_inlined(const std::type_info& function) const {
  if (state_->warned_inlined.load(std::memory_order_relaxed)) return;
  const auto* trace = static_cast<const capture::FunctionalTrace*>(capture::current_trace());
  const std::vector<std::string> lost = compiler::lost_options(state_->options, trace->compile_options());
  if (lost.empty() || state_->warned_inlined.exchange(true)) return;
  const std::string place = CallStack::take().user_place();
  log::warn(
      fmt::format("the compiled function {}{} is called while another function is compiled or recorded, and "
                  "becomes a part of it; of its options, {} {} no effect there: what the outer function is "
                  "compiled with counts",
                  demangled(function.name()), place.empty() ? "" : ", at " + place + ",",
                  fmt::join(lost, ", "), lost.size() == 1 ? "has" : "have"));
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

}  // namespace detail
}  // namespace stax
