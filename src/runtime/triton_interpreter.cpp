#include "runtime/triton_interpreter.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "runtime/worker_process.h"
#include "schedule/memory_plan.h"
#include "support/check.h"
#include "support/file.h"
#include "support/json.h"
#include "support/plural.h"
#include "support/python.h"

namespace stax::runtime {
namespace {

using codegen::KernelCall;
using codegen::PointerRole;
using codegen::TileKernel;

constexpr int64_t kAlignment = 64;
constexpr std::byte kGuard{0xa5};  // between buffers: what stands there afterwards was not written over
constexpr std::chrono::milliseconds kLaunchLimit{300'000};
constexpr std::chrono::milliseconds kStartLimit{120'000};
constexpr const char* kFolderPrefix = "stax-interpret-";

/// Memory of this process that the worker opens as a file.
class SharedMemory {
 public:
  SharedMemory() : file_(memfd_create("stax-interpreter", MFD_CLOEXEC)) {
    STAX_RUNTIME_CHECK(file_ >= 0, "cannot create shared memory: {}", strerror(errno));
  }
  ~SharedMemory() {
    if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
    close(file_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void reserve(int64_t bytes) {
    if (bytes <= size_) return;
    const int64_t grown = std::max<int64_t>(bytes * 2, 1 << 20);
    STAX_RUNTIME_CHECK(ftruncate(file_, grown) == 0, "cannot take {} of shared memory: {}",
                       counted(grown, "byte"), strerror(errno));
    void* moved =
        data_ == nullptr
            ? mmap(nullptr, static_cast<size_t>(grown), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0)
            : mremap(data_, static_cast<size_t>(size_), static_cast<size_t>(grown), MREMAP_MAYMOVE);
    STAX_RUNTIME_CHECK(moved != MAP_FAILED, "cannot map {} of shared memory: {}", counted(grown, "byte"),
                       strerror(errno));
    data_ = static_cast<std::byte*>(moved);
    size_ = grown;
  }
  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

 private:
  int file_ = -1;
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

class Runner : public codegen::KernelRunner {
 public:
  Runner(TritonInterpreter& interpreter, TileKernel kernel, codegen::LaunchConfig config,
         std::shared_ptr<const loops::Program> program, std::string source)
      : interpreter_(interpreter),
        kernel_(std::move(kernel)),
        config_(std::move(config)),
        program_(std::move(program)),
        source_(std::move(source)) {}

  void run(const KernelCall& call) const override {
    interpreter_.launch(kernel_, config_, *program_, source_, call);
  }

 private:
  TritonInterpreter& interpreter_;
  TileKernel kernel_;
  codegen::LaunchConfig config_;
  std::shared_ptr<const loops::Program> program_;
  std::string source_;
};

}  // namespace

struct TritonInterpreter::State {
  std::mutex mutex;
  std::unique_ptr<TemporaryFolder> folder;  // a worker that is killed leaves its files there
  std::unique_ptr<WorkerProcess> worker;
  SharedMemory memory;

  /// The worker's answer to a line. Where it ended over that, so does its folder: it may have had no time to.
  std::string ask(const std::string& line, std::chrono::milliseconds limit) {
    try {
      return worker->ask(line, limit);
    } catch (...) {
      if (!worker->alive()) folder.reset();
      throw;
    }
  }

  void start() {
    if (worker && !worker->is_own()) {  // the parent's, before fork()
      static_cast<void>(worker.release());
      static_cast<void>(folder.release());
    }
    if (worker && worker->alive()) return;
    worker.reset();
    const std::string python = find_python();
    std::vector<std::string> environment = python_environment(python_package_folder());
    remove_abandoned_folders(temporary_root(), kFolderPrefix);
    folder = std::make_unique<TemporaryFolder>(temporary_root(), kFolderPrefix);
    environment.insert(environment.end(), {"TRITON_INTERPRET=1", "STAX_WORKER_FOLDER=" + folder->path()});
    worker = std::make_unique<WorkerProcess>(
        std::vector<std::string>{python, "-m", "stax_triton.interpret_worker"}, environment);
    const Json hello = Json::parse(ask(R"({"hello": true})", kStartLimit), {.what = "the worker's answer"});
    if (const Json* missing = hello.find("missing")) {
      worker.reset();
      folder.reset();
      throw_runtime_error(
          fmt::format("Triton's interpreter: {} lacks what it needs ({}); install it ({} -m pip install "
                      "triton==3.6.0 numpy), or set STAX_PYTHON to the path of a Python that has both",
                      python, missing->as_string(), python));
    }
  }
};

TritonInterpreter::TritonInterpreter() : state_(std::make_unique<State>()) {}
TritonInterpreter::~TritonInterpreter() = default;

void TritonInterpreter::check() {
  const std::lock_guard lock(state_->mutex);
  state_->start();
}

void TritonInterpreter::launch(const TileKernel& kernel, const codegen::LaunchConfig& config,
                               const loops::Program& program, const std::string& source,
                               const KernelCall& call) {
  const std::lock_guard lock(state_->mutex);
  struct Part {
    std::byte* from;
    int64_t at, bytes;
    bool written;
  };
  std::vector<Part> parts;
  int64_t total = kAlignment;  // the status lies in front
  Json arguments = Json::array();
  for (size_t k = 0; k < kernel.pointers.size(); ++k) {
    const codegen::TilePointer& p = kernel.pointers[k];
    const int64_t bytes = call.evaluate(schedule::storage_bytes(program.buffers[p.buffer]));
    parts.push_back({static_cast<std::byte*>(call.buffers[k]), total, bytes, p.role != PointerRole::in});
    Json argument;
    argument.set("offset", total);
    argument.set("bytes", bytes);
    argument.set("dtype", std::string(name(p.dtype)));
    arguments.push_back(std::move(argument));
    total += (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;  // a guard zone behind each
  }
  if (kernel.checks) {
    Json status;
    status.set("offset", 0);
    status.set("bytes", static_cast<int64_t>(sizeof(codegen::KernelStatus)));
    status.set("dtype", "int64");
    arguments.push_back(std::move(status));
  }
  for (size_t k = 0; k < kernel.scalars.size(); ++k) {
    // As bits: JSON has no infinities, and no integers beyond 64 bits either.
    Json scalar;
    scalar.set("bits", static_cast<int64_t>(call.scalars[k].bits));
    scalar.set("floating", is_floating_point(kernel.scalars[k]));
    arguments.push_back(std::move(scalar));
  }
  for (Symbol s : kernel.symbols) arguments.push_back(call.evaluate(Expr(s)));
  Json blocks, grid = Json::array();
  std::vector<long> extents;
  for (const codegen::TileAxis& axis : kernel.axes) extents.push_back(call.evaluate(axis.numel));
  for (const long extent : extents) arguments.push_back(int64_t{extent});
  for (const int64_t along : codegen::TileGrid(kernel, config).blocks(extents)) grid.push_back(along);
  for (const auto& [name, value] : config.constants()) blocks.set(name, value);
  if (blocks.is_null()) blocks = Json::object();

  state_->memory.reserve(total);
  std::byte* memory = state_->memory.data();
  std::memcpy(memory, call.status, sizeof(codegen::KernelStatus));
  std::fill(memory + sizeof(codegen::KernelStatus), memory + total, kGuard);
  for (const Part& part : parts)
    if (part.bytes > 0) std::memcpy(memory + part.at, part.from, static_cast<size_t>(part.bytes));

  Json request;
  request.set("source", source);
  request.set("memory", state_->memory.path());
  request.set("size", state_->memory.size());
  request.set("arguments", std::move(arguments));
  request.set("grid", std::move(grid));
  request.set("blocks", std::move(blocks));
  state_->start();
  const Json answer = Json::parse(state_->ask(request.dump(), kLaunchLimit), {.what = "the worker's answer"});
  if (const Json* error = answer.find("error"))
    throw_runtime_error(fmt::format("[{}] the interpreter: {}", kernel.name, error->as_string()));
  std::memcpy(call.status, memory, sizeof(codegen::KernelStatus));
  int64_t clean = static_cast<int64_t>(sizeof(codegen::KernelStatus));
  for (const Part& part : parts) {
    STAX_ASSERT(std::all_of(memory + clean, memory + part.at, [](std::byte b) { return b == kGuard; }),
                "{} writes outside its buffers", kernel.name);
    clean = part.at + part.bytes;
  }
  STAX_ASSERT(std::all_of(memory + clean, memory + total, [](std::byte b) { return b == kGuard; }),
              "{} writes outside its buffers", kernel.name);
  for (const Part& part : parts)
    if (part.written && part.bytes > 0)
      std::memcpy(part.from, memory + part.at, static_cast<size_t>(part.bytes));
}

std::shared_ptr<const codegen::KernelRunner> interpreted(TritonInterpreter& interpreter, TileKernel kernel,
                                                         codegen::LaunchConfig config,
                                                         std::shared_ptr<const loops::Program> program,
                                                         std::string source) {
  return std::make_shared<Runner>(interpreter, std::move(kernel), std::move(config), std::move(program),
                                  std::move(source));
}

}  // namespace stax::runtime
