#include "tensor/files/npy.h"

#include "unit/tensor/files/files_testing.h"

namespace stax::files {
namespace {

using namespace testing;

struct Case {
  const char* code;
  DType dtype;
};
const Case kCases[] = {{"b1", kBool},  {"u1", kUInt8},   {"i1", kInt8},    {"i2", kInt16},  {"i4", kInt32},
                       {"i8", kInt64}, {"f2", kFloat16}, {"f4", kFloat32}, {"f8", kFloat64}};

// The values that make_fixtures.py wrote, as numbers. The float16 ones are spelled as bits below.
std::vector<double> sample(DType dtype) {
  if (dtype == kBool) return {0, 1, 1, 1, 1, 1};
  if (dtype == kUInt8) return {0, 1, 2, 3, 100, 127};
  return {-50, -49, -48, -47, 50, 77};
}

template <typename T>
std::vector<double> widen(const ArrayView& view) {
  const auto raw = values<T>(view);
  return {raw.begin(), raw.end()};
}

std::vector<double> numbers(const ArrayView& view) {
  switch (view.dtype) {
    case kBool:
    case kUInt8:
      return widen<uint8_t>(view);
    case kInt8:
      return widen<int8_t>(view);
    case kInt16:
      return widen<int16_t>(view);
    case kInt32:
      return widen<int32_t>(view);
    case kInt64:
      return widen<int64_t>(view);
    case kFloat32:
      return widen<float>(view);
    case kFloat64:
      return widen<double>(view);
    case kFloat16:
    case kBFloat16:
      break;
  }
  return {};
}

void expect_sample(const ArrayView& view, DType dtype) {
  ASSERT_EQ(view.dtype, dtype);
  EXPECT_EQ(view.sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(view.fortran_order);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % itemsize(dtype), 0u);
  if (dtype == kFloat16) {
    // -50 = -1.5625 * 2^5, and so on: sign, exponent + 15, ten bits of fraction.
    EXPECT_EQ(values<uint16_t>(view),
              (std::vector<uint16_t>{0xd240, 0xd220, 0xd200, 0xd1e0, 0x5240, 0x54d0}));
  } else {
    EXPECT_EQ(numbers(view), sample(dtype));
  }
}

TEST(Npy, ReadsEveryDtypeInBothByteOrders) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.code);
    expect_sample(load_npy(data_path(std::string(c.code) + ".npy")), c.dtype);
    if (itemsize(c.dtype) > 1) expect_sample(load_npy(data_path(std::string(c.code) + "_big.npy")), c.dtype);
  }
}

TEST(Npy, ReadsEveryVersion) {
  for (const char* file : {"version2.npy", "version3.npy"}) {
    const ArrayView view = load_npy(data_path(file));
    EXPECT_EQ(view.sizes, (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(values<float>(view), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  }
}

TEST(Npy, ReadsFortranOrderScalarsAndEmptyArrays) {
  const ArrayView fortran = load_npy(data_path("fortran.npy"));
  EXPECT_TRUE(fortran.fortran_order);
  EXPECT_EQ(fortran.sizes, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(values<int32_t>(fortran)[1], 12);  // element (1, 0, 0)
  const auto row_major = values<int32_t>(to_c_order(fortran));
  for (int i = 0; i < 24; ++i) EXPECT_EQ(row_major[i], i);
  const ArrayView scalar = load_npy(data_path("scalar.npy"));
  EXPECT_TRUE(scalar.sizes.empty());
  EXPECT_EQ(values<double>(scalar), std::vector<double>{2.5});
  const ArrayView empty = load_npy(data_path("empty.npy"));
  EXPECT_EQ(empty.sizes, (std::vector<int64_t>{3, 0, 2}));
  EXPECT_EQ(empty.nbytes, 0);
  const ArrayView half = load_npy(data_path("bfloat16.npy"));
  EXPECT_EQ(half.dtype, kBFloat16);
  EXPECT_EQ(values<uint16_t>(half), (std::vector<uint16_t>{0x3f80, 0xc040}));
}

// NumPy wrote the fixtures, so a writer that gives the same bytes is right.
TEST(Npy, WritesTheBytesThatNumpyWrites) {
  Scratch scratch;
  for (const char* file : {"b1.npy", "u1.npy", "i1.npy", "i2.npy", "i4.npy", "i8.npy", "f2.npy", "f4.npy",
                           "f8.npy", "fortran.npy", "scalar.npy", "empty.npy", "vector.npy"}) {
    save_npy(scratch / file, load_npy(data_path(file)));
    EXPECT_EQ(read_bytes(scratch / file), read_bytes(data_path(file))) << file;
  }
  save_npy(scratch / "half.npy", load_npy(data_path("bfloat16.npy")));
  const ArrayView half = load_npy(scratch / "half.npy");
  EXPECT_EQ(half.dtype, kBFloat16);
  EXPECT_EQ(values<uint16_t>(half), (std::vector<uint16_t>{0x3f80, 0xc040}));
}

TEST(Npy, MapsWithoutCopyingAndLeavesTheFileAlone) {
  Scratch scratch;
  const std::string path = scratch / "x.npy";
  const std::vector<float> data{1, 2, 3};
  save_npy(path, view_of(kFloat32, {3}, data));
  const ArrayView view = load_npy(path);
  *reinterpret_cast<float*>(const_cast<std::byte*>(view.data)) = 9;  // allowed: the mapping is private
  EXPECT_EQ(values<float>(load_npy(path)), data);
}

TEST(Npy, NormalisesBooleans) {
  Scratch scratch;
  std::string bytes = read_bytes(data_path("b1.npy"));
  bytes[bytes.size() - 1] = 2;
  bytes[bytes.size() - 2] = static_cast<char>(0xff);
  write_bytes(scratch / "b.npy", bytes);
  EXPECT_EQ(values<uint8_t>(load_npy(scratch / "b.npy")), (std::vector<uint8_t>{0, 1, 1, 1, 1, 1}));
}

std::string npy(const std::string& header, const std::string& data = "") {
  std::string out = std::string("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

std::string error_of(const std::string& bytes) {
  static const std::shared_ptr<void> none;
  return user_error([&] { parse_npy(std::as_bytes(std::span(bytes)), none, "FILE"); });
}

TEST(Npy, ReadsWhatPythonWouldAccept) {
  for (const char* header : {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n",
                             "{'shape':(1,),'descr':'<f4','fortran_order':True}",
                             "{\"descr\": \"=f4\", \"fortran_order\": False, \"shape\": (1L,)}   "}) {
    EXPECT_EQ(error_of(npy(header, std::string(4, 'x'))), "") << header;
  }
}

TEST(Npy, RefusesHostileHeaders) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "at least 10 bytes"},
      {std::string("PK\x03\x04 not numpy"), "other bytes at the start"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }"),
       "less than 2^63"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807, 4), }"),
       "less than 2^63"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"),
       "a size in [0, 2^63)"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "a size in [0, 2^63)"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234"),
       "expected 8 bytes of array data, got 4"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "12345678"), "4 more bytes after it"},
      {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }"), "True or False"},
      {npy("{'descr': '<f4', 'shape': (1,), }"), "'fortran_order'"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"), "each once"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x"), "the end of the header"},
      {npy("{'descr': '<f4"), "the end of a string"},
      {npy("{'descr': '<q9', 'fortran_order': False, 'shape': (1,), }"), "got '<q9'"},
      {std::string("\x93NUMPY\x04\x00\x00\x00\x00\x00", 12), "version 1.0, 2.0 or 3.0, got 4.0"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "header of 4294967295 bytes"},
  };
  for (const auto& [bytes, text] : cases) {
    const std::string error = error_of(bytes);
    EXPECT_NE(error.find(text), std::string::npos) << text << " not in: " << error;
    EXPECT_EQ(error.rfind("FILE: ", 0), 0u) << error;
  }
}

