#include "runtime/triton_compiler.h"

#include <elf.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "device/cpu_info.h"
#include "runtime/triton_identity.h"
#include "runtime/triton_workers.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/log.h"
#include "support/plural.h"
#include "support/python.h"

namespace stax::runtime {
namespace {

constexpr std::string_view kEntryFormat = "stax triton kernel format 2";
constexpr int32_t kMostWorkers = 16;
constexpr uint16_t kMachineCuda = 190;

Json to_json(const TritonRequest& r) {
  Json blocks = Json::object(), divisible = Json::array(), request;
  for (const auto& [name, value] : r.config.constants()) blocks.set(name, value);
  for (const std::string& argument : r.divisible) divisible.push_back(argument);
  request.set("source", r.source);
  request.set("kernel", r.kernel);
  request.set("capability", static_cast<int64_t>(r.capability));
  request.set("blocks", std::move(blocks));
  request.set("warps", static_cast<int64_t>(r.config.warps));
  request.set("stages", static_cast<int64_t>(r.config.stages));
  request.set("registers", static_cast<int64_t>(r.config.registers));
  request.set("wide", r.wide_index);
  request.set("divisible", std::move(divisible));
  return request;
}

std::string key_of(const TritonIdentity& identity, const std::string& request) {
  return sha256_hex(fmt::format("{}\n{}\n{}", kEntryFormat, identity.text, request));
}

int digit_of(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string from_hex(const std::string& digits) {
  STAX_RUNTIME_CHECK(digits.size() % 2 == 0, "machine code of {} hexadecimal digits", digits.size());
  std::string bytes(digits.size() / 2, '\0');
  for (size_t k = 0; k < bytes.size(); ++k) {
    const int high = digit_of(digits[2 * k]), low = digit_of(digits[2 * k + 1]);
    STAX_RUNTIME_CHECK(high >= 0 && low >= 0, "machine code is not written in hexadecimal digits");
    bytes[k] = static_cast<char>(high * 16 + low);
  }
  return bytes;
}

/// The driver reads machine code without being told where it ends.
void check_cubin(const std::string& cubin) {
  Elf64_Ehdr header;
  STAX_RUNTIME_CHECK(cubin.size() >= sizeof header && std::memcmp(cubin.data(), ELFMAG, SELFMAG) == 0 &&
                         cubin[EI_CLASS] == ELFCLASS64,
                     "{} that are no machine code", counted(cubin.size(), "byte"));
  std::memcpy(&header, cubin.data(), sizeof header);
  STAX_RUNTIME_CHECK(header.e_machine == kMachineCuda, "machine code for processor {}, not for a GPU",
                     header.e_machine);
  const auto holds = [&](uint64_t at, uint64_t bytes) {
    return at <= cubin.size() && bytes <= cubin.size() - at;
  };
  bool whole = header.e_shentsize == sizeof(Elf64_Shdr) &&
               holds(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  for (unsigned k = 0; whole && k < header.e_shnum; ++k) {
    Elf64_Shdr section;
    std::memcpy(&section, cubin.data() + header.e_shoff + k * sizeof section, sizeof section);
    whole = section.sh_type == SHT_NOBITS || holds(section.sh_offset, section.sh_size);
  }
  STAX_RUNTIME_CHECK(whole, "machine code that is cut off after {}", counted(cubin.size(), "byte"));
}

template <class Number>
Number number(const Json& from, std::string_view name, int64_t least, int64_t most) {
  const int64_t value = from.at(name).as_int();
  STAX_RUNTIME_CHECK(least <= value && value <= most, "{} of {} for a kernel", name, value);
  return static_cast<Number>(value);
}

/// Of what describes a kernel: the worker's answer, or the head of a cache entry.
CompiledTriton described(const Json& from, std::string cubin) {
  constexpr int64_t kMost = int64_t{1} << 40;
  check_cubin(cubin);
  CompiledTriton kernel;
  kernel.entry = from.at("entry").as_string();
  STAX_RUNTIME_CHECK(!kernel.entry.empty() && cubin.find(kernel.entry) != std::string::npos,
                     "machine code without a function '{}'", kernel.entry);
  kernel.cubin = std::move(cubin);
  for (const Json& type : from.at("arguments").as_array()) kernel.arguments.push_back(type.as_string());
  kernel.scratch_pointers = number<int32_t>(from, "scratch_pointers", 1, 2);
  kernel.warps = number<int32_t>(from, "warps", 1, 64);
  kernel.shared_bytes = number<int32_t>(from, "shared_bytes", 0, 1 << 24);
  kernel.registers = number<int32_t>(from, "registers", 0, 1024);
  kernel.spill_bytes = number<int32_t>(from, "spill_bytes", 0, 1 << 30);
  kernel.global_scratch_bytes = number<int64_t>(from, "global_scratch_bytes", 0, kMost);
  kernel.global_scratch_alignment = number<int64_t>(from, "global_scratch_alignment", 1, 1 << 20);
  kernel.profile_scratch_bytes = number<int64_t>(from, "profile_scratch_bytes", 0, kMost);
  kernel.profile_scratch_alignment = number<int64_t>(from, "profile_scratch_alignment", 1, 1 << 20);
  kernel.seconds = from.at("seconds").as_double();
  return kernel;
}

CompiledTriton read_answer(const Json& answer) {
  std::string cubin = from_hex(answer.at("cubin").as_string());
  STAX_RUNTIME_CHECK(sha256_hex(cubin) == answer.at("cubin_hash").as_string(),
                     "machine code that does not match its hash");
  return described(answer, std::move(cubin));
}

/// A line that describes the kernel, then its machine code.
std::string to_entry(const CompiledTriton& kernel) {
  Json head, arguments = Json::array();
  for (const std::string& type : kernel.arguments) arguments.push_back(type);
  head.set("entry", kernel.entry);
  head.set("arguments", std::move(arguments));
  head.set("scratch_pointers", int64_t{kernel.scratch_pointers});
  head.set("warps", int64_t{kernel.warps});
  head.set("shared_bytes", int64_t{kernel.shared_bytes});
  head.set("registers", int64_t{kernel.registers});
  head.set("spill_bytes", int64_t{kernel.spill_bytes});
  head.set("global_scratch_bytes", kernel.global_scratch_bytes);
  head.set("global_scratch_alignment", kernel.global_scratch_alignment);
  head.set("profile_scratch_bytes", kernel.profile_scratch_bytes);
  head.set("profile_scratch_alignment", kernel.profile_scratch_alignment);
  head.set("seconds", kernel.seconds);
  return head.dump() + "\n" + kernel.cubin;
}

std::shared_ptr<const CompiledTriton> from_entry(const std::string& entry) {
  try {
    const size_t end = entry.find('\n');
    if (end == std::string::npos) return nullptr;
    const Json head = Json::parse(std::string_view(entry).substr(0, end), {.what = "a cache entry"});
    return std::make_shared<CompiledTriton>(described(head, entry.substr(end + 1)));
  } catch (const Error&) {  // of another format, or another kind of kernel
    return nullptr;
  }
}

int32_t worker_limit(const TritonCompilerOptions& options) {
  return options.workers > 0 ? options.workers : std::clamp(device::available_processors(), 1, kMostWorkers);
}

}  // namespace

struct TritonCompiler::State {
  explicit State(TritonCompilerOptions given)
      : options(std::move(given)),
        cache(options.cache_folder.empty() ? CodeCache::default_folder() : options.cache_folder,
              options.cache_bytes) {}

  /// The pool, made at the first need: finding Python may fail.
  TritonWorkers& workers() {
    const std::lock_guard lock(mutex);
    if (pool) return *pool;
    TritonWorkers::Options how{
        .command = options.command, .most = worker_limit(options), .limit = options.time_limit};
    if (how.command.empty()) {
      how.command = {python(), "-m", "stax_triton.compile_worker"};
      how.environment = python_environment(package());
      // Lines would be those of the worker's own files.
      if (std::getenv("TRITON_DISABLE_LINE_INFO") == nullptr)
        how.environment.push_back("TRITON_DISABLE_LINE_INFO=1");
    }
    pool = std::make_unique<TritonWorkers>(std::move(how));
    return *pool;
  }

  std::string python() {
    return options.command.empty() ? find_python(options.python) : options.command.front();
  }
  std::string package() { return options.command.empty() ? python_package_folder() : ""; }

  TritonIdentity identify();
  std::optional<TritonIdentity> known_identity();
  void prepare(int32_t count);
  void learn(const Json& hello);
  std::shared_ptr<const CompiledTriton> known(const std::string& key);
  std::shared_ptr<const CompiledTriton> build(const TritonRequest& request, const Json& question);
  std::shared_ptr<const CompiledTriton> compile(const TritonRequest& request, bool* from_cache);
  void store(const std::string& key, const std::string& entry);

  TritonCompilerOptions options;
  CodeCache cache;
  std::mutex mutex, identifying;
  std::condition_variable done;
  std::unique_ptr<TritonWorkers> pool;
  std::optional<TritonIdentity> identity;
  std::set<std::string> building;
  std::map<std::string, std::weak_ptr<const CompiledTriton>> loaded;
  std::atomic<int64_t> compiled{0};
  std::atomic<double> seconds{0};
  std::atomic<bool> warned{false};
};

/// What the workers compile with: as the cache's record says, or as one of them does.
TritonIdentity TritonCompiler::State::identify() {
  const std::lock_guard one(identifying);
  if (const auto found = known_identity()) return *found;
  learn(workers().hello());
  return *known_identity();
}

std::optional<TritonIdentity> TritonCompiler::State::known_identity() {
  const std::lock_guard lock(mutex);
  if (identity) return identity;
  auto recorded = recorded_triton(cache, python(), package());
  if (!recorded) return std::nullopt;
  const std::string problem = triton_version_problem(recorded->version);
  STAX_RUNTIME_CHECK(problem.empty(), "{}: {}", python(), problem);
  return identity = std::move(recorded);
}

/// Where a worker has to start in any case, the others may do so at the same time.
void TritonCompiler::State::prepare(int32_t count) {
  try {
    if (count > 1 && !known_identity()) workers().start(count);
  } catch (const RuntimeError&) {  // each kernel meets it
  }
}

/// A worker says what it is. Where that is no longer what the record said, it counts from now on.
void TritonCompiler::State::learn(const Json& hello) {
  TritonIdentity told = triton_identity(hello);
  const std::string problem = triton_version_problem(told.version);
  STAX_RUNTIME_CHECK(problem.empty(), "{}: {}", python(), problem);
  {
    const std::lock_guard lock(mutex);
    if (identity && identity->text == told.text) return;
    identity = std::move(told);
  }
  try {
    record_triton(cache, python(), hello);
  } catch (const RuntimeError&) {  // the next process asks a worker again
  }
}

std::shared_ptr<const CompiledTriton> TritonCompiler::State::known(const std::string& key) {
  const auto entry = cache.read(key);
  return entry ? from_entry(*entry) : nullptr;
}

void TritonCompiler::State::store(const std::string& key, const std::string& entry) {
  const bool stored = cache.write(key, entry);
  if (!stored && !warned.exchange(true))
    log::warn(fmt::format("compiled kernels are not kept on disk: {}",
                          cache.problem().empty() ? "cannot write to " + cache.folder() : cache.problem()));
  if (compiled++ % 64 == 0) cache.trim();
}

std::shared_ptr<const CompiledTriton> TritonCompiler::State::build(const TritonRequest& request,
                                                                   const Json& question) {
  CompiledTriton kernel;
  std::string refusal;
  Json worker;
  workers().ask(request.kernel, question, [&](const Json& answer, const Json& hello) {
    worker = hello;
    const Json* error = answer.find("error");
    refusal = error != nullptr ? error->as_string() : "";
    if (error == nullptr) kernel = read_answer(answer);
  });
  learn(worker);
  const TritonIdentity compiler = triton_identity(worker);
  STAX_RUNTIME_CHECK(refusal.empty(), "{}: Triton {} does not compile it for sm_{}: {}", request.kernel,
                     compiler.version, request.capability, refusal);
  store(key_of(compiler, question.dump()), to_entry(kernel));
  seconds.fetch_add(kernel.seconds);
  return std::make_shared<CompiledTriton>(std::move(kernel));
}

std::shared_ptr<const CompiledTriton> TritonCompiler::State::compile(const TritonRequest& request,
                                                                     bool* from_cache) {
  const Json question = to_json(request);
  const std::string key = key_of(identify(), question.dump());
  {
    std::unique_lock lock(mutex);
    for (;;) {
      if (auto kernel = loaded[key].lock()) {
        if (from_cache != nullptr) *from_cache = true;
        return kernel;
      }
      if (building.insert(key).second) break;
      done.wait(lock);
    }
  }
  std::shared_ptr<const CompiledTriton> kernel;
  std::exception_ptr error;
  try {
    kernel = known(key);
    if (from_cache != nullptr) *from_cache = kernel != nullptr;
    if (!kernel) kernel = build(request, question);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex);
    building.erase(key);
    if (kernel)
      loaded[key] = kernel;
    else
      loaded.erase(key);
  }
  done.notify_all();
  if (error) std::rethrow_exception(error);
  return kernel;
}

TritonCompiler::TritonCompiler(TritonCompilerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
TritonCompiler::~TritonCompiler() = default;

std::shared_ptr<const CompiledTriton> TritonCompiler::compile(const TritonRequest& request) {
  return state_->compile(request, nullptr);
}

std::vector<TritonOutcome> TritonCompiler::compile(std::span<const TritonRequest> requests,
                                                   const std::function<void(size_t)>& progress) {
  std::vector<TritonOutcome> outcomes(requests.size());
  std::atomic<size_t> next{0};
  std::mutex reporting;
  size_t ready = 0;
  const auto work = [&] {
    for (size_t k = next++; k < requests.size(); k = next++) {
      try {
        outcomes[k].kernel = state_->compile(requests[k], &outcomes[k].from_cache);
      } catch (const std::exception& error) {
        outcomes[k].error = error.what();
      }
      const std::lock_guard lock(reporting);
      ++ready;
      if (progress) progress(ready);
    }
  };
  const auto threads = std::min(requests.size(), static_cast<size_t>(worker_limit(state_->options)));
  state_->prepare(static_cast<int32_t>(threads));
  {
    std::vector<std::jthread> others;
    for (size_t k = 1; k < threads; ++k) others.emplace_back(work);
    work();
  }
  return outcomes;
}

void TritonCompiler::start() {
  try {
    state_->workers().start(1);
  } catch (const RuntimeError&) {  // compile() meets it, too
  }
}

void TritonCompiler::start_where_unknown() {
  try {
    if (!state_->known_identity()) state_->workers().start(1);
  } catch (const RuntimeError&) {  // compile() meets it, too
  }
}

std::string TritonCompiler::triton_version() {
  return state_->identify().version;
}

Json TritonCompiler::describe() {
  Json hello = state_->workers().hello();
  state_->learn(hello);
  return hello;
}

const CodeCache& TritonCompiler::cache() const {
  return state_->cache;
}

int64_t TritonCompiler::compiled() const {
  return state_->compiled;
}

double TritonCompiler::seconds() const {
  return state_->seconds;
}

int64_t TritonCompiler::started() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pool ? state_->pool->started() : 0;
}

}  // namespace stax::runtime
