// Helpers of the fuzz targets. A target fails when a reader crashes or throws anything but stax::UserError.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>

#include "stax/error.h"
#include "tensor/files/array_view.h"

namespace stax::fuzzing {

/// Touches every byte, so that the address sanitizer sees a view that reaches beyond its buffer.
inline void touch(const files::ArrayView& view) {
  const files::ArrayView rows = files::to_c_order(view);
  volatile int sink = std::accumulate(rows.data, rows.data + rows.nbytes, 0, [](int sum, std::byte byte) {
    return sum ^ std::to_integer<int>(byte);
  });
  (void)sink;
}

inline int expect_user_error_at_most(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError&) {
  }
  return 0;
}

/// Calls `read` with the path of a file that holds the bytes and lies in memory.
inline int with_file(const uint8_t* data, size_t size, const std::function<void(const std::string&)>& read) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  expect_user_error_at_most([&] { read("/proc/self/fd/" + std::to_string(fd)); });
  close(fd);
  return 0;
}

}  // namespace stax::fuzzing
