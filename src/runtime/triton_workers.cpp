#include "runtime/triton_workers.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "runtime/triton_identity.h"
#include "runtime/worker_process.h"
#include "support/check.h"
#include "support/file.h"
#include "support/hash.h"

namespace stax::runtime {
namespace {

std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Json parse_answer(const std::string& line, const std::string& answer) {
  const Json parsed = Json::parse(answer, {.what = "the worker's answer"});
  STAX_RUNTIME_CHECK(parsed.at("request").as_string() == sha256_hex(line),
                     "the worker answered another request than it was sent");
  return parsed;
}

constexpr const char* kFolderPrefix = "stax-worker-";

/// Raised to the caller at once: another worker would say the same.
struct NoTriton {
  std::string why;
};

}  // namespace

/// A process, and the folder that it works in.
struct TritonWorkers::Worker {
  explicit Worker(const Options& options)
      : folder(temporary_root(), kFolderPrefix), process(options.command, environment(options)) {}

  std::vector<std::string> environment(const Options& options) const {
    std::vector<std::string> all = options.environment;
    all.insert(all.end(),
               {"TMPDIR=" + folder.path(), "STAX_WORKER_FOLDER=" + folder.path(), "TRITON_INTERPRET=0"});
    return all;
  }

  /// Waits until it has imported Triton.
  void greet(std::chrono::milliseconds limit) {
    if (!hello.is_null()) return;
    Json question;
    question.set("hello", true);
    const std::string line = question.dump();
    Json answer = parse_answer(line, process.ask(line, limit));
    if (const Json* missing = answer.find("missing")) throw NoTriton{missing->as_string()};
    answer.at("triton").as_string();
    hello = std::move(answer);
  }

  TemporaryFolder folder;
  WorkerProcess process;
  Json hello;
};

struct TritonWorkers::State {
  std::mutex mutex;
  std::condition_variable freed;
  std::vector<std::unique_ptr<Worker>> idle;  // asked last: last
  int32_t up = 0;                             // idle, or leased
  pid_t owner = getpid();
  std::atomic<int64_t> started{0};
  std::once_flag cleared;  // of folders that killed processes left

  /// A child of fork() leaves its parent's workers alone.
  void abandon_inherited() {
    if (owner == getpid()) return;
    for (auto& worker : idle) static_cast<void>(worker.release());
    idle.clear();
    up = 0;
    owner = getpid();
  }
};

/// A worker for one question. It goes back to the idle ones where keep() was called.
class TritonWorkers::Lease {
 public:
  /// Waits for an idle one or room to start one; `fresh`: a process that has not been asked anything yet.
  Lease(TritonWorkers& pool, bool fresh) : pool_(pool), state_(*pool.state_) {
    std::unique_ptr<Worker> stale;
    {
      std::unique_lock lock(state_.mutex);
      state_.abandon_inherited();
      state_.freed.wait(lock, [&] { return !state_.idle.empty() || state_.up < pool.options_.most; });
      if (!state_.idle.empty() && (!fresh || state_.up == pool.options_.most)) {
        worker_ = std::move(state_.idle.back());
        state_.idle.pop_back();
      } else {
        ++state_.up;
      }
      if (fresh) stale = std::move(worker_);
    }
    stale.reset();
    if (worker_) return;
    try {
      worker_ = pool.started_worker();
    } catch (...) {
      give_back();
      throw;
    }
  }
  ~Lease() { give_back(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Worker& operator*() const { return *worker_; }
  Worker* operator->() const { return worker_.get(); }
  void keep() { keep_ = true; }

 private:
  void give_back() {
    if (!keep_) worker_.reset();
    {
      const std::lock_guard lock(state_.mutex);
      if (worker_)
        state_.idle.push_back(std::move(worker_));
      else
        --state_.up;
    }
    state_.freed.notify_one();
  }

  TritonWorkers& pool_;
  State& state_;
  std::unique_ptr<Worker> worker_;
  bool keep_ = false;
};

TritonWorkers::TritonWorkers(Options options)
    : options_(std::move(options)), state_(std::make_unique<State>()) {}

std::unique_ptr<TritonWorkers::Worker> TritonWorkers::started_worker() const {
  std::call_once(state_->cleared, [] { remove_abandoned_folders(temporary_root(), kFolderPrefix); });
  auto worker = std::make_unique<Worker>(options_);
  ++state_->started;
  return worker;
}

TritonWorkers::~TritonWorkers() {
  state_->abandon_inherited();
}

int64_t TritonWorkers::started() const {
  return state_->started;
}

void TritonWorkers::start(int32_t count) {
  for (;;) {
    {
      const std::lock_guard lock(state_->mutex);
      state_->abandon_inherited();
      if (state_->up >= std::min(count, options_.most)) return;
      ++state_->up;
    }
    std::unique_ptr<Worker> worker;
    try {
      worker = started_worker();
    } catch (const RuntimeError&) {  // whoever asks meets it, too
    }
    const bool failed = worker == nullptr;
    {
      const std::lock_guard lock(state_->mutex);
      if (failed)
        --state_->up;
      else
        state_->idle.insert(state_->idle.begin(), std::move(worker));
    }
    state_->freed.notify_one();
    if (failed) return;
  }
}

void TritonWorkers::ask_one(const std::string& line, const Reader& read, bool fresh) {
  Lease worker(*this, fresh);
  worker->greet(options_.limit);
  if (line.empty()) {
    read({}, worker->hello);
  } else {
    read(parse_answer(line, worker->process.ask(line, options_.limit)), worker->hello);
  }
  worker.keep();
}

void TritonWorkers::ask(const std::string& what, const Json& request, const Reader& read) {
  const std::string line = request.is_null() ? "" : request.dump();
  std::string first;
  for (const bool fresh : {false, true}) {
    std::string failure;
    try {
      ask_one(line, read, fresh);
      return;
    } catch (const NoTriton& no) {
      throw_runtime_error(
          fmt::format("{0}: {1} has no Triton that can be imported ({2}); install it ({1} -m pip install "
                      "triton=={3}), or "
                      "set STAX_PYTHON to the path of a Python that has it",
                      what, options_.command.at(0), no.why, kPinnedTriton));
    } catch (const Error& error) {
      failure = error.what();
    }
    if (fresh)
      throw_runtime_error(fmt::format(
          "{}: a compile worker failed, and so did the one started instead: {}{}. "
          "The command: {}",
          what, first == failure ? "" : first + "; then ", failure, command_text(options_.command)));
    first = std::move(failure);
  }
}

Json TritonWorkers::hello() {
  Json found;
  ask("Triton", {}, [&](const Json&, const Json& hello) { found = hello; });
  return found;
}

}  // namespace stax::runtime
