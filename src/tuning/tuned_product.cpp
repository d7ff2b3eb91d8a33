#include "tuning/tuned_product.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "device/cuda_allocator.h"
#include "device/cuda_device.h"
#include "stax/error.h"
#include "support/check.h"
#include "support/log.h"
#include "tuning/cold_timer.h"

namespace stax::tuning {

using graph::Activation;
using kernels::CublasLtAnswer;
using kernels::LibraryProduct;
using kernels::ProductOperands;
using kernels::ProductProblem;

namespace {

constexpr int64_t kRecordVersion = 1;  // of the record's form
constexpr int32_t kMeasured = 12;      // answers of the library that are tried
constexpr int32_t kRepeats = 100;      // runs of each, at most

bool has_epilogue(const ProductProblem& problem) {
  return problem.bias || problem.activation != Activation::none;
}

/// A product on its own, before what follows it.
ProductProblem bare(ProductProblem problem) {
  problem.bias = false;
  problem.activation = Activation::none;
  return problem;
}

Json to_json(const kernels::CublasLtAlgorithm& algorithm) {
  Json words = Json::array();
  for (const uint64_t word : algorithm.data) words.push_back(fmt::format("{:x}", word));
  return words;
}

uint64_t number_of(const std::string& digits) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  STAX_CHECK(error == std::errc() && end == digits.data() + digits.size(),
             "a record of an algorithm: '{}' is no hexadecimal number", digits);
  return out;
}

kernels::CublasLtAlgorithm algorithm_of(const Json& words) {
  kernels::CublasLtAlgorithm out;
  STAX_CHECK(words.as_array().size() == std::size(out.data), "a record of {} words", words.as_array().size());
  for (size_t k = 0; k < std::size(out.data); ++k) out.data[k] = number_of(words.as_array()[k].as_string());
  return out;
}

}  // namespace

void TunedProduct::Way::run(const ProductOperands& operands) const {
  product->run(operands, answer);
  if (after) after->run(operands.result, operands.bias);
}

std::string TunedProduct::Way::str() const {
  const auto setting = [&](kernels::CublasAttribute<kernels::CublasLtAlgorithm, int32_t> attribute) {
    return kernels::setting_of(answer.algorithm, attribute).value_or(-1);
  };
  return fmt::format("algorithm {} tile {} stages {} splits {}, {} bytes of workspace{}",
                     setting(kernels::kAlgorithmId), setting(kernels::kTile), setting(kernels::kStages),
                     setting(kernels::kSplits), answer.workspace_bytes, after ? ", then a kernel" : "");
}

TunedProduct::TunedProduct(const runtime::CodeCache& cache, int32_t device, TunedProductOptions options)
    : records_(cache), device_(device), options_(std::move(options)), invariant_(device, options_.product) {}

TunedProduct::~TunedProduct() = default;

void TunedProduct::run(std::span<const Argument<TensorView>> arguments,
                       std::span<const TensorView> results) const {
  const TensorView* bias =
      arguments.size() > 2 && arguments[2].is_tensor() ? &arguments[2].tensor() : nullptr;
  multiply(arguments[0].tensor(), arguments[1].tensor(), bias, results[0]);
}

void TunedProduct::multiply(const TensorView& a, const TensorView& b, const TensorView* bias,
                            const TensorView& result) const {
  const int64_t elements = result.numel();
  if (elements == 0) return;
  if (a.sizes.back() == 0) {
    // An empty sum. Memory of results has no gaps.
    STAX_ASSERT(bias == nullptr && options_.product.activation == Activation::none,
                "[product] nothing is summed up, and then something is computed of it");
    device::use_cuda_device(device_);
    STAX_CUDA(cuMemsetD8Async, reinterpret_cast<device::CudaAddress>(result.data), 0,
              static_cast<size_t>(elements * itemsize(result.dtype)),
              device::current_cuda_stream(device_).handle);
    return;
  }
  const size_t lead = result.sizes.size() - 2;
  for (size_t d = 0; d < result.sizes.size(); ++d) {
    if (result.sizes[d] <= options_.longest) continue;
    for (int64_t start = 0; start < result.sizes[d]; start += options_.longest) {
      const int64_t length = std::min(options_.longest, result.sizes[d] - start);
      const bool columns = d == lead + 1;
      const TensorView some_bias = bias != nullptr && columns ? part(*bias, 0, start, length) : TensorView();
      multiply(columns ? a : part(a, d, start, length), d == lead ? b : part(b, d, start, length),
               bias != nullptr && columns ? &some_bias : bias, part(result, d, start, length));
    }
    return;
  }
  if (options_.batch_invariant) {
    STAX_ASSERT(bias == nullptr && options_.product.activation == Activation::none,
                "[product] something follows a product that is batch-invariant");
    return invariant_.run(a, b, result);
  }
  const auto problem = kernels::problem_of(a, b, result, bias, options_.product);
  STAX_ASSERT(problem, "[product] cuBLASLt cannot read the matrices as they lie");
  const ProductOperands operands{a.data, b.data, bias != nullptr ? bias->data : nullptr, result.data};
  const Ready* last = last_.load(std::memory_order_acquire);
  const Ready& one = last != nullptr && last->problem == *problem ? *last : ready(*problem, operands);
  one.way.run(operands);
}

const TunedProduct::Ready& TunedProduct::ready(const ProductProblem& problem,
                                               const ProductOperands& operands) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const Ready>& known = all_[problem];
  if (!known) known = std::make_unique<const Ready>(Ready{problem, choose(problem, operands)});
  last_.store(known.get(), std::memory_order_release);
  return *known;
}

