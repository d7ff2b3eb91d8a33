// NVIDIA's library of matrix products, cuBLASLt, opened at run time: building Stax needs no CUDA. What is
// declared here is the part of its C interface that Stax uses, which is the same in versions 11 to 13.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda_driver.h"

namespace stax::kernels {

// The library's types. Handles are opaque.
using CublasStatus = int32_t;
using CublasLtHandle = struct CublasLtHandleStruct*;
using CublasLtOperation = struct CublasLtOperationStruct*;
using CublasLtLayout = struct CublasLtLayoutStruct*;
using CublasLtPreference = struct CublasLtPreferenceStruct*;

/// An algorithm with its settings: bytes that mean the same to every process with the same library.
struct CublasLtAlgorithm {
  uint64_t data[8] = {};
  friend bool operator==(const CublasLtAlgorithm&, const CublasLtAlgorithm&) = default;
};

/// An answer of the library's heuristic.
struct CublasLtAnswer {
  CublasLtAlgorithm algorithm;
  size_t workspace_bytes = 0;
  CublasStatus status = 0;
  float waves = 0;
  int32_t reserved[4] = {};
};

/// The functions that Stax calls, by the names that the library exports, with their parameters.
#define STAX_CUBLAS_LT_FUNCTIONS(X)                                                                      \
  X(cublasLtCreate, (CublasLtHandle * handle))                                                           \
  X(cublasLtMatmulDescCreate, (CublasLtOperation * operation, int32_t compute_type, int32_t scale_type)) \
  X(cublasLtMatmulDescDestroy, (CublasLtOperation operation))                                            \
  X(cublasLtMatmulDescSetAttribute,                                                                      \
    (CublasLtOperation operation, int32_t attribute, const void* value, size_t bytes))                   \
  X(cublasLtMatrixLayoutCreate,                                                                          \
    (CublasLtLayout * layout, int32_t type, uint64_t rows, uint64_t columns, int64_t leading))           \
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

inline constexpr CublasStatus kCublasSuccess = 0, kCublasAllocationFailed = 3, kCublasInvalidValue = 7,
                              kCublasNotSupported = 15;

// Types of elements, and of what is computed in.
inline constexpr int32_t kCublasFloat32 = 0, kCublasFloat64 = 1, kCublasFloat16 = 2, kCublasBFloat16 = 14;
inline constexpr int32_t kCublasCompute32 = 68, kCublasCompute64 = 70, kCublasComputeTF32 = 77;

// Attributes of an operation, and values of them. A matrix is read as it lies, column by column, or
// transposed.
inline constexpr int32_t kCublasTransposeA = 3, kCublasTransposeB = 4, kCublasEpilogue = 7,
                         kCublasBiasPointer = 8, kCublasBiasType = 26;
inline constexpr int32_t kCublasAsItLies = 0, kCublasTransposed = 1;
inline constexpr int32_t kCublasEpilogueNone = 1, kCublasEpilogueRelu = 2, kCublasEpilogueBias = 4,
                         kCublasEpilogueGelu = 32;  // several: their sum

// Attributes of a layout, of a preference, and of an algorithm.
inline constexpr int32_t kCublasBatchCount = 5, kCublasBatchStride = 6;
inline constexpr int32_t kCublasWorkspaceBytes = 1, kCublasReductions = 3, kCublasAlignmentA = 5,
                         kCublasAlignmentB = 6, kCublasAlignmentC = 7, kCublasAlignmentD = 8;
inline constexpr uint32_t kCublasInComputeType = 2;  // of kCublasReductions
inline constexpr int32_t kCublasAlgorithmId = 0, kCublasTile = 1, kCublasSplits = 2, kCublasStages = 6;

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

/// Files of the library in the packages that the Python at `python` has: newest versions first. Looks at
/// folders only; no Python is started.
std::vector<std::string> cublas_lt_of_python(const std::string& python);

}  // namespace stax::kernels

/// Calls a function of the library; RuntimeError where it fails.
#define STAX_CUBLAS_LT(function, ...) \
  ::stax::kernels::check_cublas_lt(::stax::kernels::cublas_lt().function(__VA_ARGS__), #function)
