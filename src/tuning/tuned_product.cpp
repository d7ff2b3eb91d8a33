#include "tuning/tuned_product.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "device/cuda_device.h"
#include "stax/error.h"
#include "support/check.h"
#include "support/hash.h"
#include "support/json.h"
#include "support/log.h"
#include "tuning/cold_timer.h"

namespace stax::tuning {

using runtime::CublasLtAnswer;
using runtime::LibraryProduct;
using runtime::ProductOperands;
using runtime::ProductProblem;

namespace {

constexpr int64_t kRecordVersion = 1;  // of the record's form
constexpr int32_t kMeasured = 12;      // answers of the library that are tried
constexpr int32_t kRepeats = 100;      // runs of each, at most

std::string algorithm_text(const CublasLtAnswer& answer) {
  const auto setting = [&](int32_t attribute) {
    int32_t value = -1;
    size_t written = 0;
    (void)runtime::cublas_lt().cublasLtMatmulAlgoConfigGetAttribute(&answer.algorithm, attribute, &value,
                                                                    sizeof value, &written);
    return value;
  };
  return fmt::format("algorithm {} tile {} stages {} splits {}, {} bytes of workspace",
                     setting(runtime::kCublasAlgorithmId), setting(runtime::kCublasTile),
                     setting(runtime::kCublasStages), setting(runtime::kCublasSplits),
                     answer.workspace_bytes);
}

std::string to_text(const runtime::CublasLtAlgorithm& algorithm) {
  Json words = Json::array();
  for (const uint64_t word : algorithm.data) words.push_back(fmt::format("{:x}", word));
  return words.dump();
}

std::optional<runtime::CublasLtAlgorithm> from_text(const std::string& text) {
  try {
    const Json words = Json::parse(text);
    runtime::CublasLtAlgorithm out;
    if (words.as_array().size() != std::size(out.data)) return std::nullopt;
    for (size_t k = 0; k < std::size(out.data); ++k)
      out.data[k] = std::stoull(words.as_array()[k].as_string(), nullptr, 16);
    return out;
  } catch (const std::exception&) {
    return std::nullopt;  // written by another version: measured anew
  }
}

}  // namespace

bool is_product(std::string_view function) {
  constexpr std::array<std::string_view, 4> kProducts = {"mm", "mm.dtype", "bmm", "bmm.dtype"};
  return std::ranges::find(kProducts, function) != kProducts.end();
}

TunedProduct::TunedProduct(const runtime::CodeCache& cache, int32_t device, std::string strategy,
                           runtime::ProductOptions options)
    : cache_(cache), device_(device), strategy_(std::move(strategy)), options_(options) {}

TunedProduct::~TunedProduct() = default;

void TunedProduct::run(std::span<const Argument<TensorView>> arguments,
                       std::span<const TensorView> results) const {
  const TensorView &a = arguments[0].tensor(), &b = arguments[1].tensor(), &result = results[0];
  const TensorView* bias =
      arguments.size() > 2 && arguments[2].is_tensor() ? &arguments[2].tensor() : nullptr;
  const int64_t elements = result.numel();
  if (elements == 0) return;
  if (a.sizes.back() == 0) {
    // An empty sum. Memory of results has no gaps.
    STAX_ASSERT(bias == nullptr && options_.activation == runtime::Activation::none,
                "[product] nothing is summed up, and then something is computed of it");
    device::use_cuda_device(device_);
    STAX_CUDA(cuMemsetD8Async, reinterpret_cast<device::CudaAddress>(result.data), 0,
              static_cast<size_t>(elements * itemsize(result.dtype)),
              device::current_cuda_stream(device_).handle);
    return;
  }
  const auto problem = runtime::problem_of(a, b, result, bias, options_);
  STAX_ASSERT(problem, "[product] cuBLASLt cannot read the matrices as they lie");
  const ProductOperands operands{a.data, b.data, bias != nullptr ? bias->data : nullptr, result.data};
  const Ready* last = last_.load(std::memory_order_acquire);
  const Ready& one =
      last != nullptr && last->product.problem() == *problem ? *last : ready(*problem, operands);
  one.product.run(operands, one.answer);
}

const TunedProduct::Ready& TunedProduct::ready(const ProductProblem& problem,
                                               const ProductOperands& operands) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const Ready>& known = all_[problem.str()];
  if (!known) {
    auto made = std::make_unique<Ready>(problem, device_);
    made->answer = choose(made->product, operands);
    known = std::move(made);
  }
  last_.store(known.get(), std::memory_order_release);
  return *known;
}

std::string TunedProduct::key(const ProductProblem& problem) const {
  Json facts = Json::object();
  facts.set("product", kRecordVersion);
  facts.set("problem", problem.str());
  facts.set("gpu", device::cuda_properties(device_).name);
  facts.set("library", runtime::cublas_lt_library().version);
  facts.set("measured", static_cast<int64_t>(kMeasured));
  return sha256_hex(facts.dump());
}

CublasLtAnswer TunedProduct::choose(const LibraryProduct& product, const ProductOperands& operands) const {
  if (strategy_ == "none") return product.answers(1)[0];
  const std::string record = key(product.problem());
  if (const auto text = cache_.read(record)) {
    if (const auto algorithm = from_text(*text)) {
      if (const auto answer = product.check(*algorithm)) return *answer;
    }
  }
  const CublasLtAnswer best = measured(product, operands);
  (void)cache_.write(record, to_text(best.algorithm));
  return best;
}

CublasLtAnswer TunedProduct::measured(const LibraryProduct& product, const ProductOperands& operands) const {
  const std::vector<CublasLtAnswer> answers = product.answers(kMeasured);
  if (answers.size() == 1) return answers[0];
  ColdTimer timer(device_);
  const CublasLtAnswer* best = nullptr;
  double least = 0;
  std::string table;
  for (const CublasLtAnswer& answer : answers) {
    std::string outcome;
    try {
      const double seconds = timer.seconds(
          kRepeats, [] {}, [&] { product.run(operands, answer); });
      outcome = fmt::format("{:.4f} ms", 1e3 * seconds);
      if (best == nullptr || seconds < least) best = &answer, least = seconds;
    } catch (const RuntimeError& error) {
      outcome = error.what();
    }
    table += fmt::format("  {}: {}\n", algorithm_text(answer), outcome);
  }
  STAX_RUNTIME_CHECK(best != nullptr, "cuBLASLt does none of its answers to the product {}:\n{}",
                     product.problem().str(), table);
  log::print(log::Channel::autotune, "product {} on {}: {} is the fastest of\n{}", product.problem().str(),
             device::cuda_properties(device_).name, algorithm_text(*best), table);
  return *best;
}

}  // namespace stax::tuning
