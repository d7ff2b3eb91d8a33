#include "kernels/library_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "device/cuda_allocator.h"
#include "support/check.h"
#include "support/half.h"
#include "support/hash_mix.h"

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
  CublasType element;
  CublasCompute compute;
  CublasType scale;
};
constexpr LibraryType kTypes[] = {
    {DType::float32, CublasType::float32, CublasCompute::float32, CublasType::float32},
    {DType::float64, CublasType::float64, CublasCompute::float64, CublasType::float64},
    {DType::float16, CublasType::float16, CublasCompute::float32, CublasType::float32},
    {DType::bfloat16, CublasType::bfloat16, CublasCompute::float32, CublasType::float32},
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

void make_layout(LibraryLayout& layout, const LibraryMatrix& m, DType dtype, int64_t batch) {
  STAX_CUBLAS_LT(cublasLtMatrixLayoutCreate, &layout.handle, type_of(dtype).element,
                 static_cast<uint64_t>(m.rows), static_cast<uint64_t>(m.columns), m.leading);
  if (batch == 1) return;
  set_attribute(layout.handle, kBatchCount, static_cast<int32_t>(batch));
  set_attribute(layout.handle, kBatchStride, m.batch_stride);
}

CublasEpilogue epilogue_of(const ProductProblem& problem) {
  switch (problem.activation) {
    case graph::Activation::none:
      return problem.bias ? CublasEpilogue::bias : CublasEpilogue::none;
    case graph::Activation::relu:
      return problem.bias ? CublasEpilogue::relu_bias : CublasEpilogue::relu;
    case graph::Activation::gelu_tanh:
      return problem.bias ? CublasEpilogue::gelu_bias : CublasEpilogue::gelu;
  }
  return CublasEpilogue::none;
}

std::string matrix_text(const LibraryMatrix& m) {
  return fmt::format("{}x{}{} ld {} batch {} align {}", m.rows, m.columns, m.transposed ? "^T" : "",
                     m.leading, m.batch_stride, m.alignment);
}

/// Of an element in host memory.
bool is_nan(const std::byte* element, DType dtype) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, element, sizeof value);
    return value;
  };
  if (dtype == DType::float64) return std::isnan(as(double{}));
  if (dtype == DType::float32) return std::isnan(as(float{}));
  const uint16_t bits = as(uint16_t{});
  return std::isnan(dtype == DType::float16 ? float16_to_float(bits) : bfloat16_to_float(bits));
}

}  // namespace

std::string ProductProblem::str() const {
  return fmt::format(
      "{} {}: {} of {}{} [{}] * [{}] = [{}]{}{}", name(dtype), name(result_dtype), batch,
      tf32 ? "tf32" : "full", in_one_piece ? " in one piece" : "", matrix_text(first), matrix_text(second),
      matrix_text(result), bias ? fmt::format(" bias {} align {}", name(bias_dtype), bias_alignment) : "",
      activation == graph::Activation::none ? "" : fmt::format(" {}", graph::name(activation)));
}

size_t ProductProblemHash::operator()(const ProductProblem& p) const {
  uint64_t hash = 0;
  const auto add = [&](auto value) { hash = mix(hash, static_cast<uint64_t>(value)); };
  for (const DType dtype : {p.dtype, p.result_dtype, p.bias_dtype}) add(dtype);
  for (const LibraryMatrix* m : {&p.first, &p.second, &p.result}) {
    for (const int64_t number : {m->rows, m->columns, m->leading, m->batch_stride}) add(number);
    add(m->alignment * 2 + m->transposed);
  }
  add(p.batch);
  add(p.activation);
  add(p.bias_alignment * 16 + p.in_one_piece * 8 + p.tf32 * 4 + p.bias * 2 + p.swapped);
  return hash;
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
  std::mutex bias_mutex;
  const void* bias = nullptr;  // its address is a part of `operation`
};

LibraryProduct::LibraryProduct(const ProductProblem& problem, int32_t device)
    : problem_(problem),
      device_(device),
      handle_(cublas_lt_handle(device)),
      state_(std::make_unique<State>()) {
  const LibraryType& type = type_of(problem.dtype);
  State& s = *state_;
  STAX_CUBLAS_LT(cublasLtMatmulDescCreate, &s.operation.handle,
                 problem.tf32 ? CublasCompute::tf32 : type.compute, type.scale);
  const auto transpose = [](const LibraryMatrix& m) {
    return m.transposed ? CublasTranspose::transposed : CublasTranspose::as_it_lies;
  };
  set_attribute(s.operation.handle, kTransposeA, transpose(problem.first));
  set_attribute(s.operation.handle, kTransposeB, transpose(problem.second));
  set_attribute(s.operation.handle, kEpilogue, epilogue_of(problem));
  if (problem.bias) {
    set_attribute(s.operation.handle, kBiasType, type_of(problem.bias_dtype).element);
    // The library reads the alignment off the address.
    s.bias = reinterpret_cast<const void*>(static_cast<uintptr_t>(problem.bias_alignment));
    set_attribute(s.operation.handle, kBiasPointer, s.bias);
  }
  make_layout(s.first, problem.first, problem.dtype, problem.batch);
  make_layout(s.second, problem.second, problem.dtype, problem.batch);
  make_layout(s.result, problem.result, problem.result_dtype, problem.batch);
  STAX_CUBLAS_LT(cublasLtMatmulPreferenceCreate, &s.preference.handle);
  const CublasLtPreference preference = s.preference.handle;
  set_attribute(preference, kMostWorkspaceBytes, uint64_t{most_workspace()});
  set_attribute(preference, kAlignmentA, static_cast<uint32_t>(problem.first.alignment));
  set_attribute(preference, kAlignmentB, static_cast<uint32_t>(problem.second.alignment));
  set_attribute(preference, kAlignmentC, static_cast<uint32_t>(problem.result.alignment));
  set_attribute(preference, kAlignmentD, static_cast<uint32_t>(problem.result.alignment));
  // Parts of a sum in k are added up as they were computed, not in a half type.
  if (problem.in_one_piece)
    set_attribute(preference, kReductions, CublasReduction::none);
  else if (is_half(problem.result_dtype))
    set_attribute(preference, kReductions, CublasReduction::in_compute_type);
}

