// Compiles C++ kernel sources to shared objects with the host's compiler, through the disk cache, and loads
// them.
//
// A source that calls into a library says so in lines `// link: NAME` (the prelude's text does), which become
// -lNAME.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/code_cache.h"

namespace stax {
struct ProcessResult;
}

namespace stax::runtime {

/// A loaded shared object; unloaded with its last owner.
class Module {
 public:
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  /// Address of an exported symbol. Throws RuntimeError when there is none of that name.
  void* symbol(const std::string& name) const;

 private:
  friend class HostCompiler;
  Module(void* handle) : handle_(handle) {}
  void* handle_;
};

struct CompileFlags {
  int optimization = 2;             ///< of -O
  std::vector<std::string> target;  ///< flags of the instruction set, such as those of device::cpu_target()
  bool address_sanitizer = false;   ///< for tests in a program that is built with it too
  std::vector<std::string> extra;   ///< appended
};

/// Settings of a HostCompiler. The defaults read the environment.
struct HostCompilerOptions {
  std::string program;  ///< path or name on PATH; empty: STAX_CXX, else the first of c++, g++, clang++ found
  std::string cache_folder;  ///< empty: CodeCache::default_folder()
  int64_t cache_bytes = int64_t{1} << 30;
  std::chrono::milliseconds time_limit{120'000};  ///< for one compiler run
};

/// Thread-safe. Two threads that want one source compile it once; two processes may both compile it, and
/// either result is kept.
class HostCompiler {
 public:
  explicit HostCompiler(HostCompilerOptions options = {});
  ~HostCompiler();

  /// Loads the compiled form of `source`: from this object's memory, from the disk, or compiled now. Throws
  /// RuntimeError naming the command, what it wrote and what to do, when there is no working compiler.
  std::shared_ptr<Module> compile(const std::string& source, const CompileFlags& flags);
  /// The same for several sources, compiled by up to `processes` compilers at a time (0: one a processor).
  /// Throws the error of the first source that failed, after all have ended.
  std::vector<std::shared_ptr<Module>> compile_all(std::span<const std::string> sources,
                                                   const CompileFlags& flags, int processes = 0);

  /// Path and version of the compiler. Throws RuntimeError when there is none. The version is kept in the
  /// cache under the program's path, size and time, so that only the first process runs the program for it.
  struct Identity {
    std::string path;
    std::string version_text;
  };
  const Identity& identity();

  /// The key of the disk cache: source, compiler, flags, target and format.
  std::string key(const std::string& source, const CompileFlags& flags);
  const CodeCache& cache() const { return cache_; }
  /// Compiler runs for kernels so far.
  int64_t compiler_runs() const;
  /// Time spent waiting for the compiler's processes, its runs for its version included: added up over
  /// threads, so at most the time that passed where one ran at a time.
  std::chrono::duration<double> compiler_time() const;

 private:
  struct State;
  std::shared_ptr<Module> load_or_build(const std::string& key, const std::string& source,
                                        const CompileFlags& flags);
  std::shared_ptr<Module> build(const std::string& key, const std::string& source, const CompileFlags& flags);
  std::vector<std::string> arguments(const CompileFlags& flags, std::string_view source,
                                     const std::string& source_path, const std::string& output_path);
  void warn_once(const std::string& problem);
  /// With additions to the environment.
  ProcessResult run(const std::vector<std::string>& command, std::vector<std::string> environment);

  HostCompilerOptions options_;
  CodeCache cache_;
  std::unique_ptr<State> state_;
};

}  // namespace stax::runtime
