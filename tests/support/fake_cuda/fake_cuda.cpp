#include "support/fake_cuda/fake_cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "device/cuda_driver.h"

namespace {

using namespace stax::device;

constexpr size_t kMemory = size_t{4} << 30;  // of the file; pages exist once they are written
constexpr size_t kAlignment = 256;
constexpr int32_t kInvalidValue = 1, kNotFound = 500, kIllegalInstruction = 715;

struct Failure {
  int32_t result, after;
};

struct Function {
  std::string name, code;  // code: JSON of the stand-in for a compiler
  size_t arguments = 0;
  int32_t shared_limit = 0;
};

/// The process that interprets kernels which the stand-in for a compiler has made (see python in this
/// folder).
class Interpreter {
 public:
  /// Empty where it succeeds.
  std::string ask(const std::string& line) {
    if (to_ == nullptr && !start()) return "it cannot be started";
    std::fputs((line + "\n").c_str(), to_);
    std::fflush(to_);
    char* answer = nullptr;
    size_t capacity = 0;
    const ssize_t length = getline(&answer, &capacity, from_);
    std::string text = length > 0 ? std::string(answer, static_cast<size_t>(length) - 1) : "it ended";
    std::free(answer);
    return text == "ok" ? "" : text;
  }

 private:
  bool start() {
    int requests[2], answers[2];
    if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) return false;
    const char* named = std::getenv("FAKE_CUDA_PYTHON");
    const std::string python = named != nullptr ? named : "python3";
    if (fork() == 0) {
      dup2(requests[0], 0);
      dup2(answers[1], 1);
      setenv("PYTHONPATH", FAKE_CUDA_PYTHONPATH, 1);
      setenv("OPENBLAS_NUM_THREADS", "1", 1);
      execlp(python.c_str(), python.c_str(), FAKE_CUDA_RUNNER, nullptr);
      _exit(127);
    }
    close(requests[0]);
    close(answers[1]);
    to_ = fdopen(requests[1], "w");
    from_ = fdopen(answers[0], "r");
    return ask("{\"memory\": \"" + fake_cuda::memory_path() +
               "\", \"size\": " + std::to_string(fake_cuda::memory_size()) + "}")
        .empty();
  }
  FILE *to_ = nullptr, *from_ = nullptr;
};

struct State {
  std::recursive_mutex mutex;
  int file = -1;
  std::byte* memory = nullptr;
  size_t next = kAlignment;  // null is no address
  std::map<CudaAddress, size_t> blocks;
  std::map<size_t, std::vector<CudaAddress>> freed;  // by size
  size_t in_use = 0, limit = SIZE_MAX;
  CudaContext current = nullptr;
  std::vector<fake_cuda::Launch> launches;
  std::vector<std::string> calls, modules;
  std::map<std::string, Failure> failures;
  std::map<std::string, size_t> argument_counts;
  std::map<std::string, Function> functions;
  std::vector<std::unique_ptr<Function>> interpreted;
  Interpreter interpreter;
  std::function<void(const fake_cuda::Launch&)> body;
  uintptr_t next_handle = 0x1000;
  float clock = 0;  // milliseconds
  std::map<CudaEventHandle, float> events;
};

State& state() {
  static auto* const one = [] {
    auto* s = new State();
    s->file = memfd_create("fake-cuda", MFD_CLOEXEC);
    if (ftruncate(s->file, static_cast<off_t>(kMemory)) != 0) std::abort();
    void* memory = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->file, 0);
    if (memory == MAP_FAILED) std::abort();
    if (const char* bytes = std::getenv("FAKE_CUDA_MEMORY")) s->limit = std::strtoull(bytes, nullptr, 10);
    s->memory = static_cast<std::byte*>(memory);
    return s;
  }();
  return *one;
}

/// What a call of `function` returns where a test asked for a failure, otherwise success.
int32_t begin(const char* function, bool recorded = false) {
  State& s = state();
  if (recorded) s.calls.emplace_back(function);
  const auto failure = s.failures.find(function);
  if (failure == s.failures.end() || failure->second.after-- > 0) return kCudaSuccess;
  const int32_t result = failure->second.result;
  s.failures.erase(failure);
  return result;
}

template <class T>
T new_handle() {
  return reinterpret_cast<T>(state().next_handle += 0x10);
}

void* pointer(CudaAddress address) {
  return reinterpret_cast<void*>(address);
}

