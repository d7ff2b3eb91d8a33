#include "tensor/files/safetensors.h"

#include "unit/tensor/files/files_testing.h"

namespace stax::files {
namespace {

using namespace testing;

std::string file_of(const std::string& header, const std::string& data) {
  std::string out(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  return out + header + data;
}

std::string error_of(const std::string& bytes) {
  Scratch scratch;
  write_bytes(scratch / "x.safetensors", bytes);
  return user_error([&] { SafetensorsFile file(scratch / "x.safetensors"); });
}

TEST(Safetensors, ReadsWhatThePackageWrote) {
  const SafetensorsFile file(data_path("numpy.safetensors"));
  EXPECT_EQ(file.entries().size(), 6u);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"who", "numpy"}, {"é", "ü"}}));
  const ArrayView a = file.tensor("a");
  EXPECT_EQ(a.dtype, kFloat32);
  EXPECT_EQ(a.sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(values<float>(a), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values<int16_t>(file.tensor("b")), (std::vector<int16_t>{-1, 2}));
  EXPECT_EQ(values<uint8_t>(file.tensor("c")), (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(file.tensor("d").sizes, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(values<int64_t>(file.tensor("e")), std::vector<int64_t>{5});
}

TEST(Safetensors, RefusesADtypeOnlyWhenItIsAskedFor) {
  const SafetensorsFile file(data_path("numpy.safetensors"));
  const std::string error = user_error([&] { file.tensor("f"); });
  EXPECT_NE(error.find("tensor 'f'"), std::string::npos) << error;
  EXPECT_NE(error.find("got U32"), std::string::npos) << error;
  EXPECT_NE(user_error([&] { file.tensor("nobody"); }).find("named 'nobody'"), std::string::npos);
}

TEST(Safetensors, RoundTripsEveryDtype) {
  Scratch scratch;
  const std::vector<uint64_t> raw{0x0100010001000101, 0x0001010000010001};
  std::vector<std::pair<std::string, ArrayView>> tensors;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    tensors.emplace_back(
        "t" + std::to_string(d),
        ArrayView{
            dtype, {16 / itemsize(dtype)}, reinterpret_cast<const std::byte*>(raw.data()), 16, nullptr});
  }
  save_safetensors(scratch / "x", tensors, {{"k", "v"}});
  const SafetensorsFile file(scratch / "x");
  EXPECT_EQ(file.metadata().at("k"), "v");
  for (const auto& [name, view] : tensors) {
    const ArrayView back = file.tensor(name);
    EXPECT_EQ(back.dtype, view.dtype);
    EXPECT_EQ(back.sizes, view.sizes);
    EXPECT_EQ(values<uint64_t>(back), raw);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(back.data) % itemsize(back.dtype), 0u);
  }
}

TEST(Safetensors, WritesFortranOrderAsRows) {
  Scratch scratch;
  const std::vector<float> columns{1, 4, 2, 5, 3, 6};
  ArrayView view = view_of(kFloat32, {2, 3}, columns);
  view.fortran_order = true;
  save_safetensors(scratch / "x", {{"a", view}});
  EXPECT_EQ(values<float>(SafetensorsFile(scratch / "x").tensor("a")),
            (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Safetensors, WritesTheFormat) {
  Scratch scratch;
  const std::vector<int16_t> data{1, 2};
  save_safetensors(scratch / "x", {{"a", view_of(kInt16, {2}, data)}});
  const std::string header = R"({"a": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(read_bytes(scratch / "x"), file_of(padded, std::string("\x01\x00\x02\x00", 4)));
}

TEST(Safetensors, CopiesMisalignedTensors) {
  Scratch scratch;
  // The header's length is odd, so the data begins at an odd address.
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  if (header.size() % 2 == 0) header += ' ';
  write_bytes(scratch / "x", file_of(header, std::string("\x00\x00\x80\x3f", 4)));
  const ArrayView view = SafetensorsFile(scratch / "x").tensor("a");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 4, 0u);
  EXPECT_EQ(values<float>(view), std::vector<float>{1});
}

TEST(Safetensors, RefusesHostileHeaders) {
  const auto one = [](const std::string& name, const std::string& rest) {
    return "{\"" + name + "\":{" + rest + "}}";
  };
  const std::string eight(8, '\0');
  const std::pair<std::string, const char*> cases[] = {
      {"1234567", "at least 8 bytes"},
      {std::string(8, '\xff') + "{}", "a length of 18446744073709551615"},
      {file_of("[]", ""), "starts with '{'"},
      {file_of(" {}", ""), "starts with '{'"},
      {file_of("{", ""), "ends too early"},
      {file_of("{}", "x"), "expected 0 bytes of tensor data, got 1"},
      {file_of(one("a", R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), "1234"), "truncated"},
      {file_of(one("a", R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), eight),
       "expected 12 bytes for its shape"},
      {file_of(one("a", R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), eight), "not negative"},
      {file_of(one("a", R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8])"), eight),
       "63 bits"},
      {file_of(one("a", R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), eight), "rising data_offsets"},
      {file_of(one("a", R"("dtype":"F32","shape":[2],"data_offsets":[-8,0])"), eight), "rising data_offsets"},
      {file_of(one("a", R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])"), eight), "two data_offsets"},
      {file_of(one("a", R"("dtype":"F32","shape":[2])"), eight), "\"data_offsets\""},
      {file_of(one("a", R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)"), eight), "got \"x\""},
      {file_of(one("a", R"("dtype":"F32","shape":[1.5],"data_offsets":[0,8])"), eight),
       "expected an integer, got number"},
      {file_of(one("a", R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8])"), eight),
       "64 signed bits"},
      {file_of(one("__metadata__", R"("a":1)"), ""), "expected a string, got integer"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           "1234"),
       "stands twice"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           "1234"),
       "overlap"},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           "1234"),
       "hole"},
  };
  for (const auto& [bytes, text] : cases) {
    const std::string error = error_of(bytes);
    EXPECT_NE(error.find(text), std::string::npos) << text << " not in: " << error;
    EXPECT_NE(error.find("x.safetensors: "), std::string::npos) << error;
  }
}

