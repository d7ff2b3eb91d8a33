// Finds the artifact for a call, or makes one.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <list>
#include <mutex>
#include <ostream>
#include <thread>

#include "capture/functional_trace.h"
#include "compiler/key.h"
#include "compiler/program.h"
#include "compiler/small_array.h"
#include "support/check.h"
#include "support/log.h"

namespace stax {
namespace detail {
namespace {

using compiler::CallTensors;
using compiler::CompiledProgram;
using compiler::Key;
using compiler::NumberCell;
using log::Channel;

constexpr int kMaxArtifacts = 8;
constexpr int64_t kMaxCompilations = 256;

/// What one kind of arguments led to.
struct Entry {
  Key key;
  std::shared_ptr<const CompiledProgram> program;  // null: runs eagerly
  std::shared_ptr<const void> prototype;
  std::vector<char> wanted;  // by leaf of the result, tensors first: comes from the program
  std::string eager_reason;
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

void run_entry(const Entry& entry, const Leaves& leaves, CallResults& results) {
  compiler::SmallArray<NumberCell, 4> numbers(leaves.numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = cell_of(*leaves.numbers[k]);
  results.tensors.resize(entry.program->result_count());
  entry.program->run({leaves.tensors.data(), leaves.tensors.size()}, numbers, results.tensors.data());
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

TraceOutcome trace(const Leaves& leaves, FunctionCall& call, bool refuse_reads) {
  capture::TraceOptions options;
  options.refuse_reads = refuse_reads;
  options.evaluate = [&](capture::Captured captured) {
    const auto program = CompiledProgram::make(
        std::move(captured), compiler::PipelineOptions{compiler::Backend::reference, false});
    std::vector<Tensor> results(program->result_count());
    const std::vector<NumberCell> cells = cells_of(leaves);
    program->run({leaves.tensors.data(), leaves.tensors.size()}, cells, results.data());
    return results;
  };
  const auto trace = capture::FunctionalTrace::start(std::move(options));
  const capture::TraceScope scope(trace.get());
  std::vector<Tensor> tensors;
  std::vector<Scalar> numbers;
  for (const Tensor* tensor : leaves.tensors) {
    tensors.push_back(trace->argument(*tensor, static_cast<int32_t>(tensors.size())));
  }
  for (const Scalar* number : leaves.numbers) {
    numbers.push_back(trace->number(*number, static_cast<int32_t>(numbers.size())));
  }
  call.run(tensors, numbers);
  std::vector<Tensor*> result_tensors;
  std::vector<Scalar*> result_numbers;
  call.leaves(result_tensors, result_numbers);
  TraceOutcome outcome;
  if (trace->was_read()) {
    outcome.read_where = trace->read_where();
    for (Tensor* t : result_tensors) {
      if (t->defined()) *t = capture::unwrapped(*t);
    }
    for (Scalar* s : result_numbers) {
      if (s->traced()) *s = Tensor(s->traced()).item();
    }
    return outcome;
  }
  std::vector<Tensor> results;
  for (const Tensor* t : result_tensors) {
    outcome.wanted.push_back(t->defined() ? 1 : 0);
    if (t->defined()) results.push_back(*t);
  }
  for (const Scalar* s : result_numbers) {
    outcome.wanted.push_back(s->traced() ? 1 : 0);
    if (s->traced()) results.emplace_back(s->traced());
  }
  outcome.captured = trace->finish(results);
  return outcome;
}

/// The call's key, without what the captured graph does not depend on.
Key relaxed_key(const Leaves& leaves, const CallTensors& call, const capture::Captured* captured) {
  Key key = Key::of(leaves, call);
  const std::vector<compiler::TensorKey> exact = key.tensors;
  for (size_t k = 0; k < key.tensors.size(); ++k) {
    const bool shares = key.tensors[k].alias >= 0 ||
                        std::any_of(exact.begin(), exact.end(), [&](const compiler::TensorKey& t) {
                          return t.alias == static_cast<int32_t>(k);
                        });
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
  // Written under the mutex, read without: entries only ever get more.
  std::array<EntryPtr, kMaxArtifacts> entries;
  std::atomic<int> count{0};

  bool strict() const { return options.fullgraph || options.strict_native; }
  const Entry* find(const Leaves& leaves, const CallTensors& call) const {
    const int n = count.load(std::memory_order_acquire);
    for (int k = 0; k < n; ++k) {
      if (entries[static_cast<size_t>(k)]->key.matches(leaves, call)) {
        return entries[static_cast<size_t>(k)].get();
      }
    }
    return nullptr;
  }

  EntryPtr compile(const Leaves& leaves, const CallTensors& tensors, FunctionCall& call) const;
  void use(const Entry& entry, const Leaves& leaves, FunctionCall& call, CallResults& results) const;
  void miss(const Leaves& leaves, const CallTensors& tensors, FunctionCall& call, CallResults& results);
  void log_miss(const Leaves& leaves, const CallTensors& tensors) const;
  void retrace(const Entry& entry, const Leaves& leaves, FunctionCall& call) const;
  compiler::PipelineOptions pipeline_options() const {
    return {compiler::Backend::native, options.strict_native};
  }
};

EntryPtr CompiledCore::State::compile(const Leaves& leaves, const CallTensors& tensors,
                                      FunctionCall& call) const {
  auto entry = std::make_shared<Entry>();
  TraceOutcome outcome = trace(leaves, call, strict());
  entry->key = relaxed_key(leaves, tensors, outcome.captured ? &*outcome.captured : nullptr);
  if (!outcome.captured) {
    entry->eager_reason = "it reads a value: " + outcome.read_where;
    return entry;
  }
  entry->wanted = std::move(outcome.wanted);
  entry->prototype = call.take_prototype();
  if (log::enabled(Channel::guards)) {
    for (const std::string& guard : entry->key.conditions()) log::write(Channel::guards, guard);
  }
  entry->program =
      CompiledProgram::make(std::move(*outcome.captured), pipeline_options(), options.backend == "debug");
  return entry;
}

void CompiledCore::State::use(const Entry& entry, const Leaves& leaves, FunctionCall& call,
                              CallResults& results) const {
  static const bool retraces = [] {
    const char* checks = std::getenv("STAX_CHECK");
    return checks != nullptr && std::string_view(checks).find("retrace") != std::string_view::npos;
  }();
  if (!entry.program) return call.run_plain();
  if (retraces) retrace(entry, leaves, call);
  run_entry(entry, leaves, results);
}

/// STAX_CHECK=retrace: what the function does now, against what the artifact does.
void CompiledCore::State::retrace(const Entry& entry, const Leaves& leaves, FunctionCall& call) const {
  const TraceOutcome outcome = trace(leaves, call, true);
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
    text +=
        fmt::format("\n  artifact {}: {}", k, entries[static_cast<size_t>(k)]->key.misfit(leaves, tensors));
  }
  log::write(Channel::recompiles, text);
}

void CompiledCore::State::miss(const Leaves& leaves, const CallTensors& tensors, FunctionCall& call,
                               CallResults& results) {
  const Key key = Key::of(leaves, tensors);
  std::list<Pending>::iterator mine;
  {
    std::unique_lock lock(mutex);
    while (true) {
      if (const Entry* entry = find(leaves, tensors)) {
        lock.unlock();
        return use(*entry, leaves, call, results);
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
  EntryPtr entry;
  std::exception_ptr error;
  try {
    entry = compile(leaves, tensors, call);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex);
    pending.erase(mine);
    const int n = count.load(std::memory_order_relaxed);
    if (entry && n < kMaxArtifacts) {
      entries[static_cast<size_t>(n)] = entry;
      count.store(n + 1, std::memory_order_release);
    }
  }
  done.notify_all();
  if (error) std::rethrow_exception(error);
  if (!entry->program) return;  // the call ran while it was traced, and keeps its result
  results.owner = entry;
  run_entry(*entry, leaves, results);
}

bool is_tracing() {
  return capture::current_trace() != nullptr;
}

CompiledCore::CompiledCore(CompileOptions options) : state_(std::make_shared<State>()) {
  STAX_CHECK(options.backend == "stax" || options.backend == "debug",
             "compile: there is no backend '{}'; expected stax or debug", options.backend);
  STAX_CHECK(!options.strict_native || options.backend == "stax",
             "compile: strict_native asks for kernels, which backend '{}' does not make", options.backend);
  state_->options = std::move(options);
}

void CompiledCore::call(const Leaves& leaves, FunctionCall& call, CallResults& results) const {
  const CallTensors tensors(leaves);
  if (const Entry* entry = state_->find(leaves, tensors)) [[likely]] {
    return state_->use(*entry, leaves, call, results);
  }
  state_->miss(leaves, tensors, call, results);
}

std::vector<Artifact> CompiledCore::artifacts() const {
  std::vector<Artifact> out;
  const int n = state_->count.load(std::memory_order_acquire);
  for (int k = 0; k < n; ++k) {
    const Entry& entry = *state_->entries[static_cast<size_t>(k)];
    Artifact artifact{entry.key.str(), entry.key.conditions(), {}, "eager", {}, {}};
    if (entry.program) {
      const compiler::Stages& stages = entry.program->stages();
      artifact.target = stages.target;
      artifact.graph = stages.graph.str();
      if (stages.fallback.empty() && !stages.infos.empty()) artifact.plan = compiler::plan_of(stages).str();
      for (const codegen::Kernel& kernel : stages.kernels) {
        artifact.kernels.push_back({kernel.info.name, codegen::print_module(std::span(&kernel, 1)).source});
      }
    }
    out.push_back(std::move(artifact));
  }
  return out;
}

Explanation CompiledCore::explain(const Leaves& leaves, FunctionCall& call) const {
  const CallTensors tensors(leaves);
  Explanation out;
  out.key = Key::of(leaves, tensors).str();
  const Entry* entry = state_->find(leaves, tensors);
  out.cached = entry != nullptr;
  const int n = state_->count.load(std::memory_order_acquire);
  for (int k = 0; k < n; ++k) {
    const std::string misfit = state_->entries[static_cast<size_t>(k)]->key.misfit(leaves, tensors);
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
    TraceOutcome outcome = trace(leaves, call, true);
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
  for (const codegen::KernelInfo& info : stages->infos) out.kernels.push_back(info.name);
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