int32_t attribute(int32_t which) {
  if (which == kCudaGridX) return INT32_MAX;
  if (which == kCudaGridX + 1 || which == kCudaGridX + 2) {  // few, where a test wants to meet the limit
    const char* blocks = std::getenv("FAKE_CUDA_GRID");
    return blocks != nullptr ? std::atoi(blocks) : 65535;
  }
  switch (which) {
    case kCudaMultiprocessors:
      return 132;
    case kCudaThreadsEach:
      return 2048;
    case kCudaL2Bytes:
      return 60 << 20;
    case kCudaCapabilityMajor:
      return 9;
    case kCudaCapabilityMinor:
      return 0;
    case kCudaSharedOptIn:
      return 227 << 10;
    default:
      return 0;
  }
}

}  // namespace

namespace {

int32_t interpret(const Function& function, const fake_cuda::Launch& launch) {
  State& s = state();
  std::string arguments;
  for (const uint64_t value : launch.arguments) {
    auto block = s.blocks.upper_bound(value);
    size_t offset = 0, bytes = 0;
    if (block != s.blocks.begin() && value < (--block)->first + block->second) {
      offset = fake_cuda::memory_offset(value);
      bytes = block->first + block->second - value;
    }
    arguments += (arguments.empty() ? "[" : ", [") + std::to_string(value) + ", " + std::to_string(offset) +
                 ", " + std::to_string(bytes) + "]";
  }
  const std::string error =
      s.interpreter.ask("{\"code\": " + function.code + ", \"arguments\": [" + arguments + "], \"grid\": [" +
                        std::to_string(launch.grid[0]) + ", " + std::to_string(launch.grid[1]) + ", " +
                        std::to_string(launch.grid[2]) + "]}");
  if (error.empty()) return kCudaSuccess;
  std::fprintf(stderr, "kernel %s in the interpreter: %s\n", function.name.c_str(), error.c_str());
  return kIllegalInstruction;
}

}  // namespace

