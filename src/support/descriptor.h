// File descriptors of the operating system.
#pragma once

#include <unistd.h>

namespace stax {

/// Closes a descriptor at the end of a scope; negative where opening failed.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace stax