LibraryProduct::~LibraryProduct() = default;

std::vector<CublasLtAnswer> LibraryProduct::answers(int32_t most) const {
  const State& s = *state_;
  std::vector<CublasLtAnswer> out(static_cast<size_t>(most));
  int32_t count = 0;
  const CublasStatus status = cublas_lt().cublasLtMatmulAlgoGetHeuristic(
      handle_, s.operation.handle, s.first.handle, s.second.handle, s.result.handle, s.result.handle,
      s.preference.handle, most, out.data(), &count);
  out.resize(status == CublasStatus::success ? static_cast<size_t>(count) : 0);
  std::erase_if(out, [&](const CublasLtAnswer& a) {
    return a.status != CublasStatus::success || a.workspace_bytes > most_workspace();
  });
  STAX_RUNTIME_CHECK(!out.empty(), "cuBLASLt {} has no algorithm for the product {} (status {})",
                     cublas_lt_version_text(cublas_lt_library().version), problem_.str(),
                     static_cast<int32_t>(status));
  return out;
}

std::optional<CublasLtAnswer> LibraryProduct::check(const CublasLtAlgorithm& algorithm) const {
  const State& s = *state_;
  CublasLtAnswer answer;
  const CublasStatus status =
      cublas_lt().cublasLtMatmulAlgoCheck(handle_, s.operation.handle, s.first.handle, s.second.handle,
                                          s.result.handle, s.result.handle, &algorithm, &answer);
  constexpr CublasStatus kSuccess = CublasStatus::success;
  if (status != kSuccess || answer.status != kSuccess || answer.workspace_bytes > most_workspace())
    return std::nullopt;
  answer.algorithm = algorithm;
  return answer;
}

void LibraryProduct::multiply(const ProductOperands& o, const CublasLtAnswer& answer, double factor,
                              void* workspace) const {
  constexpr float kZero = 0;
  constexpr double kWideZero = 0;
  const auto narrow = static_cast<float>(factor);
  const bool wide = problem_.dtype == DType::float64;
  const void* scale = wide ? static_cast<const void*>(&factor) : &narrow;
  const void* zero = wide ? static_cast<const void*>(&kWideZero) : &kZero;
  const State& s = *state_;
  const void *first = problem_.swapped ? o.b : o.a, *second = problem_.swapped ? o.a : o.b;
  STAX_CUBLAS_LT(cublasLtMatmul, handle_, s.operation.handle, scale, first, s.first.handle, second,
                 s.second.handle, zero, o.result, s.result.handle, o.result, s.result.handle,
                 &answer.algorithm, workspace, answer.workspace_bytes,
                 device::current_cuda_stream(device_).handle);
}

void LibraryProduct::multiply(const ProductOperands& operands, const CublasLtAnswer& answer,
                              double factor) const {
  device::use_cuda_device(device_);
  device::DeviceMemory workspace;
  if (answer.workspace_bytes > 0)
    workspace = device::DeviceMemory(device_, static_cast<int64_t>(answer.workspace_bytes));
  if (!problem_.bias) return multiply(operands, answer, factor, workspace.data());
  State& s = *state_;
  const std::lock_guard lock(s.bias_mutex);
  if (s.bias != operands.bias) {
    set_attribute(s.operation.handle, kBiasPointer, operands.bias);
    s.bias = operands.bias;
  }
  multiply(operands, answer, factor, workspace.data());
}

void LibraryProduct::run(const ProductOperands& operands, const CublasLtAnswer& answer) const {
  multiply(operands, answer, 1);
}

bool LibraryProduct::keeps_nan(const ProductOperands& operands, const CublasLtAnswer& answer) const {
  multiply(operands, answer, std::numeric_limits<double>::quiet_NaN());
  std::array<std::byte, 8> first{};
  device::copy_to_host(first.data(), operands.result, itemsize(problem_.result_dtype), device_);
  return is_nan(first.data(), problem_.result_dtype);
}

}  // namespace stax::kernels
