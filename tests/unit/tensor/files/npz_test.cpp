#include "tensor/files/npz.h"

#include "unit/tensor/files/files_testing.h"

namespace stax::files {
namespace {

using namespace testing;

void expect_fixture(const std::string& path) {
  const NpzFile file(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"x", "folder/y", "z"}));
  const ArrayView x = file.array("x");
  EXPECT_EQ(x.sizes, (std::vector<int64_t>{20, 15}));
  const auto numbers = values<float>(x);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(numbers[i], static_cast<float>(i));
  EXPECT_EQ(values<uint8_t>(file.array("folder/y")), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(values<int64_t>(file.array("z")), std::vector<int64_t>{7});
}

TEST(Npz, ReadsWhatNumpyWrote) {
  expect_fixture(data_path("stored.npz"));
  expect_fixture(data_path("deflated.npz"));
}

TEST(Npz, ReadsStreamedArchives) {
  EXPECT_EQ(values<int16_t>(NpzFile(data_path("streamed.npz")).array("w")),
            (std::vector<int16_t>{0, 1, 2, 3}));
}

TEST(Npz, WritesEveryForm) {
  Scratch scratch;
  const auto arrays = load_npz(data_path("stored.npz"));
  for (bool compress : {false, true}) {
    for (bool zip64 : {false, true}) {
      const std::string path = scratch / "x.npz";
      save_npz(path, arrays, {compress, zip64});
      expect_fixture(path);
    }
  }
  save_npz(scratch / "none.npz", {});
  EXPECT_TRUE(NpzFile(scratch / "none.npz").names().empty());
}

TEST(Npz, SaysWhatIsMissing) {
  const NpzFile file(data_path("stored.npz"));
  const std::string error = user_error([&] { file.array("q"); });
  EXPECT_NE(error.find("expected an array named 'q', got [x, folder/y, z]"), std::string::npos) << error;
  EXPECT_THROW(save_npz("/tmp/never.npz", {{"a", {}}, {"a", {}}}), UserError);
}

TEST(Npz, NoticesDamagedContent) {
  Scratch scratch;
  std::string bytes = read_bytes(data_path("stored.npz"));
  const size_t place = bytes.find("NUMPY") + 200;
  bytes[place] ^= 1;
  write_bytes(scratch / "x.npz", bytes);
  EXPECT_NE(user_error([&] { load_npz(scratch / "x.npz"); }).find("expected CRC"), std::string::npos);
}

TEST(Npz, RefusesBombsAndOverlaps) {
  Scratch scratch;
  const std::string path = scratch / "x.npz";
  const std::vector<uint8_t> zeros(1 << 20);
  save_npz(path, {{"a", view_of(kUInt8, {1 << 20}, zeros)}}, {.compress = true});
  std::string bytes = read_bytes(path);
  const size_t entry = bytes.find("PK\x01\x02");
  bytes[entry + 27] = 0x7f;  // claims to unpack to 2 GB
  write_bytes(path, bytes);
  EXPECT_NE(user_error([&] { NpzFile file(path); }).find("unpack to at most 1032 times"), std::string::npos);

  save_npz(path, {{"a", view_of(kUInt8, {4}, std::vector<uint8_t>(4))},
                  {"a2", view_of(kUInt8, {4}, std::vector<uint8_t>(4))}});
  bytes = read_bytes(path);
  const size_t second = bytes.find("PK\x01\x02", bytes.find("PK\x01\x02") + 1);
  std::memset(bytes.data() + second + 42, 0, 4);  // both entries name the first header
  write_bytes(path, bytes);
  EXPECT_THROW(NpzFile{path}, UserError);
}

TEST(Npz, SurvivesDamage) {
  Scratch scratch;
  const std::vector<float> data{1, 2, 3};
  for (bool zip64 : {false, true}) {
    const std::string path = scratch / "x.npz";
    save_npz(path, {{"a", view_of(kFloat32, {3}, data)}, {"b", view_of(kFloat32, {3, 1}, data)}},
             {.compress = zip64, .always_zip64 = zip64});
    expect_survives_damage(read_bytes(path), 4000, [](const std::string& file) { load_npz(file); });
  }
  expect_survives_damage(read_bytes(data_path("streamed.npz")), 4000,
                         [](const std::string& file) { load_npz(file); });
}

TEST(Npz, FullDiskIsARuntimeError) {
  const auto arrays = load_npz(data_path("stored.npz"));
  EXPECT_THROW(save_npz("/dev/full", arrays), RuntimeError);
}

}  // namespace
}  // namespace stax::files
