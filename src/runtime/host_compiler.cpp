#include "runtime/host_compiler.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "support/atomic_file.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/process.h"

namespace stax::runtime {

namespace {

constexpr std::string_view kFormat = "stax kernel format 1";
constexpr std::string_view kHint =
    "install a C++ compiler (g++ 12 or newer, or clang++ 14 or newer) or set STAX_CXX to the path of one";

std::string first_lines(std::string_view text, int count) {
  size_t end = 0;
  for (int line = 0; line < count && end != std::string_view::npos; ++line)
    end = text.find('\n', end + (line > 0));
  std::string result(text.substr(0, end));
  if (end != std::string_view::npos && end + 1 < text.size()) result += "\n...";
  return result;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string describe(const ProcessResult& result, const std::vector<std::string>& command,
                     std::chrono::milliseconds limit) {
  std::string what = result.timed_out    ? fmt::format("did not end within {} ms", limit.count())
                     : result.signal > 0 ? fmt::format("was ended by signal {}", result.signal)
                                         : fmt::format("failed with exit status {}", result.exit_code);
  std::string text = fmt::format("the host compiler {}\ncommand: {}", what, joined(command));
  const std::string& said = result.errors.empty() ? result.output : result.errors;
  if (!said.empty()) text += "\nit wrote: " + first_lines(said, 12);
  return text;
}

std::string locate(const std::string& wanted) {
  const char* variable = std::getenv("STAX_CXX");
  std::string name = !wanted.empty() ? wanted : variable != nullptr ? variable : "";
  if (!name.empty()) {
    auto path = find_program(name);
    STAX_RUNTIME_CHECK(path.has_value(), "the host compiler {} was not found or is not executable; {}", name,
                       kHint);
    return *path;
  }
  for (const char* candidate : {"c++", "g++", "clang++"})
    if (auto path = find_program(candidate)) return *path;
  throw_runtime_error(fmt::format("no host compiler: c++, g++ and clang++ are not on PATH; {}", kHint));
}

/// Whether a compiler that wrote this may succeed in another folder.
bool blames_the_folder(std::string_view errors) {
  for (const char* words : {"No space left on device", "Disk quota exceeded", "File too large",
                            "Read-only file system", "Input/output error"}) {
    if (errors.find(words) != std::string_view::npos) return true;
  }
  return false;
}

/// Whether shared objects that lie in `folder` cannot be loaded.
bool forbids_execution(const std::string& folder) {
  struct statvfs status;
  return statvfs(folder.c_str(), &status) == 0 && (status.f_flag & ST_NOEXEC) != 0;
}

/// Whether the file holds every byte that its program headers map: past the end of a shorter one the loader
/// dies of a bus error.
bool is_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  ElfW(Ehdr) header;
  const auto read = [&](uint64_t at, auto& out) {
    return at <= size && sizeof(out) <= size - at && file.seekg(static_cast<std::streamoff>(at)) &&
           file.read(reinterpret_cast<char*>(&out), sizeof(out));
  };
  if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    if (!read(header.e_phoff + uint64_t{i} * sizeof(part), part)) return false;
    if (part.p_offset > size || part.p_filesz > size - part.p_offset) return false;
  }
  return true;
}

/// The shared object's handle; nullptr with the reason in `problem` where it cannot be loaded.
void* load(const std::string& path, std::string& problem) {
  if (access(path.c_str(), R_OK) == 0 && !is_whole(path)) {
    problem = path + " is no whole shared object";
    return nullptr;
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) problem = dlerror();
  return handle;
}

/// The names in lines `// link: NAME`, sorted, each once.
std::set<std::string> linked_libraries(std::string_view source) {
  constexpr std::string_view marker = "// link: ";
  std::set<std::string> names;
  for (size_t at = source.find(marker); at != std::string_view::npos; at = source.find(marker, at + 1)) {
    if (at > 0 && source[at - 1] != '\n') continue;
    const size_t begin = at + marker.size();
    names.emplace(source.substr(begin, source.find('\n', begin) - begin));
  }
  return names;
}

}  // namespace

struct HostCompiler::State {
  std::mutex mutex;
  std::condition_variable done;
  std::set<std::string> building;
  std::unordered_map<std::string, std::weak_ptr<Module>> loaded;
  std::mutex identity_mutex;
  std::optional<Identity> identity;
  std::atomic<int64_t> runs{0}, nanoseconds{0};
  std::atomic<bool> warned{false}, trimmed{false};
};

Module::~Module() {
  dlclose(handle_);
}

