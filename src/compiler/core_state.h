// What a compiled function knows: its artifacts, and what is being compiled.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "compiler/guards.h"
#include "compiler/key.h"
#include "compiler/program.h"
#include "compiler/small_array.h"
#include "stax/compile.h"

namespace stax::detail {

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
  compiler::Key key;
  int32_t kind = 0;        // position of the first entry whose key is of the same kind
  bool only_kind = false;  // key.is_only_kind()
  compiler::Guards guards;
  std::shared_ptr<const compiler::CompiledProgram> program;  // null: runs eagerly
  std::shared_ptr<const void> prototype;
  std::vector<char> wanted;  // by leaf of the result, tensors first: comes from the program
  std::string eager_reason;

  /// Of a call of the key's kind.
  bool fits(const compiler::CallTensors& call, SymbolValues& symbols) const {
    if (guards.empty()) {
      symbols.resize(0);
      return true;
    }
    compiler::SmallArray<int64_t, 48> registers(guards.registers());
    return guards.hold(call, registers.data(), symbols.resize(guards.symbols()));
  }
  std::string misfit(const Leaves& leaves, const compiler::CallTensors& call) const {
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

/// Whether decisions are made again at the sizes of each call: STAX_CHECK=decisions.
bool checks_decisions();

struct CompiledCore::State {
  CompileOptions options;
  std::mutex mutex;
  std::condition_variable done;
  struct Pending {
    compiler::Key key;
    std::thread::id owner;
  };
  std::list<Pending> pending;
  int64_t compilations = 0;
  bool warned = false;
  std::atomic<bool> warned_inlined{false};
  // Written under the mutex, read without: entries only ever get more, and never move.
  std::vector<EntryPtr> entries;
  std::atomic<int> count{0};

  bool strict() const { return options.fullgraph || options.strict_native; }
  capture::SymbolOptions symbol_options() const;
  /// The entry that serves a call; `symbols` receives the values of its symbols.
  const Entry* find(const Leaves& leaves, const compiler::CallTensors& call, SymbolValues& symbols) const;
  /// Adds an entry, if there is room. Under the mutex.
  void keep(Entry& entry, const EntryPtr& pointer);

  std::shared_ptr<Entry> compile(const Leaves& leaves, const compiler::CallTensors& tensors,
                                 FunctionCall& call) const;
  void use(const Entry& entry, const Leaves& leaves, const SymbolValues& symbols, FunctionCall& call,
           CallResults& results) const;
  void miss(const Leaves& leaves, const compiler::CallTensors& tensors, FunctionCall& call,
            CallResults& results);
  /// Whether the function was compiled as often as it may be; UserError where calls may not run eagerly then.
  /// Under the mutex.
  bool exhausted();
  void log_miss(const Leaves& leaves, const compiler::CallTensors& tensors) const;
  void retrace(const Entry& entry, const Leaves& leaves, FunctionCall& call) const;
  compiler::PipelineOptions pipeline_options() const;
};

}  // namespace stax::detail
