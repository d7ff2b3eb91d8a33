#include "support/call_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/core.h>
#include <link.h>

#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

#include "support/file.h"
#include "support/process.h"

namespace stax {
namespace {

constexpr int kMostFrames = 32;

/// What is known of one address.
struct Frame {
  std::string function;  // demangled, or empty
  std::string place;     // file:line, or empty
  std::string exported;  // function+0x1c, or empty
};

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 ? text.get() : name;
}

/// The file that holds an address, and the address there.
struct Module {
  std::string path;
  uintptr_t address = 0;
};

Frame frame_of(void* pointer, Module& module) {
  Frame frame;
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(pointer, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) return frame;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  // The program's own entry has no name.
  module.path =
      map != nullptr && map->l_name != nullptr && *map->l_name != 0 ? map->l_name : "/proc/self/exe";
  module.address = address - (map != nullptr ? map->l_addr : 0);
  if (info.dli_sname != nullptr) {
    frame.function = demangled(info.dli_sname);
    frame.exported =
        fmt::format("{}+{:#x}", frame.function, address - reinterpret_cast<uintptr_t>(info.dli_saddr));
  }
  return frame;
}

/// A path that another process can open.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), std::free);
  return resolved ? resolved.get() : path;
}

/// Frames of addresses of one module, inlined calls among them, as addr2line knows them; none where it is
/// missing or knows nothing.
std::vector<Frame> lines_of(const std::string& path, const std::vector<uintptr_t>& addresses) {
  const auto tool = find_program("addr2line");
  if (!tool) return {};
  std::vector<std::string> command = {*tool, "-Cfie", real_path(path)};
  for (const uintptr_t address : addresses) command.push_back(fmt::format("{:#x}", address));
  const ProcessResult result = run_process(command, {.time_limit = std::chrono::seconds(20)});
  if (!result.ok()) return {};
  std::vector<Frame> frames;
  std::istringstream lines(result.output);
  for (Frame frame; std::getline(lines, frame.function) && std::getline(lines, frame.place);) {
    if (const size_t extra = frame.place.find(" (discriminator"); extra != std::string::npos)
      frame.place.resize(extra);
    if (frame.place.starts_with("?") || frame.place.ends_with(":?") || frame.place.ends_with(":0"))
      frame.place.clear();
    frames.push_back(frame);
  }
  return frames;
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

/// Whether a function belongs to the caller, rather than to Stax or to the library that calls its functions.
bool is_users(const std::string& function) {
  const std::string name = qualified_name(function);
  return !name.starts_with("stax::") && !name.starts_with("std::") && !name.starts_with("__gnu_cxx::");
}

}  // namespace

CallStack CallStack::take() {
  void* buffer[kMostFrames];
  const int count = backtrace(buffer, kMostFrames);
  CallStack stack;
  if (count > 1) stack.frames_ = std::make_shared<const std::vector<void*>>(buffer + 1, buffer + count);
  return stack;
}

std::string CallStack::user_place() const {
  if (!frames_) return "";
  std::string exported;
  for (size_t k = 0; k < frames_->size();) {
    // Calls in one module are looked up together; a return address lies behind its call.
    Module first;
    std::vector<uintptr_t> addresses;
    for (; k < frames_->size(); ++k) {
      Module module;
      const Frame frame = frame_of(static_cast<char*>((*frames_)[k]) - 1, module);
      if (!addresses.empty() && module.path != first.path) break;
      if (addresses.empty()) first = module;
      addresses.push_back(module.address);
      if (exported.empty() && !frame.exported.empty() && is_users(frame.function)) exported = frame.exported;
    }
    for (const Frame& frame : lines_of(first.path, addresses)) {
      if (!frame.place.empty() && is_users(frame.function)) return frame.place;
    }
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
