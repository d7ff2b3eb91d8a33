#include "support/call_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/core.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "support/file.h"
#include "support/mapped_file.h"
#include "support/process.h"

namespace stax {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

namespace {

constexpr int kMostFrames = 32;

/// A call that an address stands for.
struct Frame {
  std::string function;  // demangled, or empty
  std::string place;     // file:line, or empty
};

/// What is known of one address: the calls inlined there, innermost first, and the exported function around
/// it
/// ("function+0x1c") where that is the user's.
struct Known {
  std::vector<Frame> calls;
  std::string exported;
};

/// The file that holds an address, the address there, and the exported function around it.
struct Location {
  std::string path;
  uintptr_t address = 0;
  std::string function;
  uintptr_t offset = 0;  // in the function
};

Location locate(void* pointer) {
  Location out;
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(pointer, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return out;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  // The program's own entry has no name.
  const bool named = map != nullptr && map->l_name != nullptr && *map->l_name != 0;
  out.path = named ? map->l_name : "/proc/self/exe";
  out.address = address - (map != nullptr ? map->l_addr : 0);
  if (info.dli_sname != nullptr) {
    out.function = demangled(info.dli_sname);
    out.offset = address - reinterpret_cast<uintptr_t>(info.dli_saddr);
  }
  return out;
}

/// A path that another process can open.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), std::free);
  return resolved ? resolved.get() : path;
}

/// Libraries whose functions are nobody's own: they start programs and threads.
bool is_system(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const char* prefix : {"libc.so", "libc-", "libstdc++", "libgcc_s", "libpthread", "ld-linux"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

/// Whether a program or library of this machine's kind has debug lines, so that looking for one is worth
/// while.
bool has_lines(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const auto* data = reinterpret_cast<const char*>(bytes.data());
  ElfW(Ehdr) header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, data, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(ElfW(Shdr)))
    return false;
  const auto section = [&](size_t k) -> std::optional<ElfW(Shdr)> {
    const size_t at = header.e_shoff + k * sizeof(ElfW(Shdr));
    ElfW(Shdr) out;
    if (at > bytes.size() || bytes.size() - at < sizeof out) return std::nullopt;
    std::memcpy(&out, data + at, sizeof out);
    return out;
  };
  const auto names = section(header.e_shstrndx);
  if (!names || names->sh_offset > bytes.size() || names->sh_size > bytes.size() - names->sh_offset)
    return false;
  const std::string_view all(data + names->sh_offset, names->sh_size);
  return all.find(".debug_line") != std::string_view::npos ||
         all.find(".gnu_debuglink") != std::string_view::npos;
}

/// The calls at addresses of one module, by address, as addr2line knows them; nothing where it is missing or
/// knows nothing.
std::map<uintptr_t, std::vector<Frame>> lines_of(const std::string& path,
                                                 const std::vector<uintptr_t>& addresses) {
  std::map<uintptr_t, std::vector<Frame>> out;
  const auto tool = find_program("addr2line");
  if (!tool || !has_lines(path)) return out;
  std::vector<std::string> command = {*tool, "-aCfie", real_path(path)};
  for (const uintptr_t address : addresses) command.push_back(fmt::format("{:#x}", address));
  const ProcessResult result = run_process(command, {.time_limit = std::chrono::seconds(20)});
  if (!result.ok()) return out;
  std::istringstream lines(result.output);
  std::vector<Frame>* calls = nullptr;
  for (Frame frame; std::getline(lines, frame.function);) {
    if (frame.function.starts_with("0x")) {
      calls = &out[std::strtoull(frame.function.c_str(), nullptr, 16)];
      continue;
    }
    if (calls == nullptr || !std::getline(lines, frame.place)) break;
    if (const size_t extra = frame.place.find(" (discriminator"); extra != std::string::npos)
      frame.place.resize(extra);
    if (frame.place.starts_with("?") || frame.place.ends_with(":?") || frame.place.ends_with(":0"))
      frame.place.clear();
    calls->push_back(frame);
  }
  return out;
}

/// The qualified name in a demangled function: without template arguments, parameters and the return type
/// that templates have in front.
std::string qualified_name(std::string text) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  for (size_t at = text.find(kAnonymous); at != std::string::npos; at = text.find(kAnonymous))
    text.replace(at, kAnonymous.size(), "anonymous");
  std::string name;
  int depth = 0;
  for (const char c : text) {
    depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (c == '(' && depth == 0) break;
    if (c == ' ' && depth == 0 && !name.ends_with("operator")) {
      name.clear();
    } else if (depth == 0 && c != '>') {
      name += c;
    }
  }
  return name;
}

bool is_users_function(const std::string& name) {
  return !name.starts_with("stax::") && !name.starts_with("std::") && !name.starts_with("__gnu_cxx::");
}

std::string normal_path(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

/// The folder that Stax's sources lie in, with a "/" behind it, from what is known of the call of
/// CallStack::take(); empty where Stax has no debug lines.
std::string source_folder(const Known& own) {
  constexpr std::string_view kThisFile = "src/support/call_stack.cpp:";
  for (const Frame& call : own.calls) {
    const std::string place = normal_path(call.place);
    if (const size_t at = place.rfind(kThisFile); at != std::string::npos) return place.substr(0, at);
  }
  return "";
}

/// Whether a call belongs to the caller, rather than to Stax or to the library that calls its functions.
/// Where the caller's function is inlined into a template of these, debug lines give its place beside the
/// name of the template, or of another function without its namespace. So do Stax's own, if it has any: there
/// the folder tells. Only parts of `sources` are Stax: programs may lie beside them.
bool is_users(const Frame& call, const std::string& sources) {
  for (const char* header : {"/include/c++/", "/include/stax/"})
    if (call.place.find(header) != std::string::npos) return false;
  if (!sources.empty() && normal_path(call.place).starts_with(sources + "src/")) return false;
  const std::string name = qualified_name(call.function);
  if (name.starts_with("std::") || name.starts_with("stax::detail::"))
    return call.function.find('<') != std::string::npos;
  return is_users_function(name);
}

/// What is known of addresses of this process, each looked up once: programs may print many errors of one
/// place.
class KnownPlaces {
 public:
  std::vector<Known> find(const std::vector<void*>& pointers) {
    const std::lock_guard lock(mutex_);
    learn(pointers);
    std::vector<Known> out;
    for (void* pointer : pointers) out.push_back(known_[pointer]);
    return out;
  }

 private:
  void learn(const std::vector<void*>& pointers) {
    std::map<std::string, std::vector<std::pair<void*, uintptr_t>>> unknown;  // by module
    for (void* pointer : pointers) {
      if (known_.contains(pointer)) continue;
      // A return address lies behind its call.
      const Location at = locate(static_cast<char*>(pointer) - 1);
      Known& known = known_[pointer];
      if (at.path.empty() || is_system(at.path)) continue;
      if (!at.function.empty() && is_users_function(qualified_name(at.function)))
        known.exported = fmt::format("{}+{:#x}", at.function, at.offset);
      unknown[at.path].emplace_back(pointer, at.address);
    }
    for (const auto& [path, places] : unknown) {
      std::vector<uintptr_t> addresses;
      for (const auto& [pointer, address] : places) addresses.push_back(address);
      const auto lines = lines_of(path, addresses);
      for (const auto& [pointer, address] : places) {
        if (const auto found = lines.find(address); found != lines.end())
          known_[pointer].calls = found->second;
      }
    }
  }

  std::mutex mutex_;
  std::unordered_map<void*, Known> known_;
};

KnownPlaces& known_places() {
  static KnownPlaces places;
  return places;
}

}  // namespace

CallStack CallStack::take() {
  void* buffer[kMostFrames];
  const int count = backtrace(buffer, kMostFrames);
  CallStack stack;
  if (count > 1) stack.frames_ = std::make_shared<const std::vector<void*>>(buffer, buffer + count);
  return stack;
}

std::string CallStack::user_place() const {
  if (!frames_) return "";
  const std::vector<Known> found = known_places().find(*frames_);
  const std::string sources = source_folder(found.front());
  std::string exported;
  for (const Known& known : found) {
    for (const Frame& call : known.calls) {
      if (!call.place.empty() && is_users(call, sources)) return call.place;
    }
    if (exported.empty()) exported = known.exported;
  }
  return exported;
}

struct PlacedError::Text {
  std::string message;
  CallStack stack;
  std::once_flag placed;
};

PlacedError::PlacedError(const std::string& message, CallStack stack)
    : UserError(message), text_(std::make_shared<Text>()) {
  text_->message = message;
  text_->stack = std::move(stack);
}

void throw_user_error_at(const CallStack& where, const std::string& message) {
  if (where.empty()) throw UserError(message);
  throw PlacedError(message, where);
}

const char* PlacedError::what() const noexcept {
  try {
    std::call_once(text_->placed, [&] {
      const std::string place = text_->stack.user_place();
      if (!place.empty()) text_->message += "\n  at " + place;
    });
    return text_->message.c_str();
  } catch (...) {
    return UserError::what();
  }
}

}  // namespace stax
