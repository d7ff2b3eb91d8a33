#include "tensor/files/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "support/atomic_file.h"
#include "support/check.h"
#include "support/mapped_file.h"
#include "support/plural.h"

namespace stax::files {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxRank = 64;

// NumPy's kind and size of every dtype, in the order of DType.
constexpr std::string_view kCodes[kDTypeCount] = {"b1", "u1", "i1", "i2", "i4", "i8", "f2", "V2", "f4", "f8"};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> sizes;
};

// Reads the header's text, a Python dictionary of a string, a boolean and a tuple of integers.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  Header parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      read_value(key);
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (position_ != text_.size()) fail("the end of the header");
    if (!descr_ || !fortran_ || !sizes_) fail("the keys 'descr', 'fortran_order' and 'shape'");
    return {std::move(*descr_), *fortran_, std::move(*sizes_)};
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    std::string rest;
    for (char c : text_.substr(std::min(position_, text_.size()), 24))
      rest += c >= 0x20 && c < 0x7f ? c : '?';
    throw_user_error(fmt::format("{}: malformed .npy header: expected {} at character {}, got '{}'", what_,
                                 expected, position_, rest));
  }

  void skip_space() {
    while (position_ < text_.size() && std::strchr(" \t\r\n", text_[position_]) != nullptr &&
           text_[position_] != 0) {
      ++position_;
    }
  }
  bool accept(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c));
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }

  std::string quoted() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) fail("the end of a string");
    std::string out(text_.substr(position_, end - position_));
    if (out.find('\\') != std::string::npos) fail("a string without escapes");
    position_ = end + 1;
    return out;
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t value = 0;
      const char* first = text_.data() + position_;
      const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) fail("a size in [0, 2^63)");
      position_ += static_cast<size_t>(end - first);
      accept('L');  // as Python 2 wrote long integers
      out.push_back(value);
      if (out.size() > kMaxRank) fail(fmt::format("at most {}", counted(kMaxRank, "dimension")));
      if (accept(',')) continue;
      expect(')');
      break;
    }
    return out;
  }

  void read_value(const std::string& key) {
    if (key == "descr" && !descr_) {
      skip_space();
      if (position_ < text_.size() && text_[position_] == '[')
        fail("a plain dtype (structured arrays are not read)");
      descr_ = quoted();
    } else if (key == "fortran_order" && !fortran_) {
      fortran_ = accept_word("True");
      if (!*fortran_ && !accept_word("False")) fail("True or False");
    } else if (key == "shape" && !sizes_) {
      sizes_ = tuple();
    } else {
      fail("the keys 'descr', 'fortran_order' and 'shape', each once");
    }
  }

  std::string_view text_;
  std::string_view what_;
  size_t position_ = 0;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<int64_t>> sizes_;
};

struct ElementType {
  DType dtype;
  bool swapped;  // the file's byte order is not the machine's
};

ElementType element_type(const std::string& descr, std::string_view what) {
  std::string_view code = descr;
  char order = '=';
  if (!code.empty() && std::strchr("<>=|", code[0]) != nullptr && code[0] != 0) {
    order = code[0];
    code.remove_prefix(1);
  }
  if (code == "?") code = "b1";
  const auto* found = std::find(std::begin(kCodes), std::end(kCodes), code);
  const std::string_view hint = code.starts_with('O') ? " (it holds Python objects)" : "";
  STAX_CHECK(found != std::end(kCodes),
             "{}: expected a dtype among b1, u1, i1, i2, i4, i8, f2, f4, f8 and V2 (bfloat16), got '{}'{}; "
             "convert the array "
             "in NumPy first",
             what, descr.substr(0, 40), hint);
  const auto dtype = static_cast<DType>(found - std::begin(kCodes));
  return {dtype, order == '>' && itemsize(dtype) > 1};
}

ArrayView swapped_copy(const ArrayView& view, const std::byte* data) {
  ArrayView out = view;
  auto copy = allocate(view.nbytes);
  const int64_t item = itemsize(view.dtype);
  for (int64_t i = 0; i < view.nbytes; i += item) {
    std::reverse_copy(data + i, data + i + item, copy.get() + i);
  }
  out.data = copy.get();
  out.owner = std::move(copy);
  return out;
}