void* Module::symbol(const std::string& name) const {
  void* address = dlsym(handle_, name.c_str());
  STAX_RUNTIME_CHECK(address != nullptr,
                     "what the host compiler made does not export {}; {}, or clear the cache", name, kHint);
  return address;
}

HostCompiler::HostCompiler(HostCompilerOptions options)
    : options_(std::move(options)),
      cache_(options_.cache_folder.empty() ? CodeCache::default_folder() : options_.cache_folder,
             options_.cache_bytes),
      state_(std::make_unique<State>()) {}

HostCompiler::~HostCompiler() = default;

int64_t HostCompiler::compiler_runs() const {
  return state_->runs;
}

std::chrono::duration<double> HostCompiler::compiler_time() const {
  return std::chrono::nanoseconds(state_->nanoseconds);
}

ProcessResult HostCompiler::run(const std::vector<std::string>& command,
                                std::vector<std::string> environment) {
  const auto start = std::chrono::steady_clock::now();
  environment.push_back("LC_ALL=C");  // what the compiler says is read
  ProcessResult result =
      run_process(command, {.time_limit = options_.time_limit, .environment = std::move(environment)});
  state_->nanoseconds += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  return result;
}

void HostCompiler::warn_once(const std::string& problem) {
  if (!state_->warned.exchange(true))
    std::fprintf(stderr, "stax: compiled kernels are not kept on disk: %s\n", problem.c_str());
}

const HostCompiler::Identity& HostCompiler::identity() {
  std::lock_guard lock(state_->identity_mutex);
  if (state_->identity) return *state_->identity;
  Identity identity{locate(options_.program), {}};
  struct stat status;
  STAX_RUNTIME_CHECK(stat(identity.path.c_str(), &status) == 0, "cannot read the host compiler {}; {}",
                     identity.path, kHint);
  const std::string stamp = fmt::format("{} {} {}.{:09} {}\n", identity.path, status.st_size,
                                        status.st_mtim.tv_sec, status.st_mtim.tv_nsec, kFormat);
  const std::string record = cache_.folder() + "/compiler-" + sha256_hex(stamp).substr(0, 16);
  if (cache_.problem().empty())
    if (auto known = read_file(record); known && known->starts_with(stamp) && known->ends_with("\nend\n"))
      identity.version_text = known->substr(stamp.size(), known->size() - stamp.size() - 5);
  if (identity.version_text.empty()) {
    const std::vector<std::string> command{identity.path, "--version"};
    const ProcessResult result = run(command, {});
    STAX_RUNTIME_CHECK(result.ok() && !result.output.empty(), "{}\n{}",
                       describe(result, command, options_.time_limit), kHint);
    identity.version_text = result.output;
    try {
      if (cache_.problem().empty()) {
        std::error_code error;
        if (std::filesystem::is_directory(record, error)) std::filesystem::remove_all(record, error);
        AtomicFile file(record);
        file.write(stamp + identity.version_text + "\nend\n");
        file.commit(false);
      }
    } catch (const Error& error) {
      warn_once(error.what());
    }
  }
  state_->identity = std::move(identity);
  return *state_->identity;
}

std::vector<std::string> HostCompiler::arguments(const CompileFlags& flags, std::string_view source,
                                                 const std::string& source_path,
                                                 const std::string& output_path) {
  std::vector<std::string> words{identity().path,
                                 fmt::format("-O{}", flags.optimization),
                                 "-std=c++20",
                                 "-fPIC",
                                 "-shared",
                                 "-pipe",
                                 "-w",
                                 "-fvisibility=hidden",
                                 "-fno-math-errno",
                                 "-fno-trapping-math",
                                 "-ffp-contract=off",
                                 "-fwrapv",
                                 "-fno-exceptions",
                                 "-fno-rtti",
                                 "-fno-asynchronous-unwind-tables",
                                 "-fno-stack-protector"};
  words.insert(words.end(), flags.target.begin(), flags.target.end());
  // A kernel needs no start-up objects, and leaving them out halves the time to link. The sanitizer's symbols
  // come from the program that loads the kernel.
  words.push_back("-nostdlib");
  if (flags.address_sanitizer)
    words.insert(words.end(), {"-fsanitize=address", "-fno-omit-frame-pointer", "-g1"});
  words.insert(words.end(), flags.extra.begin(), flags.extra.end());
  words.insert(words.end(), {"-o", output_path, "-x", "c++", source_path, "-x", "none"});
  for (const std::string& library : linked_libraries(source)) words.push_back("-l" + library);
  return words;
}

std::string HostCompiler::key(const std::string& source, const CompileFlags& flags) {
  std::string text = fmt::format("{}\n{}\n{}\n", kFormat, identity().path, identity().version_text);
  for (const std::string& word : arguments(flags, source, "", "")) text += word + '\0';
  return sha256_hex(text + source);
}

