#include "kernels/library_product.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "device/cuda_allocator.h"
#include "support/check.h"

namespace stax::kernels {

/// Handles of the library, destroyed with their owner.
template <class Handle, CublasStatus (*CublasLt::*destroy)(Handle)>
class OwnedByLibrary {
 public:
  OwnedByLibrary() = default;
  ~OwnedByLibrary() {
    if (handle != nullptr) (cublas_lt().*destroy)(handle);
  }
  OwnedByLibrary(const OwnedByLibrary&) = delete;
  OwnedByLibrary& operator=(const OwnedByLibrary&) = delete;
  Handle handle = nullptr;
};
using LibraryLayout = OwnedByLibrary<CublasLtLayout, &CublasLt::cublasLtMatrixLayoutDestroy>;
using LibraryOperation = OwnedByLibrary<CublasLtOperation, &CublasLt::cublasLtMatmulDescDestroy>;
using LibraryPreference = OwnedByLibrary<CublasLtPreference, &CublasLt::cublasLtMatmulPreferenceDestroy>;

namespace {

/// How the library names a dtype, and what it computes in.
struct LibraryType {
  DType dtype;
  int32_t element, compute, scale;
};
constexpr LibraryType kTypes[] = {
    {DType::float32, kCublasFloat32, kCublasCompute32, kCublasFloat32},
    {DType::float64, kCublasFloat64, kCublasCompute64, kCublasFloat64},
    {DType::float16, kCublasFloat16, kCublasCompute32, kCublasFloat32},
    {DType::bfloat16, kCublasBFloat16, kCublasCompute32, kCublasFloat32},
};

const LibraryType* find_type(DType dtype) {
  const auto at = std::ranges::find(kTypes, dtype, &LibraryType::dtype);
  return at == std::end(kTypes) ? nullptr : at;
}

const LibraryType& type_of(DType dtype) {
  const LibraryType* type = find_type(dtype);
  STAX_ASSERT(type != nullptr, "[product] cuBLASLt has no products of {}", name(dtype));
  return *type;
}

// No algorithm gains from more: it is the widest access of a thread, and what tensor memory copies need.
constexpr uintptr_t kMostAlignment = 16;

int32_t alignment_of(const void* address) {
  const auto value = reinterpret_cast<uintptr_t>(address);
  return static_cast<int32_t>(std::min<uintptr_t>(value & (~value + 1), kMostAlignment));
}

/// The last two dimensions of a tensor, and the stride of the one before.
struct Matrix {
  int64_t rows, columns, row_stride, column_stride, batch_stride;
  explicit Matrix(const TensorView& t) {
    const size_t lead = t.sizes.size() - 2;
    rows = t.sizes[lead], columns = t.sizes[lead + 1];
    row_stride = t.strides[lead], column_stride = t.strides[lead + 1];
    batch_stride = lead == 0 ? 0 : t.strides[0];
  }
};

/// `m` with its columns one after another. Strides of dimensions of one element say nothing.
std::optional<LibraryMatrix> by_columns(const Matrix& m) {
  if (m.rows != 1 && m.row_stride != 1) return std::nullopt;
  if (m.columns != 1 && m.column_stride < m.rows) return std::nullopt;
  return LibraryMatrix{m.rows, m.columns, m.columns == 1 ? m.rows : m.column_stride, m.batch_stride};
}

/// Its transpose with columns one after another: the rows of `m`.
std::optional<LibraryMatrix> by_rows(Matrix m) {
  std::swap(m.rows, m.columns);
  std::swap(m.row_stride, m.column_stride);
  return by_columns(m);
}

/// The matrix of `t`, or with `swapped` its transpose, as a factor.
std::optional<LibraryMatrix> factor(const TensorView& t, bool swapped) {
  const Matrix m(t);
  std::optional<LibraryMatrix> out = swapped ? by_rows(m) : by_columns(m);
  if (!out) {
    out = swapped ? by_columns(m) : by_rows(m);
    if (out) out->transposed = true;
  }
  if (out) out->alignment = alignment_of(t.data);
  return out;
}

template <class T>
void set_operation(const LibraryOperation& operation, int32_t attribute, T value) {
  STAX_CUBLAS_LT(cublasLtMatmulDescSetAttribute, operation.handle, attribute, &value, sizeof value);
}

template <class T>
void set_preference(const LibraryPreference& preference, int32_t attribute, T value) {
  STAX_CUBLAS_LT(cublasLtMatmulPreferenceSetAttribute, preference.handle, attribute, &value, sizeof value);
}

void make_layout(LibraryLayout& layout, const LibraryMatrix& m, DType dtype, int64_t batch) {
  STAX_CUBLAS_LT(cublasLtMatrixLayoutCreate, &layout.handle, type_of(dtype).element,
                 static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.columns), m.leading);
  if (batch == 1) return;
  const auto count = static_cast<int32_t>(batch);
  STAX_CUBLAS_LT(cublasLtMatrixLayoutSetAttribute, layout.handle, kCublasBatchCount, &count, sizeof count);
  STAX_CUBLAS_LT(cublasLtMatrixLayoutSetAttribute, layout.handle, kCublasBatchStride, &m.batch_stride,
                 sizeof m.batch_stride);
}

int32_t epilogue_of(const ProductProblem& problem) {
  constexpr int32_t kActivations[] = {0, kCublasEpilogueRelu, kCublasEpilogueGelu};
  const int32_t parts =
      kActivations[static_cast<size_t>(problem.activation)] + (problem.bias ? kCublasEpilogueBias : 0);
  return parts == 0 ? kCublasEpilogueNone : parts;
}

std::string matrix_text(const LibraryMatrix& m) {
  return fmt::format("{}x{}{} ld {} batch {} align {}", m.rows, m.columns, m.transposed ? "^T" : "",
                     m.leading, m.batch_stride, m.alignment);
}

/// Memory of a device's allocator for the length of a call.
class Workspace {
 public:
  Workspace(int32_t device, size_t bytes)
      : allocator_(device::CudaAllocator::of(device)), bytes_(static_cast<int64_t>(bytes)) {
    if (bytes > 0) data_ = allocator_.allocate(bytes_);
  }
  ~Workspace() {
    if (data_ != nullptr) allocator_.deallocate(data_, bytes_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* data() const { return data_; }

 private:
  device::CudaAllocator& allocator_;
  int64_t bytes_;
  void* data_ = nullptr;
};

}  // namespace

bool library_multiplies(DType dtype) {
  return find_type(dtype) != nullptr;
}

std::string ProductProblem::str() const {
  constexpr std::string_view kActivations[] = {"", " relu", " gelu"};
  return fmt::format("{} {}: {} of {} [{}] * [{}] = [{}]{}{}", name(dtype), name(result_dtype), batch,
                     tf32 ? "tf32" : "full", matrix_text(first), matrix_text(second), matrix_text(result),
                     bias ? fmt::format(" bias {} align {}", name(bias_dtype), bias_alignment) : "",
                     kActivations[static_cast<size_t>(activation)]);
}

std::optional<ProductProblem> problem_of(const TensorView& a, const TensorView& b, const TensorView& result,
                                         const TensorView* bias, const ProductOptions& options) {
  ProductProblem p;
  p.dtype = a.dtype;
  p.result_dtype = result.dtype;
  p.tf32 = options.tf32 && a.dtype == DType::float32;
  p.batch = result.dim() == 3 ? result.sizes[0] : 1;
  p.activation = options.activation;
  const Matrix r(result);
  std::optional<LibraryMatrix> to = by_rows(r);
  p.swapped = to.has_value();
  if (!to) to = by_columns(r);
  const auto first = factor(p.swapped ? b : a, p.swapped), second = factor(p.swapped ? a : b, p.swapped);
  // A bias that goes along the library's columns is none of its epilogues.
  if (!to || !first || !second || (bias != nullptr && !p.swapped)) return std::nullopt;
  p.first = *first, p.second = *second, p.result = *to;
  p.result.alignment = alignment_of(result.data);
  if (p.batch == 1) p.first.batch_stride = p.second.batch_stride = p.result.batch_stride = 0;
  if (bias != nullptr) {
    p.bias = true;
    p.bias_dtype = bias->dtype;
    p.bias_alignment = alignment_of(bias->data);
  }
  return p;
}

struct LibraryProduct::State {
  LibraryOperation operation;
  LibraryLayout first, second, result;
  LibraryPreference preference;
  std::mutex bias;  // its address is a part of `operation`
};

LibraryProduct::LibraryProduct(const ProductProblem& problem, int32_t device)
    : problem_(problem), device_(device), state_(std::make_unique<State>()) {
  const LibraryType& type = type_of(problem.dtype);
  State& s = *state_;
  STAX_CUBLAS_LT(cublasLtMatmulDescCreate, &s.operation.handle,
                 problem.tf32 ? kCublasComputeTF32 : type.compute, type.scale);
  const auto transposed = [](const LibraryMatrix& m) {
    return m.transposed ? kCublasTransposed : kCublasAsItLies;
  };
  set_operation(s.operation, kCublasTransposeA, transposed(problem.first));
  set_operation(s.operation, kCublasTransposeB, transposed(problem.second));
  set_operation(s.operation, kCublasEpilogue, epilogue_of(problem));
  if (problem.bias) {
    set_operation(s.operation, kCublasBiasType, type_of(problem.bias_dtype).element);
    // The library reads the alignment off the address.
    set_operation(s.operation, kCublasBiasPointer, static_cast<uint64_t>(problem.bias_alignment));
  }
  make_layout(s.first, problem.first, problem.dtype, problem.batch);
  make_layout(s.second, problem.second, problem.dtype, problem.batch);
  make_layout(s.result, problem.result, problem.result_dtype, problem.batch);
  STAX_CUBLAS_LT(cublasLtMatmulPreferenceCreate, &s.preference.handle);
  set_preference(s.preference, kCublasWorkspaceBytes, kMostWorkspace);
  set_preference(s.preference, kCublasAlignmentA, static_cast<uint32_t>(problem.first.alignment));
  set_preference(s.preference, kCublasAlignmentB, static_cast<uint32_t>(problem.second.alignment));
  set_preference(s.preference, kCublasAlignmentC, static_cast<uint32_t>(problem.result.alignment));
  set_preference(s.preference, kCublasAlignmentD, static_cast<uint32_t>(problem.result.alignment));
  // Parts of a sum in k are added up as they were computed, not in a half type.
  if (is_half(problem.result_dtype)) set_preference(s.preference, kCublasReductions, kCublasInComputeType);
}

LibraryProduct::~LibraryProduct() = default;

std::vector<CublasLtAnswer> LibraryProduct::answers(int32_t most) const {
  const State& s = *state_;
  std::vector<CublasLtAnswer> out(static_cast<size_t>(most));
  int32_t count = 0;
  const CublasStatus status = cublas_lt().cublasLtMatmulAlgoGetHeuristic(
      cublas_lt_handle(device_), s.operation.handle, s.first.handle, s.second.handle, s.result.handle,
      s.result.handle, s.preference.handle, most, out.data(), &count);
  out.resize(status == kCublasSuccess ? static_cast<size_t>(count) : 0);
  std::erase_if(out, [](const CublasLtAnswer& a) {
    return a.status != kCublasSuccess || a.workspace_bytes > kMostWorkspace;
  });
  STAX_RUNTIME_CHECK(!out.empty(), "cuBLASLt {} has no algorithm for the product {} (status {})",
                     cublas_lt_version_text(cublas_lt_library().version), problem_.str(), status);
  return out;
}

std::optional<CublasLtAnswer> LibraryProduct::check(const CublasLtAlgorithm& algorithm) const {
  const State& s = *state_;
  CublasLtAnswer answer;
  const CublasStatus status = cublas_lt().cublasLtMatmulAlgoCheck(
      cublas_lt_handle(device_), s.operation.handle, s.first.handle, s.second.handle, s.result.handle,
      s.result.handle, &algorithm, &answer);
  if (status != kCublasSuccess || answer.status != kCublasSuccess || answer.workspace_bytes > kMostWorkspace)
    return std::nullopt;
  answer.algorithm = algorithm;
  return answer;
}

void LibraryProduct::multiply(const ProductOperands& o, const CublasLtAnswer& answer, void* workspace) const {
  constexpr float kOne = 1, kZero = 0;
  constexpr double kWideOne = 1, kWideZero = 0;
  const bool wide = problem_.dtype == DType::float64;
  const void* one = wide ? static_cast<const void*>(&kWideOne) : &kOne;
  const void* zero = wide ? static_cast<const void*>(&kWideZero) : &kZero;
  const State& s = *state_;
  const void *first = problem_.swapped ? o.b : o.a, *second = problem_.swapped ? o.a : o.b;
  STAX_CUBLAS_LT(cublasLtMatmul, cublas_lt_handle(device_), s.operation.handle, one, first, s.first.handle,
                 second, s.second.handle, zero, o.result, s.result.handle, o.result, s.result.handle,
                 &answer.algorithm, workspace, answer.workspace_bytes,
                 device::current_cuda_stream(device_).handle);
}

void LibraryProduct::run(const ProductOperands& operands, const CublasLtAnswer& answer) const {
  device::use_cuda_device(device_);
  const Workspace workspace(device_, answer.workspace_bytes);
  if (!problem_.bias) return multiply(operands, answer, workspace.data());
  const std::lock_guard lock(state_->bias);
  set_operation(state_->operation, kCublasBiasPointer, operands.bias);
  multiply(operands, answer, workspace.data());
}

}  // namespace stax::kernels