#define LOCKED(name, recorded)               \
  const std::lock_guard lock(state().mutex); \
  if (const int32_t r = begin(#name, recorded); r != kCudaSuccess) return r
#define EXPORTED extern "C" __attribute__((visibility("default"))) int32_t

EXPORTED cuInit(uint32_t) {
  LOCKED(cuInit, false);
  return kCudaSuccess;
}
EXPORTED cuDriverGetVersion(int32_t* version) {
  *version = 13000;
  return kCudaSuccess;
}
EXPORTED cuGetErrorString(CudaResult error, const char** text) {
  *text = error == kCudaOutOfMemory ? "out of memory" : "a failure that a test asked for";
  return kCudaSuccess;
}
EXPORTED cuDeviceGetCount(int32_t* count) {
  *count = 2;
  return kCudaSuccess;
}
EXPORTED cuDeviceGet(CudaDeviceId* device, int32_t ordinal) {
  *device = ordinal;
  return kCudaSuccess;
}
EXPORTED cuDeviceGetName(char* name, int32_t length, CudaDeviceId) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(length));
  return kCudaSuccess;
}
EXPORTED cuDeviceGetAttribute(int32_t* value, int32_t which, CudaDeviceId) {
  *value = attribute(which);
  return kCudaSuccess;
}
EXPORTED cuDeviceTotalMem_v2(size_t* bytes, CudaDeviceId) {
  *bytes = kMemory;
  return kCudaSuccess;
}
EXPORTED cuDevicePrimaryCtxRetain(CudaContext* context, CudaDeviceId device) {
  LOCKED(cuDevicePrimaryCtxRetain, false);
  *context = reinterpret_cast<CudaContext>(uintptr_t{0x100} + static_cast<uintptr_t>(device));
  return kCudaSuccess;
}
EXPORTED cuCtxGetCurrent(CudaContext* context) {
  *context = state().current;
  return kCudaSuccess;
}
EXPORTED cuCtxSetCurrent(CudaContext context) {
  state().current = context;
  return kCudaSuccess;
}
EXPORTED cuCtxSynchronize() {
  LOCKED(cuCtxSynchronize, true);
  return kCudaSuccess;
}
EXPORTED cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = std::min(state().limit, kMemory);
  *free = *total - state().in_use;
  return kCudaSuccess;
}
EXPORTED cuMemAlloc_v2(CudaAddress* address, size_t bytes) {
  LOCKED(cuMemAlloc_v2, false);
  State& s = state();
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes == 0) return kInvalidValue;
  if (s.in_use + size > s.limit) return kCudaOutOfMemory;
  if (auto known = s.freed.find(size); known != s.freed.end() && !known->second.empty()) {
    *address = known->second.back();
    known->second.pop_back();
  } else {
    if (s.next + size > kMemory) return kCudaOutOfMemory;
    *address = reinterpret_cast<CudaAddress>(s.memory + s.next);
    s.next += size;
  }
  std::memset(pointer(*address), 0xa5, size);  // not initialised
  s.blocks[*address] = size;
  s.in_use += size;
  return kCudaSuccess;
}
EXPORTED cuMemFree_v2(CudaAddress address) {
  LOCKED(cuMemFree_v2, false);
  State& s = state();
  const auto block = s.blocks.find(address);
  if (block == s.blocks.end()) return kInvalidValue;
  s.in_use -= block->second;
  s.freed[block->second].push_back(address);
  s.blocks.erase(block);
  return kCudaSuccess;
}
EXPORTED cuMemcpyHtoDAsync_v2(CudaAddress to, const void* from, size_t bytes, CudaStreamHandle) {
  LOCKED(cuMemcpyHtoDAsync_v2, true);
  std::memcpy(pointer(to), from, bytes);
  return kCudaSuccess;
}
EXPORTED cuMemcpyDtoHAsync_v2(void* to, CudaAddress from, size_t bytes, CudaStreamHandle) {
  LOCKED(cuMemcpyDtoHAsync_v2, true);
  std::memcpy(to, pointer(from), bytes);
  return kCudaSuccess;
}
EXPORTED cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t bytes, CudaStreamHandle) {
  LOCKED(cuMemcpyDtoDAsync_v2, true);
  std::memmove(pointer(to), pointer(from), bytes);
  return kCudaSuccess;
}
EXPORTED cuMemcpyPeerAsync(CudaAddress to, CudaContext, CudaAddress from, CudaContext, size_t bytes,
                           CudaStreamHandle) {
  LOCKED(cuMemcpyPeerAsync, true);
  std::memmove(pointer(to), pointer(from), bytes);
  return kCudaSuccess;
}
EXPORTED cuMemsetD8Async(CudaAddress to, uint8_t value, size_t bytes, CudaStreamHandle) {
  LOCKED(cuMemsetD8Async, true);
  std::memset(pointer(to), value, bytes);
  return kCudaSuccess;
}
EXPORTED cuMemsetD16Async(CudaAddress to, uint16_t value, size_t count, CudaStreamHandle) {
  LOCKED(cuMemsetD16Async, true);
  std::fill_n(static_cast<uint16_t*>(pointer(to)), count, value);
  return kCudaSuccess;
}
EXPORTED cuMemsetD32Async(CudaAddress to, uint32_t value, size_t count, CudaStreamHandle) {
  LOCKED(cuMemsetD32Async, true);
  std::fill_n(static_cast<uint32_t*>(pointer(to)), count, value);
  return kCudaSuccess;
}
EXPORTED cuStreamCreate(CudaStreamHandle* stream, uint32_t) {
  LOCKED(cuStreamCreate, false);
  *stream = new_handle<CudaStreamHandle>();
  return kCudaSuccess;
}
EXPORTED cuStreamSynchronize(CudaStreamHandle) {
  LOCKED(cuStreamSynchronize, true);
  return kCudaSuccess;
}
EXPORTED cuStreamQuery(CudaStreamHandle) {
  LOCKED(cuStreamQuery, false);
  return kCudaSuccess;
}
EXPORTED cuStreamWaitEvent(CudaStreamHandle, CudaEventHandle, uint32_t) {
  LOCKED(cuStreamWaitEvent, true);
  return kCudaSuccess;
}
EXPORTED cuEventCreate(CudaEventHandle* event, uint32_t) {
  LOCKED(cuEventCreate, false);
  *event = new_handle<CudaEventHandle>();
  return kCudaSuccess;
}
EXPORTED cuEventDestroy_v2(CudaEventHandle) {
  return kCudaSuccess;
}
EXPORTED cuEventRecord(CudaEventHandle event, CudaStreamHandle) {
  LOCKED(cuEventRecord, true);
  state().events[event] = state().clock;
  return kCudaSuccess;
}
EXPORTED cuEventQuery(CudaEventHandle) {
  LOCKED(cuEventQuery, false);
  return kCudaSuccess;
}
EXPORTED cuEventSynchronize(CudaEventHandle) {
  LOCKED(cuEventSynchronize, true);
  return kCudaSuccess;
}
EXPORTED cuEventElapsedTime(float* milliseconds, CudaEventHandle start, CudaEventHandle end) {
  LOCKED(cuEventElapsedTime, false);
  *milliseconds = state().events[end] - state().events[start];
  if (*milliseconds == 0) *milliseconds = 0.5f;
  return kCudaSuccess;
}
EXPORTED cuModuleLoadData(CudaModule* module, const void* image) {
  LOCKED(cuModuleLoadData, false);
  const char* code = static_cast<const char*>(image);
  // The head of an ELF file, then text.
  if (std::memcmp(code,
                  "\x7f"
                  "ELF",
                  4) == 0) {
    code += 64;
    // The text of the stand-in for the compiler begins with a number; this is real machine code.
    if (*code < '0' || *code > '9') return 200;  // CUDA_ERROR_INVALID_IMAGE
  }
  state().modules.emplace_back(code);
  *module = reinterpret_cast<CudaModule>(state().modules.size());
  return kCudaSuccess;
}
EXPORTED cuModuleUnload(CudaModule) {
  return kCudaSuccess;
}
EXPORTED cuModuleGetFunction(CudaFunction* function, CudaModule module, const char* name) {
  LOCKED(cuModuleGetFunction, false);
  if (*name == '\0') return kNotFound;
  const std::string& code = state().modules[reinterpret_cast<size_t>(module) - 1];
  if (const size_t space = code.find(" {"); space != std::string::npos) {
    auto& made = state().interpreted.emplace_back(std::make_unique<Function>());
    *made = {name, code.substr(space + 1), std::stoul(code)};
    *function = reinterpret_cast<CudaFunction>(made.get());
    return kCudaSuccess;
  }
  Function& known = state().functions[name];
  known.name = name;
  *function = reinterpret_cast<CudaFunction>(&known);
  return kCudaSuccess;
}
EXPORTED cuFuncSetAttribute(CudaFunction function, int32_t which, int32_t value) {
  LOCKED(cuFuncSetAttribute, false);
  if (which == kCudaFunctionSharedBytes) reinterpret_cast<Function*>(function)->shared_limit = value;
  return kCudaSuccess;
}
EXPORTED cuLaunchKernel(CudaFunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                        uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
                        CudaStreamHandle stream, void** arguments, void**) {
  LOCKED(cuLaunchKernel, true);
  State& s = state();
  const auto& known = *reinterpret_cast<const Function*>(function);
  fake_cuda::Launch launch{
      known.name, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, {}};
  if (shared_bytes > 48u << 10 && static_cast<int32_t>(shared_bytes) > known.shared_limit)
    return kInvalidValue;
  const auto given = s.argument_counts.find(known.name);
  const size_t count = given != s.argument_counts.end() ? given->second : known.arguments;
  for (size_t k = 0; k < count; ++k) {
    std::memcpy(&launch.arguments.emplace_back(), arguments[k], 8);
    launch.places.push_back(static_cast<uint64_t*>(arguments[k]));
  }
  s.launches.push_back(launch);
  if (s.body) s.body(launch);
  if (!known.code.empty()) return interpret(known, launch);
  return kCudaSuccess;
}

