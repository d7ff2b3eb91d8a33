#include "kernels/cublas_lt.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "device/cuda_device.h"
#include "support/check.h"
#include "support/python.h"
#include "support/symbols.h"

namespace stax::kernels {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// What the folders below `parent` are called that begin with `start`, the newest version first.
std::vector<fs::path> folders_in(const fs::path& parent, std::string_view start) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (entry.path().filename().string().starts_with(start) && entry.is_directory(error))
      out.push_back(entry.path());
  }
  const auto key = [](const fs::path& path) {
    const std::string name = path.filename().string();
    return std::pair(name.size(), name);  // python3.9 before python3.12
  };
  std::ranges::sort(out, [&](const auto& a, const auto& b) { return key(a) > key(b); });
  return out;
}

/// Where the library may lie, in the order of the search; names without a folder are left to the loader.
std::vector<std::string> places() {
  std::vector<std::string> out(std::begin(kNames), std::end(kNames));
  for (const std::string& root : {environment("CUDA_HOME"), std::string("/usr/local/cuda")}) {
    if (root.empty()) continue;
    for (const char* name : kNames) out.push_back(root + "/lib64/" + name);
  }
  try {
    for (std::string& file : cublas_lt_of_python(find_python())) out.push_back(std::move(file));
  } catch (const Error&) {
    // There is no Python to look into.
  }
  return out;
}

std::string path_of(void* library, const std::string& fallback) {
  const link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0')
    return map->l_name;
  return fallback;
}

std::string find_functions(void* library, CublasLtLibrary& out) {
  Symbols symbols(library);
#define STAX_CUBLAS_LT_FIND(name, parameters) \
  out.functions.name = reinterpret_cast<CublasStatus(*) parameters>(symbols.find(#name));
  STAX_CUBLAS_LT_FUNCTIONS(STAX_CUBLAS_LT_FIND)
#undef STAX_CUBLAS_LT_FIND
  out.functions.cublasLtGetVersion = reinterpret_cast<size_t (*)()>(symbols.find("cublasLtGetVersion"));
  out.functions.cublasLtGetStatusString =
      reinterpret_cast<const char* (*)(CublasStatus)>(symbols.find("cublasLtGetStatusString"));
  if (symbols.missing().empty()) return {};
  return fmt::format("{} lacks {}; use cuBLASLt 11.4 or later", out.path, symbols.missing());
}

constexpr const char* kWhatToDo =
    "pip install nvidia-cublas (nvidia-cublas-cu12 for drivers of CUDA 12) into the Python that Stax uses, "
    "or "
    "set STAX_CUBLASLT to the path of libcublasLt.so";

CublasLtLibrary open_library() {
  CublasLtLibrary out;
  const std::string named = environment("STAX_CUBLASLT");
  if (named == "none") {
    out.problem = "no cuBLASLt: STAX_CUBLASLT is 'none'";
    return out;
  }
  const std::vector<std::string> candidates = named.empty() ? places() : std::vector<std::string>{named};
  void* library = nullptr;
  std::string why;
  for (const std::string& place : candidates) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      out.path = path_of(library, place);
      break;
    }
    if (!named.empty()) why = dlerror();
  }
  if (library == nullptr) {
    out.problem = named.empty()
                      ? fmt::format(
                            "no cuBLASLt: {} was found neither by the loader, nor in CUDA_HOME, "
                            "/usr/local/cuda, or the Python's packages; {}",
                            kNames[0], kWhatToDo)
                      : fmt::format("no cuBLASLt: {}, which STAX_CUBLASLT names, cannot be opened ({}); {}",
                                    named, why, kWhatToDo);
    return out;
  }
  if (const std::string problem = find_functions(library, out); !problem.empty()) {
    out.problem = "no cuBLASLt: " + problem;
    return out;
  }
  out.version = static_cast<int64_t>(out.functions.cublasLtGetVersion());
  return out;
}

}  // namespace

std::vector<std::string> cublas_lt_of_python(const std::string& python) {
  std::vector<std::string> out;
  const fs::path prefix = fs::path(python).parent_path().parent_path();
  std::vector<fs::path> packages;
  for (const char* lib : {"lib", "lib64", "local/lib"}) {
    for (const fs::path& version : folders_in(prefix / lib, "python3")) {
      for (const char* kind : {"site-packages", "dist-packages"}) packages.push_back(version / kind);
    }
  }
  std::error_code error;
  for (const fs::path& package : packages) {
    for (const char* folder : {"nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib"}) {
      for (const char* name : kNames) {
        const fs::path file = package / folder / name;
        if (fs::exists(file, error)) out.push_back(file.string());
      }
    }
  }
  return out;
}

const CublasLtLibrary& cublas_lt_library() {
  static const CublasLtLibrary one = open_library();
  return one;
}

const CublasLt& cublas_lt() {
  const CublasLtLibrary& library = cublas_lt_library();
  if (!library.problem.empty()) [[unlikely]]
    throw_runtime_error(library.problem);
  return library.functions;
}

std::string cublas_lt_version_text(int64_t version) {
  // Until 11 in the form 111304, then 120805 and 130100: major * 10000 + minor * 100 + patch.
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

CublasLtHandle cublas_lt_handle(int32_t device) {
  static std::mutex mutex;
  static std::map<int32_t, CublasLtHandle> handles;
  const std::lock_guard lock(mutex);
  const auto [at, added] = handles.try_emplace(device, nullptr);
  if (at->second == nullptr) {
    device::use_cuda_device(device);
    STAX_CUBLAS_LT(cublasLtCreate, &at->second);
  }
  return at->second;
}

std::string cublas_lt_problem(int32_t device) {
  if (const std::string& problem = cublas_lt_library().problem; !problem.empty()) return problem;
  try {
    cublas_lt_handle(device);
    return {};
  } catch (const RuntimeError& error) {
    return fmt::format("no cuBLASLt: {} does not work with this driver: {}", cublas_lt_library().path,
                       error.what());
  }
}

void check_cublas_lt(CublasStatus status, const char* call) {
  if (status == CublasStatus::success) [[likely]]
    return;
  const char* text = cublas_lt().cublasLtGetStatusString(status);
  throw_runtime_error(fmt::format("{} fails: {} (error {})", call, text != nullptr ? text : "unknown",
                                  static_cast<int32_t>(status)));
}

void set_attribute_bytes(CublasLtOperation operation, int32_t attribute, const void* value, size_t bytes) {
  STAX_CUBLAS_LT(cublasLtMatmulDescSetAttribute, operation, attribute, value, bytes);
}

void set_attribute_bytes(CublasLtLayout layout, int32_t attribute, const void* value, size_t bytes) {
  STAX_CUBLAS_LT(cublasLtMatrixLayoutSetAttribute, layout, attribute, value, bytes);
}

void set_attribute_bytes(CublasLtPreference preference, int32_t attribute, const void* value, size_t bytes) {
  STAX_CUBLAS_LT(cublasLtMatmulPreferenceSetAttribute, preference, attribute, value, bytes);
}

std::optional<int32_t> setting_of(const CublasLtAlgorithm& algorithm,
                                  CublasAttribute<CublasLtAlgorithm, int32_t> attribute) {
  int32_t value = 0;
  size_t written = 0;
  const CublasStatus status = cublas_lt().cublasLtMatmulAlgoConfigGetAttribute(
      &algorithm, attribute.number, &value, sizeof value, &written);
  return status == CublasStatus::success ? std::optional(value) : std::nullopt;
}

}  // namespace stax::kernels
