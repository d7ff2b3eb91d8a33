#include "support/fake_cuda/fake_cublas_lt.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "kernels/cublas_lt.h"

namespace {

using namespace stax::kernels;

struct Operation {
  CublasCompute compute_type;
  CublasType scale_type;
  CublasTranspose transpose_a = CublasTranspose::as_it_lies, transpose_b = CublasTranspose::as_it_lies;
  CublasEpilogue epilogue = CublasEpilogue::none;
  CublasType bias_type = CublasType::float32;
  bool turns_a() const { return transpose_a == CublasTranspose::transposed; }
  bool turns_b() const { return transpose_b == CublasTranspose::transposed; }
  /// Whether its epilogue has the bits of `part`.
  bool has(CublasEpilogue part) const {
    return (static_cast<int32_t>(epilogue) & static_cast<int32_t>(part)) != 0;
  }
  const std::byte* bias = nullptr;
};
struct Layout {
  CublasType type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

struct State {
  std::recursive_mutex mutex;
  std::vector<fake_cublas_lt::Product> products;
  std::vector<fake_cublas_lt::Answer> answers = std::vector<fake_cublas_lt::Answer>(4);
  std::vector<uint32_t> alignments;
  struct Failure {
    CublasStatus status;
    int32_t times;
  };
  std::map<std::string, Failure> failures;
  int32_t questions = 0;
  float epilogue = 0;  // milliseconds
};
State& state() {
  static auto* const one = new State();
  return *one;
}

CublasStatus begin(const char* function) {
  const auto failure = state().failures.find(function);
  if (failure == state().failures.end()) return CublasStatus::success;
  const CublasStatus status = failure->second.status;
  if (--failure->second.times == 0) state().failures.erase(failure);
  return status;
}

template <class T>
Operation* of(T handle) {
  return reinterpret_cast<Operation*>(handle);
}
Layout* layout(CublasLtLayout handle) {
  return reinterpret_cast<Layout*>(handle);
}

size_t width(CublasType type) {
  if (type == CublasType::float64) return 8;
  return type == CublasType::float32 ? 4 : 2;
}

float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float sign = bits >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

uint16_t float_to_half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (size >= 65520.0f) return sign | 0x7c00;
  if (size < std::ldexp(1.0f, -14))  // the spacing of subnormal numbers; nearbyint rounds ties to even
    return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 24)));
  int exponent = 0;
  std::frexp(size, &exponent);
  auto mantissa = static_cast<int>(std::nearbyint(std::ldexp(size, 11 - exponent)));
  if (mantissa == 2048) mantissa = 1024, ++exponent;
  return sign | static_cast<uint16_t>((exponent + 14) << 10 | (mantissa - 1024));
}

uint16_t float_to_bfloat(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return 0x7fc0;
  bits += 0x7fff + (bits >> 16 & 1);
  return static_cast<uint16_t>(bits >> 16);
}

double load(const std::byte* at, CublasType type) {
  if (type == CublasType::float64) {
    double out;
    std::memcpy(&out, at, 8);
    return out;
  }
  if (type == CublasType::float32) {
    float out;
    std::memcpy(&out, at, 4);
    return static_cast<double>(out);
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return static_cast<double>(type == CublasType::float16 ? half_to_float(bits)
                                                         : std::bit_cast<float>(uint32_t{bits} << 16));
}

void store(std::byte* at, CublasType type, double value) {
  const auto narrow = static_cast<float>(value);
  if (type == CublasType::float64) {
    std::memcpy(at, &value, 8);
  } else if (type == CublasType::float32) {
    std::memcpy(at, &narrow, 4);
  } else {
    const uint16_t bits = type == CublasType::float16 ? float_to_half(narrow) : float_to_bfloat(narrow);
    std::memcpy(at, &bits, 2);
  }
}

/// Sizes agree and leading dimensions hold the columns.
bool fits(const Operation& op, const Layout& a, const Layout& b, const Layout& d) {
  const uint64_t m = op.turns_a() ? a.columns : a.rows, k = op.turns_a() ? a.rows : a.columns;
  const uint64_t n = op.turns_b() ? b.rows : b.columns, inner = op.turns_b() ? b.columns : b.rows;
  for (const Layout* l : {&a, &b, &d})
    if (l->rows == 0 || l->columns == 0 || l->leading < static_cast<int64_t>(l->rows)) return false;
  return m == d.rows && n == d.columns && k == inner && a.batch == d.batch && b.batch == d.batch;
}

/// One matrix of a batch, element (row, column) of its transpose where `transposed`.
struct Reader {
  const std::byte* data;
  const Layout& layout;
  bool transposed;
  double at(uint64_t row, uint64_t column) const {
    if (transposed) std::swap(row, column);
    const uint64_t place = row + column * static_cast<uint64_t>(layout.leading);
    return load(data + place * width(layout.type), layout.type);
  }
};

double activate(double x, const Operation& op, bool relu_keeps_nan) {
  if (op.has(CublasEpilogue::relu)) return x > 0 || (relu_keeps_nan && std::isnan(x)) ? x : 0;
  if (op.has(CublasEpilogue::gelu))
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  return x;
}

void multiply(const Operation& op, double alpha, const Reader& a, const Reader& b, std::byte* d,
              const Layout& to, uint64_t inner, bool relu_keeps_nan) {
  for (uint64_t column = 0; column < to.columns; ++column) {
    for (uint64_t row = 0; row < to.rows; ++row) {
      double sum = 0;
      for (uint64_t k = 0; k < inner; ++k) {
        sum += a.at(row, k) * b.at(k, column);
        if (op.compute_type != CublasCompute::float64) sum = static_cast<double>(static_cast<float>(sum));
      }
      sum *= alpha;
      if (op.has(CublasEpilogue::bias)) sum += load(op.bias + row * width(op.bias_type), op.bias_type);
      const uint64_t place = row + column * static_cast<uint64_t>(to.leading);
      store(d + place * width(to.type), to.type, activate(sum, op, relu_keeps_nan));
    }
  }
}

}  // namespace