std::shared_ptr<Module> HostCompiler::compile(const std::string& source, const CompileFlags& flags) {
  const std::string key = this->key(source, flags);
  {
    std::unique_lock lock(state_->mutex);
    while (true) {
      if (auto module = state_->loaded[key].lock()) return module;
      if (state_->building.insert(key).second) break;
      state_->done.wait(lock);
    }
  }
  std::shared_ptr<Module> module;
  std::exception_ptr error;
  try {
    module = load_or_build(key, source, flags);
  } catch (...) {
    error = std::current_exception();
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->building.erase(key);
    if (module) state_->loaded[key] = module;
  }
  state_->done.notify_all();
  if (error) std::rethrow_exception(error);
  return module;
}

std::shared_ptr<Module> HostCompiler::load_or_build(const std::string& key, const std::string& source,
                                                    const CompileFlags& flags) {
  std::string problem;
  if (auto path = cache_.find(key))
    if (void* handle = load(*path, problem)) return std::shared_ptr<Module>(new Module(handle));
  if (!cache_.problem().empty()) warn_once(cache_.problem());
  std::shared_ptr<Module> module = build(key, source, flags);
  if (!state_->trimmed.exchange(true) || state_->runs % 64 == 0) cache_.trim();
  return module;
}

std::shared_ptr<Module> HostCompiler::build(const std::string& key, const std::string& source,
                                            const CompileFlags& flags) {
  std::string failure = "there is no folder to compile in; set TMPDIR to a writable one";
  // The cache's own file system first, so that the result only needs to be renamed; memory as the last
  // resort.
  const std::string elsewhere[] = {temporary_root(), "/dev/shm"};
  constexpr const char* kPrefix = "stax-compile-";
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::unique_ptr<TemporaryFolder> folder;
    try {
      if (attempt > 0) remove_abandoned_folders(elsewhere[attempt - 1], kPrefix);
      folder = attempt == 0 ? cache_.scratch()
                            : std::make_unique<TemporaryFolder>(elsewhere[attempt - 1], kPrefix);
    } catch (const RuntimeError& error) {
      failure = error.what();
    }
    if (!folder) continue;
    if (forbids_execution(folder->path())) {
      failure = fmt::format(
          "what lies in {} cannot be executed (its file system is mounted noexec); set "
          "STAX_CACHE_DIR or TMPDIR to a folder of another one",
          folder->path());
      continue;
    }
    const std::string source_path = folder->path() + "/kernel.cpp",
                      output_path = folder->path() + "/kernel.so";
    std::ofstream file(source_path, std::ios::binary);
    if (!(file << source).flush()) {
      failure = fmt::format("cannot write {}; is the disk full?", source_path);
      continue;
    }
    file.close();
    const std::vector<std::string> command = arguments(flags, source, source_path, output_path);
    ++state_->runs;
    // The compiler's own temporary files belong there too: they go with the folder, and share its disk.
    const ProcessResult result = run(command, {"TMPDIR=" + folder->path()});
    if (!result.ok()) {
      failure = fmt::format("{}\nrun it by hand to see more; if the compiler is at fault, {}",
                            describe(result, command, options_.time_limit), kHint);
      if (blames_the_folder(result.errors)) continue;
      break;
    }
    // Loaded before it is stored, so that the cache holds nothing that cannot be loaded; the name may go
    // afterwards.
    std::string problem;
    if (void* handle = load(output_path, problem)) {
      std::shared_ptr<Module> module(new Module(handle));
      const bool stored = attempt == 0 && cache_.put(key, output_path).has_value();
      if (!stored && cache_.problem().empty()) warn_once(fmt::format("cannot write to {}", cache_.folder()));
      return module;
    }
    failure = fmt::format("the host compiler's result cannot be loaded: {}\ncommand: {}\n{}", problem,
                          joined(command), kHint);
    break;
  }
  throw_runtime_error(failure);
}

std::vector<std::shared_ptr<Module>> HostCompiler::compile_all(std::span<const std::string> sources,
                                                               const CompileFlags& flags, int processes) {
  if (processes <= 0) processes = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  processes = std::min<int>(processes, static_cast<int>(sources.size()));
  std::vector<std::shared_ptr<Module>> modules(sources.size());
  std::vector<std::exception_ptr> errors(sources.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < sources.size(); i = next++) {
      try {
        modules[i] = compile(sources[i], flags);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 1; i < processes; ++i) workers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return modules;
}

}  // namespace stax::runtime