TEST(Npy, RefusesDtypesWithoutACounterpart) {
  EXPECT_NE(user_error([] { load_npy(data_path("complex.npy")); }).find("got '<c8'"), std::string::npos);
  EXPECT_NE(user_error([] { load_npy(data_path("object.npy")); }).find("Python objects"), std::string::npos);
  EXPECT_NE(user_error([] { load_npy(data_path("structured.npy")); }).find("structured"), std::string::npos);
}

TEST(Npy, RefusesWhatIsNoFile) {
  EXPECT_NE(
      user_error([] { load_npy("/nonexistent/x.npy"); }).find("/nonexistent/x.npy: expected a readable file"),
      std::string::npos);
  EXPECT_NE(user_error([] { load_npy("/tmp"); }).find("got a folder"), std::string::npos);
  EXPECT_NE(user_error([] { load_npy("/dev/zero"); }).find("got a device"), std::string::npos);
}

TEST(Npy, SurvivesDamage) {
  for (const char* file : {"f4.npy", "i2_big.npy", "version2.npy", "fortran.npy"}) {
    SCOPED_TRACE(file);
    expect_survives_damage(read_bytes(data_path(file)), 2000,
                           [](const std::string& path) { to_c_order(load_npy(path)); });
  }
}

TEST(Npy, FullDiskIsARuntimeErrorAndDamagesNothing) {
  const std::vector<float> data(1 << 16, 1.0f);
  const ArrayView view = view_of(kFloat32, {1 << 16}, data);
  EXPECT_THROW(save_npy("/dev/full", view), RuntimeError);
  EXPECT_THROW(save_npy("/nonexistent/x.npy", view), RuntimeError);
  Scratch scratch;
  EXPECT_THROW(save_npy(scratch / "", view), UserError);  // a folder
  const std::string path = scratch / "x.npy";
  write_bytes(path, "old");
  EXPECT_THROW(save_npy(path, {kFloat32, {3}, nullptr, 8, nullptr}), UserError);
  EXPECT_EQ(read_bytes(path), "old");
  save_npy(path, view);
  EXPECT_EQ(scratch.count(), 1u);  // no temporary file is left
  EXPECT_EQ(values<float>(load_npy(path)), data);
}

TEST(Npy, ReplacesTheTargetOfALink) {
  Scratch scratch;
  write_bytes(scratch / "real.npy", "old");
  std::filesystem::create_symlink(scratch / "real.npy", scratch / "link.npy");
  const std::vector<double> data{1};
  save_npy(scratch / "link.npy", view_of(kFloat64, {1}, data));
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link.npy"));
  EXPECT_EQ(values<double>(load_npy(scratch / "real.npy")), data);
}

}  // namespace
}  // namespace stax::files