#define LOCKED(name)                         \
  const std::lock_guard lock(state().mutex); \
  if (const CublasStatus r = begin(#name); r != CublasStatus::success) return r
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED size_t cublasLtGetVersion() {
  return 130100;
}
EXPORTED const char* cublasLtGetStatusString(CublasStatus) {
  return "a failure that a test asked for";
}
EXPORTED CublasStatus cublasLtCreate(CublasLtHandle* handle) {
  LOCKED(cublasLtCreate);
  *handle = reinterpret_cast<CublasLtHandle>(&state());
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulDescCreate(CublasLtOperation* operation, CublasCompute compute,
                                               CublasType scale) {
  *operation = reinterpret_cast<CublasLtOperation>(new Operation{compute, scale});
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulDescDestroy(CublasLtOperation operation) {
  delete of(operation);
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulDescSetAttribute(CublasLtOperation operation, int32_t attribute,
                                                     const void* value, size_t bytes) {
  Operation& op = *of(operation);
  if (attribute == kBiasPointer.number && bytes == 8) {
    std::memcpy(&op.bias, value, 8);
    return CublasStatus::success;
  }
  const std::map<int32_t, void*> places = {{kTransposeA.number, &op.transpose_a},
                                           {kTransposeB.number, &op.transpose_b},
                                           {kEpilogue.number, &op.epilogue},
                                           {kBiasType.number, &op.bias_type}};
  const auto place = places.find(attribute);
  if (place == places.end() || bytes != 4) return CublasStatus::invalid_value;
  std::memcpy(place->second, value, 4);
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatrixLayoutCreate(CublasLtLayout* to, CublasType type, uint64_t rows,
                                                 uint64_t columns, int64_t leading) {
  *to = reinterpret_cast<CublasLtLayout>(new Layout{type, rows, columns, leading});
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatrixLayoutDestroy(CublasLtLayout handle) {
  delete layout(handle);
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatrixLayoutSetAttribute(CublasLtLayout handle, int32_t attribute,
                                                       const void* value, size_t bytes) {
  if (attribute == kBatchCount.number && bytes == 4)
    std::memcpy(&layout(handle)->batch, value, 4);
  else if (attribute == kBatchStride.number && bytes == 8)
    std::memcpy(&layout(handle)->batch_stride, value, 8);
  else
    return CublasStatus::invalid_value;
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulPreferenceCreate(CublasLtPreference* preference) {
  *preference = reinterpret_cast<CublasLtPreference>(new Preference());
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulPreferenceDestroy(CublasLtPreference preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulPreferenceSetAttribute(CublasLtPreference preference, int32_t attribute,
                                                           const void* value, size_t bytes) {
  auto& p = *reinterpret_cast<Preference*>(preference);
  if (attribute == kMostWorkspaceBytes.number && bytes == 8)
    std::memcpy(&p.workspace, value, 8);
  else if (attribute >= kAlignmentA.number && attribute <= kAlignmentD.number && bytes == 4)
    std::memcpy(&p.alignment[attribute - kAlignmentA.number], value, 4);
  else if (attribute != kReductions.number || bytes != 4)
    return CublasStatus::invalid_value;
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulAlgoGetHeuristic(CublasLtHandle, CublasLtOperation operation,
                                                     CublasLtLayout a, CublasLtLayout b, CublasLtLayout,
                                                     CublasLtLayout d, CublasLtPreference preference,
                                                     int32_t wanted, CublasLtAnswer* answers,
                                                     int32_t* count) {
  LOCKED(cublasLtMatmulAlgoGetHeuristic);
  State& s = state();
  ++s.questions;
  *count = 0;
  if (!fits(*of(operation), *layout(a), *layout(b), *layout(d))) return CublasStatus::invalid_value;
  const auto& p = *reinterpret_cast<Preference*>(preference);
  s.alignments = {p.alignment[0], p.alignment[1], p.alignment[3]};
  for (size_t k = 0; k < s.answers.size() && *count < wanted; ++k) {
    if (s.answers[k].workspace_bytes > p.workspace) continue;
    CublasLtAnswer& answer = answers[(*count)++];
    answer = {};
    answer.algorithm.data[0] = k;
    answer.workspace_bytes = s.answers[k].workspace_bytes;
  }
  return *count == 0 ? CublasStatus::not_supported : CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulAlgoCheck(CublasLtHandle, CublasLtOperation operation, CublasLtLayout a,
                                              CublasLtLayout b, CublasLtLayout, CublasLtLayout d,
                                              const CublasLtAlgorithm* algorithm, CublasLtAnswer* answer) {
  LOCKED(cublasLtMatmulAlgoCheck);
  if (algorithm->data[0] >= state().answers.size()) return CublasStatus::not_supported;
  if (!fits(*of(operation), *layout(a), *layout(b), *layout(d))) return CublasStatus::invalid_value;
  *answer = {*algorithm, state().answers[algorithm->data[0]].workspace_bytes};
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmulAlgoConfigGetAttribute(const CublasLtAlgorithm* algorithm, int32_t,
                                                           void* value, size_t bytes, size_t* written) {
  const auto number = static_cast<int32_t>(algorithm->data[0]);
  std::memcpy(value, &number, std::min(bytes, sizeof number));
  *written = sizeof number;
  return CublasStatus::success;
}
EXPORTED CublasStatus cublasLtMatmul(CublasLtHandle, CublasLtOperation operation, const void* alpha,
                                     const void* a, CublasLtLayout a_layout, const void* b,
                                     CublasLtLayout b_layout, const void*, const void*, CublasLtLayout,
                                     void* d, CublasLtLayout d_layout, const CublasLtAlgorithm* algorithm,
                                     void* workspace, size_t workspace_bytes,
                                     stax::device::CudaStreamHandle stream) {
  LOCKED(cublasLtMatmul);
  State& s = state();
  const Operation& op = *of(operation);
  const Layout &first = *layout(a_layout), &second = *layout(b_layout), &to = *layout(d_layout);
  if (!fits(op, first, second, to) || algorithm->data[0] >= s.answers.size())
    return CublasStatus::invalid_value;
  const fake_cublas_lt::Answer& answer = s.answers[algorithm->data[0]];
  if (workspace_bytes < answer.workspace_bytes || (workspace_bytes > 0 && workspace == nullptr))
    return CublasStatus::invalid_value;
  fake_cuda::advance(answer.milliseconds + (op.epilogue == CublasEpilogue::none ? 0 : s.epilogue));
  if (workspace != nullptr) std::memset(workspace, 0xee, workspace_bytes);
  const uint64_t inner = op.turns_a() ? first.rows : first.columns;
  s.products.push_back({to.rows, to.columns, inner, to.batch, op.turns_a(), op.turns_b(), op.epilogue,
                        op.compute_type, static_cast<int32_t>(algorithm->data[0]), workspace_bytes, stream});
  const double scale = load(static_cast<const std::byte*>(alpha), op.scale_type);
  const auto place = [](auto* data, const Layout& l, int32_t batch) {
    return data + batch * l.batch_stride * static_cast<int64_t>(width(l.type));
  };
  for (int32_t k = 0; k < to.batch; ++k) {
    multiply(op, scale, {place(static_cast<const std::byte*>(a), first, k), first, op.turns_a()},
             {place(static_cast<const std::byte*>(b), second, k), second, op.turns_b()},
             place(static_cast<std::byte*>(d), to, k), to, inner, answer.relu_keeps_nan);
  }
  return CublasStatus::success;
}

namespace fake_cublas_lt {

std::vector<Product> products() {
  return state().products;
}
void reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.products.clear();
  s.failures.clear();
  s.answers.assign(4, {});
  s.questions = 0;
  s.epilogue = 0;
}
void answers(std::vector<Answer> answers) {
  state().answers = std::move(answers);
}
void with_epilogue(float milliseconds) {
  state().epilogue = milliseconds;
}
std::vector<uint32_t> alignments() {
  return state().alignments;
}
int32_t questions() {
  return state().questions;
}
void fail(const std::string& function, CublasStatus status, int32_t times) {
  state().failures[function] = {status, times};
}

}  // namespace fake_cublas_lt
