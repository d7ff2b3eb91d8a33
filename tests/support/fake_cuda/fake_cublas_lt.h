// What stands for cuBLASLt, in the same library as the driver (fake_cuda.h): the functions of
// kernels/cublas_lt.h over host memory, by plain loops. Products need a workspace where a test asks for it.
// fake_cuda::use() makes Stax open it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cublas_lt.h"
#include "support/fake_cuda/fake_cuda.h"

namespace fake_cublas_lt {

/// One cublasLtMatmul, as it was given.
struct Product {
  uint64_t rows = 0, columns = 0, inner = 0;  // of the result, by columns, and what is summed up
  int32_t batch = 1;
  bool first_transposed = false, second_transposed = false;
  stax::kernels::CublasEpilogue epilogue = stax::kernels::CublasEpilogue::none;
  stax::kernels::CublasCompute compute_type = stax::kernels::CublasCompute::float32;
  int32_t algorithm = 0;  // position among the heuristic's answers
  uint64_t workspace_bytes = 0;
  void* stream = nullptr;
};

FAKE_CUDA_API std::vector<Product> products();
/// Forgets products and what was asked for below.
FAKE_CUDA_API void reset();
/// An answer of the heuristic: the workspace that it needs, and how long its product takes.
struct Answer {
  uint64_t workspace_bytes = 0;
  float milliseconds = 0.5f;
  bool relu_keeps_nan = false;  // as that of some of the library's algorithms, or 0 of NaN, as others make
};
/// Those of the heuristic; at first four without workspace.
FAKE_CUDA_API void answers(std::vector<Answer> answers);
/// How much longer a product with an epilogue takes.
FAKE_CUDA_API void with_epilogue(float milliseconds);
/// Alignments that the heuristic was last told, of a, b and d.
FAKE_CUDA_API std::vector<uint32_t> alignments();
/// How often the heuristic was asked.
FAKE_CUDA_API int32_t questions();
/// The next calls of that function fail with `status`.
FAKE_CUDA_API void fail(const std::string& function, stax::kernels::CublasStatus status, int32_t times = 1);

}  // namespace fake_cublas_lt
