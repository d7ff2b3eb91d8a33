// Counts what the test program allocates from the heap.
#pragma once

#include <cstdint>

namespace stax {

/// Calls of operator new so far, on all threads.
int64_t heap_allocations();

}  // namespace stax
