// Writes source text line by line, with indentation.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace stax {

class CodeWriter {
 public:
  /// Appends one line, indented, with arguments as of fmt::format.
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    raw(fmt::format(text, std::forward<Args>(args)...));
  }
  /// Appends one line as it stands, indented; an empty line stays empty.
  void raw(std::string_view text) {
    if (!text.empty()) text_.append(static_cast<size_t>(depth_) * 2, ' ').append(text);
    text_ += '\n';
  }
  /// Appends `head {`, what `body` writes one level deeper, and `}`.
  template <class Body>
  void braces(std::string_view head, Body body) {
    raw(head.empty() ? std::string("{") : fmt::format("{} {{", head));
    indented(body);
    raw("}");
  }
  template <class Body>
  void indented(Body body) {
    ++depth_;
    body();
    --depth_;
  }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int depth_ = 0;
};

}  // namespace stax
