// Helpers of the file tests: bytes in and out, a scratch folder, and loops that feed a reader damaged files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "stax/error.h"
#include "tensor/files/array_view.h"

namespace stax::files::testing {

inline std::string data_path(const std::string& name) {
  return std::string(STAX_TEST_DATA) + "/files/" + name;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A folder that is removed at the end of the test.
class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() / ("stax_files_XXXXXX")) {
    std::string name = folder_.string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  size_t count() const {
    return std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path folder_;
};

template <typename T>
std::vector<T> values(const ArrayView& view) {
  EXPECT_EQ(view.nbytes % static_cast<int64_t>(sizeof(T)), 0);
  std::vector<T> out(view.nbytes / sizeof(T));
  if (view.nbytes > 0) std::memcpy(out.data(), view.data, view.nbytes);
  return out;
}

template <typename T>
ArrayView view_of(DType dtype, std::vector<int64_t> sizes, const std::vector<T>& data) {
  return {dtype, std::move(sizes), reinterpret_cast<const std::byte*>(data.data()),
          static_cast<int64_t>(data.size() * sizeof(T)), nullptr};
}

/// The UserError's text, or "" when none was thrown.
inline std::string user_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

/// Feeds `read` every truncation of the bytes, which must all throw UserError naming the file, and many
/// versions with changed bytes, which must throw UserError or return.
inline void expect_survives_damage(const std::string& bytes, int rounds,
                                   const std::function<void(const std::string&)>& read) {
  Scratch scratch;
  const std::string path = scratch / "damaged";
  for (size_t length = 0; length < bytes.size(); ++length) {
    write_bytes(path, bytes.substr(0, length));
    const std::string error = user_error([&] { read(path); });
    ASSERT_NE(error.find(path), std::string::npos) << "cut to " << length << " bytes: " << error;
  }
  std::mt19937 random(2026);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    std::string changed = bytes;
    for (unsigned k = 1 + random() % 4; k > 0; --k) {
      const unsigned choice = random() % 4;
      char& target = changed[random() % std::min<size_t>(changed.size(), choice == 0 ? changed.size() : 400)];
      target = choice < 2 ? static_cast<char>(random()) : static_cast<char>(target ^ (1 << random() % 8));
      if (choice == 3) target = static_cast<char>(0xff);
    }
    write_bytes(path, changed);
    const std::string error = user_error([&] { read(path); });
    if (error.empty()) continue;
    ++refused;
    ASSERT_NE(error.find(path), std::string::npos) << "round " << i << " of seed 2026: " << error;
  }
  EXPECT_GT(refused, rounds / 20);
}

}  // namespace stax::files::testing