std::vector<TunedProduct::Way> TunedProduct::by_library(const ProductProblem& problem, int32_t most) const {
  std::vector<Way> out;
  const auto product = std::make_shared<const LibraryProduct>(problem, device_);
  for (const CublasLtAnswer& answer : product->answers(most)) out.push_back({product, answer, nullptr});
  return out;
}

bool TunedProduct::takes_kernel(const ProductProblem& problem) const {
  if (!has_epilogue(problem) || !options_.make_epilogue || !problem.swapped) return false;
  // Kernels are made for results without gaps; parts of long ones have some.
  const kernels::LibraryMatrix& to = problem.result;
  return to.leading == to.rows && (problem.batch == 1 || to.batch_stride == to.rows * to.columns);
}

std::shared_ptr<const ProductEpilogue> TunedProduct::epilogue(const ProductProblem& problem) const {
  const kernels::LibraryMatrix& to = problem.result;
  return options_.make_epilogue(
      {problem.batch * to.columns, to.rows, problem.result_dtype, problem.bias, problem.activation});
}

std::vector<TunedProduct::Way> TunedProduct::with_kernel(const ProductProblem& problem, int32_t most) const {
  std::vector<Way> out = by_library(bare(problem), most);
  const auto after = epilogue(problem);
  for (Way& way : out) way.after = after;
  return out;
}

Json TunedProduct::facts_of(const ProductProblem& problem) const {
  Json facts = Json::object();
  facts.set("product", kRecordVersion);
  facts.set("problem", problem.str());
  facts.set("gpu", device::cuda_properties(device_).name);
  facts.set("library", kernels::cublas_lt_library().version);
  facts.set("measured", static_cast<int64_t>(kMeasured));
  return facts;
}

TunedProduct::Way TunedProduct::choose(const ProductProblem& problem, const ProductOperands& operands) const {
  const bool measures = options_.strategy != "none";
  if (measures) {
    if (auto way = recorded(problem)) return *way;
  }
  if (!measures || (options_.changes && all_.size() > 1)) return likeliest(problem, operands);
  std::optional<Way> found;
  try {
    found = measured(problem, operands);
  } catch (const device::OutOfDeviceMemory& error) {
    log::print(log::Channel::autotune, "product {} is not measured: {}", problem.str(), error.what());
    return likeliest(problem, operands);
  }
  const Way& best = *found;
  Json record = Json::object();
  record.set("algorithm", to_json(best.answer.algorithm));
  record.set("kernel", best.after != nullptr);
  records_.put(facts_of(problem), record);
  return best;
}

bool TunedProduct::allowed(const Way& way, const ProductOperands& operands) const {
  return way.product->problem().activation != Activation::relu ||
         way.product->keeps_nan(operands, way.answer);
}

TunedProduct::Way TunedProduct::likeliest(const ProductProblem& problem,
                                          const ProductOperands& operands) const {
  const bool kernels = takes_kernel(problem);
  try {
    for (Way& way : by_library(problem, kernels ? 1 : kMeasured))
      if (allowed(way, operands)) return std::move(way);
    STAX_RUNTIME_CHECK(kernels, "in all of cuBLASLt's answers to the product {} relu makes 0 of NaN",
                       problem.str());
  } catch (const RuntimeError&) {
    if (!kernels) throw;
  }
  return with_kernel(problem, 1)[0];
}

std::optional<TunedProduct::Way> TunedProduct::recorded(const ProductProblem& problem) const {
  return records_.find(facts_of(problem), [&](const Json& record) -> std::optional<Way> {
    const bool kernel = record.at("kernel").as_bool();
    if (kernel && !takes_kernel(problem)) return std::nullopt;
    auto product = std::make_shared<const LibraryProduct>(kernel ? bare(problem) : problem, device_);
    const auto answer = product->check(algorithm_of(record.at("algorithm")));
    if (!answer) return std::nullopt;
    return Way{std::move(product), *answer, kernel ? epilogue(problem) : nullptr};
  });
}

TunedProduct::Way TunedProduct::measured(const ProductProblem& problem,
                                         const ProductOperands& operands) const {
  const bool kernels = takes_kernel(problem);
  std::vector<Way> ways;
  try {
    ways = by_library(problem, kMeasured);
  } catch (const RuntimeError&) {
    if (!kernels) throw;
  }
  if (kernels) std::ranges::move(with_kernel(problem, kMeasured), std::back_inserter(ways));
  if (ways.size() == 1 && allowed(ways[0], operands)) return ways[0];
  ColdTimer timer(device_);
  const Way* best = nullptr;
  double least = 0;
  std::string table;
  for (const Way& way : ways) {
    std::string outcome;
    try {
      if (allowed(way, operands)) {
        const double seconds = timer.seconds(
            kRepeats, [] {}, [&] { way.run(operands); });
        outcome = fmt::format("{:.4f} ms", 1e3 * seconds);
        if (best == nullptr || seconds < least) best = &way, least = seconds;
      } else {
        outcome = "makes 0 of NaN";
      }
    } catch (const RuntimeError& error) {
      outcome = error.what();
    }
    table += fmt::format("  {}: {}\n", way.str(), outcome);
  }
  STAX_RUNTIME_CHECK(best != nullptr, "cuBLASLt does none of its answers to the product {}:\n{}",
                     problem.str(), table);
  log::print(log::Channel::autotune, "product {} on {}: {} is the fastest of\n{}", problem.str(),
             device::cuda_properties(device_).name, best->str(), table);
  return *best;
}

}  // namespace stax::tuning