namespace fake_cuda {

void use() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&use), &info) == 0) return;
  setenv("STAX_CUDA_DRIVER", info.dli_fname, 1);
  setenv("STAX_CUBLASLT", info.dli_fname, 1);
}
void reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.launches.clear();
  s.calls.clear();
  s.failures.clear();
  s.argument_counts.clear();
  s.body = {};
  s.limit = SIZE_MAX;
}
std::vector<Launch> launches() {
  return state().launches;
}
void argument_count(const std::string& kernel, size_t count) {
  state().argument_counts[kernel] = count;
}
void on_launch(std::function<void(const Launch&)> body) {
  state().body = std::move(body);
}
std::vector<std::string> calls() {
  return state().calls;
}
void fail(const std::string& function, int32_t result, int32_t after) {
  state().failures[function] = {result, after};
}
void advance(float milliseconds) {
  state().clock += milliseconds;
}
void memory_limit(size_t bytes) {
  state().limit = bytes;
}
size_t memory_in_use() {
  return state().in_use;
}
int32_t shared_limit(const std::string& kernel) {
  const auto known = state().functions.find(kernel);
  return known == state().functions.end() ? 0 : known->second.shared_limit;
}
std::vector<std::string> modules() {
  return state().modules;
}
std::string memory_path() {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(state().file);
}
size_t memory_size() {
  return kMemory;
}
size_t memory_offset(uint64_t address) {
  return static_cast<size_t>(reinterpret_cast<std::byte*>(address) - state().memory);
}

}  // namespace fake_cuda