// Where the header's text begins and how long it is.
struct HeaderPlace {
  size_t begin, length;
};

HeaderPlace find_header(std::span<const std::byte> bytes, std::string_view what) {
  STAX_CHECK(bytes.size() >= 10, "{}: expected a .npy file of at least 10 bytes, got {}", what, bytes.size());
  STAX_CHECK(std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0,
             "{}: expected a .npy file, got other bytes at the start", what);
  const int major = std::to_integer<int>(bytes[6]), minor = std::to_integer<int>(bytes[7]);
  STAX_CHECK(major >= 1 && major <= 3 && minor == 0,
             "{}: expected .npy format version 1.0, 2.0 or 3.0, got {}.{}", what, major, minor);
  const size_t width = major == 1 ? 2 : 4;
  STAX_CHECK(bytes.size() >= 8 + width, "{}: expected a .npy file of at least {}, got {}", what,
             counted(8 + width, "byte"), bytes.size());
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, width);
  STAX_CHECK(length <= bytes.size() - 8 - width, "{}: expected a .npy header of {}, got a file of only {}",
             what, counted(length, "byte"), counted(bytes.size(), "byte"));
  return {8 + width, length};
}

}  // namespace

ArrayView parse_npy(std::span<const std::byte> bytes, const std::shared_ptr<void>& owner,
                    std::string_view what) {
  const auto [begin, length] = find_header(bytes, what);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  Header header = HeaderParser(text, what).parse();
  const auto [dtype, swapped] = element_type(header.descr, what);
  const int64_t nbytes = checked_bytes(header.sizes, itemsize(dtype));
  STAX_CHECK(nbytes >= 0,
             "{}: expected an array of less than 2^63 bytes, got a shape whose product is larger", what);
  const auto available = static_cast<int64_t>(bytes.size() - begin - length);
  STAX_CHECK(nbytes <= available, "{}: expected {} of array data, got {}; the file is truncated", what,
             counted(nbytes, "byte"), available);
  STAX_CHECK(nbytes == available,
             "{}: expected one array of {}, got {} more bytes after it; save further arrays in "
             "files of their own or in one .npz",
             what, counted(nbytes, "byte"), available - nbytes);
  const std::byte* data = bytes.data() + begin + length;
  ArrayView view;
  if (swapped) {
    view = swapped_copy({dtype, std::move(header.sizes), nullptr, nbytes, nullptr}, data);
  } else {
    view = make_view(dtype, std::move(header.sizes), data, owner);
  }
  view.fortran_order = header.fortran_order;
  return view;
}

ArrayView load_npy(const std::string& path) {
  auto file = MappedFile::open(path);
  return parse_npy(file->bytes(), file, path);
}

std::string npy_header(const ArrayView& array) {
  std::string shape;
  for (int64_t size : array.sizes) shape += fmt::format("{}, ", size);
  if (array.sizes.size() > 1) shape.resize(shape.size() - 2);
  if (array.sizes.size() == 1) shape.pop_back();  // "(3,)"
  const char order = itemsize(array.dtype) == 1 ? '|' : '<';
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': ({}), }}", order,
                  kCodes[static_cast<int>(array.dtype)], array.fortran_order ? "True" : "False", shape);
  // Version 1 always suffices: 64 sizes of 20 characters stay far below its 65,535.
  const size_t total = (10 + text.size() + 1 + 63) / 64 * 64;
  text.append(total - 10 - text.size() - 1, ' ');
  text += '\n';
  const auto length = static_cast<uint16_t>(text.size());
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return out + text;
}

void save_npy(const std::string& path, const ArrayView& array) {
  check_view(array, path);
  STAX_CHECK(array.sizes.size() <= kMaxRank, "{}: expected at most {}, got {}", path,
             counted(kMaxRank, "dimension"), array.sizes.size());
  AtomicFile file(path);
  file.write(npy_header(array));
  file.write(array.data, static_cast<size_t>(array.nbytes));
  file.commit();
}

}  // namespace stax::files
