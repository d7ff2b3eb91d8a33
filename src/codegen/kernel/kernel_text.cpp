// The text form of kernels: a line a statement.
#include <array>

#include "codegen/kernel/kernel.h"
#include "support/code_writer.h"

namespace stax::codegen {

namespace {

constexpr std::array kNames = {
    "compute",   "constant",  "scalar", "splat",  "iota",   "tail",  "load",       "horizontal", "prefix",
    "last_lane", "arg_merge", "check",  "random", "assign", "store", "atomic_add", "fence",      "prefetch",
    "let",       "extract",   "set",    "room",   "array",  "block", "loop",       "when"};
static_assert(kNames.size() == static_cast<size_t>(Action::when) + 1);

bool is_access(Action action) {
  return action == Action::load || action == Action::store || action == Action::atomic_add;
}

bool folds(Action action) {
  return action == Action::compute || action == Action::horizontal || action == Action::prefix ||
         action == Action::arg_merge;
}

std::string access_text(const Statement& s) {
  constexpr std::array names = {"uniform", "contiguous", "strided", "indexed"};
  std::string text =
      fmt::format(" {} p{}[{}]", names[static_cast<size_t>(s.access)], s.pointer, s.index.str());
  if (s.access == Access::strided) text += fmt::format(" stride {}", s.stride.str());
  if (s.access == Access::indexed) text += fmt::format(" at v{}", s.lane_index);
  if (s.mask >= 0) text += fmt::format(" mask v{}", s.mask);
  return text + (s.partial ? " partial" : "") + (s.aligned ? " aligned" : "") + (s.stream ? " stream" : "");
}

std::string head(const Statement& s) {
  std::string text = s.out >= 0 ? fmt::format("v{} = ", s.out) : "";
  text += kNames[static_cast<size_t>(s.action)];
  if (folds(s.action)) text += fmt::format(" {}", loops::info(s.op).name);
  if (s.out >= 0 || is_access(s.action) || s.action == Action::array)
    text += fmt::format(" {}", name(s.dtype));
  if (is_access(s.action)) text += access_text(s);
  for (Var a : s.args) text += fmt::format(" v{}", a);
  switch (s.action) {
    case Action::constant:
      return text + (is_floating_point(s.dtype) ? fmt::format(" {}", s.number.as_double())
                                                : fmt::format(" {}", s.number.as_int()));
    case Action::scalar:
    case Action::random:
      return text + fmt::format(" number {}", s.count);
    case Action::splat:
      return text + fmt::format(" {}", s.index.str());
    case Action::check:
      return text + fmt::format(" size {}", s.index.str());
    case Action::let:
    case Action::set:
      return text + fmt::format(" {} = {}", s.symbol.str(), s.index.str());
    case Action::extract:
      return text + fmt::format(" {}", s.symbol.str());
    case Action::room:
      return text + fmt::format(" {} = p{}[{}]", s.symbol.str(), s.pointer, s.index.str());
    case Action::prefetch:
      return text + fmt::format(" p{}[{}]", s.pointer, s.index.str());
    case Action::array:
      return text + fmt::format(" p{}[{}]{}", s.pointer, s.index.str(), s.partial ? " scratch" : "");
    case Action::loop:
      return text + fmt::format(" {}{} < {} step {}", s.symbol.str(), s.open ? "" : " = " + s.index.str(),
                                s.end.str(), s.step.str());
    case Action::when:
      return text + fmt::format(" {} < {}", s.index.str(), s.end.str());
    case Action::compute:
    case Action::iota:
    case Action::tail:
    case Action::load:
    case Action::horizontal:
    case Action::prefix:
    case Action::last_lane:
    case Action::arg_merge:
    case Action::assign:
    case Action::store:
    case Action::atomic_add:
    case Action::fence:
    case Action::block:
      break;
  }
  return text;
}

void write(const std::vector<Statement>& list, CodeWriter& out) {
  for (const Statement& s : list) {
    out.raw(head(s));
    out.indented([&] { write(s.body, out); });
    if (s.other.empty()) continue;
    out.raw("otherwise");
    out.indented([&] { write(s.other, out); });
  }
}

}  // namespace

std::string Kernel::str() const {
  CodeWriter out;
  out.line("kernel {} lanes {} parallel {} grain {}", info.name, lanes, info.parallel_extent.str(),
           info.grain.str());
  out.indented([&] { write(body, out); });
  for (size_t k = 0; k < later.size(); ++k) {
    out.line("then lanes {} parallel {} grain {}", later[k].lanes, info.later[k].extent.str(),
             info.later[k].grain.str());
    out.indented([&] { write(later[k].body, out); });
  }
  return out.take();
}

}  // namespace stax::codegen