// PyTorch has tensors of more dimensions than NumPy's 64, and saves them.
TEST(Safetensors, HoldsManyDimensions) {
  Scratch scratch;
  const std::vector<float> data{7};
  save_safetensors(scratch / "x", {{"a", view_of(kFloat32, std::vector<int64_t>(65, 1), data)}});
  EXPECT_EQ(SafetensorsFile(scratch / "x").tensor("a").sizes.size(), 65u);
}

TEST(Safetensors, RefusesNamesThatWouldNotReadBack) {
  const ArrayView none{kUInt8, {0}, nullptr, 0, nullptr};
  EXPECT_THROW(save_safetensors("/tmp/never", {{"a", none}, {"a", none}}), UserError);
  EXPECT_THROW(save_safetensors("/tmp/never", {{"__metadata__", none}}), UserError);
  EXPECT_THROW(save_safetensors("/tmp/never", {{"\xff", none}}), UserError);
  EXPECT_FALSE(std::filesystem::exists("/tmp/never"));
}

TEST(Safetensors, SurvivesDamage) {
  expect_survives_damage(read_bytes(data_path("numpy.safetensors")), 8000, [](const std::string& path) {
    const SafetensorsFile file(path);
    for (const auto& entry : file.entries()) {
      if (entry.dtype != "U32") file.tensor(entry.name);
    }
  });
}

TEST(Safetensors, FullDiskIsARuntimeError) {
  const std::vector<float> data(100000);
  EXPECT_THROW(save_safetensors("/dev/full", {{"a", view_of(kFloat32, {100000}, data)}}), RuntimeError);
}

}  // namespace
}  // namespace stax::files
