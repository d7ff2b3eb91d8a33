// NVIDIA's library of matrix products, cuBLASLt, opened at run time: building Stax needs no CUDA. What is
// declared here is the part of its C interface that Stax uses, which is the same in versions 11 to 13.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "device/cuda_driver.h"

namespace stax::kernels {

// The library's types. Handles are opaque.
using CublasLtHandle = struct CublasLtHandleStruct*;
using CublasLtOperation = struct CublasLtOperationStruct*;
using CublasLtLayout = struct CublasLtLayoutStruct*;
using CublasLtPreference = struct CublasLtPreferenceStruct*;

// Its numbers, as far as Stax uses them.
enum class CublasStatus : int32_t {
  success = 0,
  allocation_failed = 3,
  invalid_value = 7,
  execution_failed = 13,
  not_supported = 15
};
/// Of the elements of a matrix, and of scale factors.
enum class CublasType : int32_t { float32 = 0, float64 = 1, float16 = 2, bfloat16 = 14 };
/// What products are added up in; tf32 rounds the operands to 10 bits of mantissa.
enum class CublasCompute : int32_t { float32 = 68, float64 = 70, tf32 = 77 };
/// A matrix is read as it lies, column by column, or transposed.
enum class CublasTranspose : int32_t { as_it_lies = 0, transposed = 1 };
/// What is computed of a product: sums of bits.
enum class CublasEpilogue : int32_t {
  none = 1,
  relu = 2,
  bias = 4,
  relu_bias = 6,
  gelu = 32,
  gelu_bias = 36
};
/// How parts of a sum that was split are added up: bits.
enum class CublasReduction : uint32_t { none = 0, in_compute_type = 2 };

/// An algorithm with its settings: bytes that mean the same to every process with the same library.
struct CublasLtAlgorithm {
  uint64_t data[8] = {};
  friend bool operator==(const CublasLtAlgorithm&, const CublasLtAlgorithm&) = default;
};

/// An answer of the library's heuristic.
struct CublasLtAnswer {
  CublasLtAlgorithm algorithm;
  size_t workspace_bytes = 0;
  CublasStatus status = CublasStatus::success;
  float waves = 0;
  int32_t reserved[4] = {};
};

/// The functions that Stax calls, by the names that the library exports, with their parameters.
#define STAX_CUBLAS_LT_FUNCTIONS(X)                                                                      \
  X(cublasLtCreate, (CublasLtHandle * handle))                                                           \
  X(cublasLtMatmulDescCreate,                                                                            \
    (CublasLtOperation * operation, CublasCompute compute_type, CublasType scale_type))                  \
  X(cublasLtMatmulDescDestroy, (CublasLtOperation operation))                                            \
  X(cublasLtMatmulDescSetAttribute,                                                                      \
    (CublasLtOperation operation, int32_t attribute, const void* value, size_t bytes))                   \
  X(cublasLtMatrixLayoutCreate,                                                                          \
    (CublasLtLayout * layout, CublasType type, uint64_t rows, uint64_t columns, int64_t leading))        \
  X(cublasLtMatrixLayoutDestroy, (CublasLtLayout layout))                                                \
  X(cublasLtMatrixLayoutSetAttribute,                                                                    \
    (CublasLtLayout layout, int32_t attribute, const void* value, size_t bytes))                         \
  X(cublasLtMatmulPreferenceCreate, (CublasLtPreference * preference))                                   \
  X(cublasLtMatmulPreferenceDestroy, (CublasLtPreference preference))                                    \
  X(cublasLtMatmulPreferenceSetAttribute,                                                                \
    (CublasLtPreference preference, int32_t attribute, const void* value, size_t bytes))                 \
  X(cublasLtMatmulAlgoGetHeuristic,                                                                      \
    (CublasLtHandle handle, CublasLtOperation operation, CublasLtLayout a, CublasLtLayout b,             \
     CublasLtLayout c, CublasLtLayout d, CublasLtPreference preference, int32_t wanted,                  \
     CublasLtAnswer * answers, int32_t * count))                                                         \
  X(cublasLtMatmulAlgoCheck,                                                                             \
    (CublasLtHandle handle, CublasLtOperation operation, CublasLtLayout a, CublasLtLayout b,             \
     CublasLtLayout c, CublasLtLayout d, const CublasLtAlgorithm* algorithm, CublasLtAnswer* answer))    \
  X(cublasLtMatmulAlgoConfigGetAttribute,                                                                \
    (const CublasLtAlgorithm* algorithm, int32_t attribute, void* value, size_t bytes, size_t* written)) \
  X(cublasLtMatmul,                                                                                      \
    (CublasLtHandle handle, CublasLtOperation operation, const void* alpha, const void* a,               \
     CublasLtLayout a_layout, const void* b, CublasLtLayout b_layout, const void* beta, const void* c,   \
     CublasLtLayout c_layout, void* d, CublasLtLayout d_layout, const CublasLtAlgorithm* algorithm,      \
     void* workspace, size_t workspace_bytes, ::stax::device::CudaStreamHandle stream))

/// One pointer for each function of the table, and two that do not give a status.
struct CublasLt {
#define STAX_CUBLAS_LT_MEMBER(name, parameters) CublasStatus(*name) parameters = nullptr;
  STAX_CUBLAS_LT_FUNCTIONS(STAX_CUBLAS_LT_MEMBER)
#undef STAX_CUBLAS_LT_MEMBER
  size_t (*cublasLtGetVersion)() = nullptr;
  const char* (*cublasLtGetStatusString)(CublasStatus) = nullptr;
};

/// The number of an attribute of a `Handle`, whose value is a T.
template <class Handle, class T>
struct CublasAttribute {
  int32_t number;
};
inline constexpr CublasAttribute<CublasLtOperation, CublasTranspose> kTransposeA{3}, kTransposeB{4};
inline constexpr CublasAttribute<CublasLtOperation, CublasEpilogue> kEpilogue{7};
inline constexpr CublasAttribute<CublasLtOperation, const void*> kBiasPointer{8};
inline constexpr CublasAttribute<CublasLtOperation, CublasType> kBiasType{26};
inline constexpr CublasAttribute<CublasLtLayout, int32_t> kBatchCount{5};
inline constexpr CublasAttribute<CublasLtLayout, int64_t> kBatchStride{6};  // in elements
inline constexpr CublasAttribute<CublasLtPreference, uint64_t> kMostWorkspaceBytes{1};
inline constexpr CublasAttribute<CublasLtPreference, CublasReduction> kReductions{3};
inline constexpr CublasAttribute<CublasLtPreference, uint32_t> kAlignmentA{5}, kAlignmentB{6}, kAlignmentC{7},
    kAlignmentD{8};  // in bytes
inline constexpr CublasAttribute<CublasLtAlgorithm, int32_t> kAlgorithmId{0}, kTile{1}, kSplits{2},
    kStages{6};

/// The library as it was found.
struct CublasLtLibrary {
  CublasLt functions;
  std::string path;     ///< as the loader names it
  int64_t version = 0;  ///< 130100 for 13.1
  std::string problem;  ///< why it cannot be used, and what to do; empty where it can
};

/// The library, opened at the first call: STAX_CUBLASLT (a path, or "none" for no library), else the loader's
/// own search, CUDA_HOME, /usr/local/cuda, and the packages of the Python that Stax uses.
const CublasLtLibrary& cublas_lt_library();
/// Its functions. RuntimeError with its `problem` where it cannot be used.
const CublasLt& cublas_lt();
/// "13.1.0".
std::string cublas_lt_version_text(int64_t version);

/// The library's handle for a device, made at the first call and kept. Any number of threads may use it.
CublasLtHandle cublas_lt_handle(int32_t device);

/// Why products on a device cannot be left to the library: its own problem, or that of making the handle.
/// Empty where they can.
std::string cublas_lt_problem(int32_t device);

/// RuntimeError with the call's name and the library's words unless `status` is success.
void check_cublas_lt(CublasStatus status, const char* call);

// What the library is given of an attribute: use set_attribute().
void set_attribute_bytes(CublasLtOperation operation, int32_t attribute, const void* value, size_t bytes);
void set_attribute_bytes(CublasLtLayout layout, int32_t attribute, const void* value, size_t bytes);
void set_attribute_bytes(CublasLtPreference preference, int32_t attribute, const void* value, size_t bytes);
/// Sets an attribute; RuntimeError where the library refuses.
template <class Handle, class T>
void set_attribute(Handle handle, CublasAttribute<Handle, T> attribute, std::type_identity_t<T> value) {
  set_attribute_bytes(handle, attribute.number, &value, sizeof value);
}
/// A setting of an algorithm; nothing where it has none.
std::optional<int32_t> setting_of(const CublasLtAlgorithm& algorithm,
                                  CublasAttribute<CublasLtAlgorithm, int32_t> attribute);

/// Files of the library in the packages that the Python at `python` has: newest versions first. Looks at
/// folders only; no Python is started.
std::vector<std::string> cublas_lt_of_python(const std::string& python);

}  // namespace stax::kernels

/// Calls a function of the library; RuntimeError where it fails.
#define STAX_CUBLAS_LT(function, ...) \
  ::stax::kernels::check_cublas_lt(::stax::kernels::cublas_lt().function(__VA_ARGS__), #function)
