// A driver library that works on host memory, for tests on machines without a GPU: the functions of
// device/cuda_driver.h. Work is done at once, in the order of the calls. Set STAX_CUDA_DRIVER to its path
// (use_fake_cuda() does) before the first use of a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fake_cuda {

struct Launch {
  std::string kernel;
  uint32_t grid[3] = {}, block[3] = {}, shared_bytes = 0;
  void* stream = nullptr;
  std::vector<uint64_t> arguments;  // 8 bytes each, as many as argument_count() said
  std::vector<uint64_t*> places;    // where they were given
};

#define FAKE_CUDA_API __attribute__((visibility("default")))

/// Makes Stax open this library, also in place of cuBLASLt (fake_cublas_lt.h); at the start of a test
/// program.
FAKE_CUDA_API void use();
/// Forgets what was set and recorded below. Memory stays allocated.
FAKE_CUDA_API void reset();

FAKE_CUDA_API std::vector<Launch> launches();
/// How many arguments kernels of that name have (without it a launch records none).
FAKE_CUDA_API void argument_count(const std::string& kernel, size_t count);
/// Does the work of launches.
FAKE_CUDA_API void on_launch(std::function<void(const Launch&)> body);

/// Names of the calls so far that move data, launch, or order streams.
FAKE_CUDA_API std::vector<std::string> calls();
/// The next call of that function but `after` fails with `result`.
FAKE_CUDA_API void fail(const std::string& function, int32_t result, int32_t after = 0);
/// Lets time pass for events. (Between two at the same time lies half a millisecond.)
FAKE_CUDA_API void advance(float milliseconds);
/// Bytes that can be allocated in all.
FAKE_CUDA_API void memory_limit(size_t bytes);
FAKE_CUDA_API size_t memory_in_use();
/// Dynamic shared memory that a function was allowed, by cuFuncSetAttribute.
FAKE_CUDA_API int32_t shared_limit(const std::string& kernel);
/// Machine code that was loaded.
FAKE_CUDA_API std::vector<std::string> modules();

/// Device memory is a file that other processes can map: its path, and the place of an address in it.
FAKE_CUDA_API std::string memory_path();
FAKE_CUDA_API size_t memory_size();
FAKE_CUDA_API size_t memory_offset(uint64_t address);

}  // namespace fake_cuda
