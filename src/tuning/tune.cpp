#include "tuning/tune.h"

#include "stax/error.h"
#include "support/hash.h"
#include "support/json.h"
#include "support/log.h"

namespace stax::tuning {
namespace {

using codegen::LaunchConfig;

constexpr int64_t kVersion = 1;  // of the record's form

std::string file_key(const TuningKey& key, std::span<const LaunchConfig> candidates) {
  Json facts = Json::object();
  facts.set("tuning", kVersion);
  facts.set("source", sha256_hex(key.source));
  facts.set("gpu", key.gpu);
  facts.set("triton", key.triton);
  facts.set("strategy", key.strategy);
  if (!key.sizes.empty()) facts.set("sizes", key.sizes);
  Json list = Json::array();
  for (const LaunchConfig& c : candidates) list.push_back(to_string(c));
  facts.set("candidates", std::move(list));
  return sha256_hex(facts.dump());
}

Json to_json(const LaunchConfig& config) {
  Json blocks = Json::object();
  for (const auto& [name, block] : config.blocks) blocks.set(name, block);
  Json record = Json::object();
  record.set("blocks", std::move(blocks));
  record.set("num_warps", static_cast<int64_t>(config.warps));
  record.set("num_stages", static_cast<int64_t>(config.stages));
  return record;
}

LaunchConfig from_json(const Json& record) {
  LaunchConfig config;
  for (const auto& [name, block] : record.at("blocks").as_object())
    config.blocks.emplace_back(name, block.as_int());
  config.warps = static_cast<int32_t>(record.at("num_warps").as_int());
  config.stages = static_cast<int32_t>(record.at("num_stages").as_int());
  return config;
}

}  // namespace

std::optional<LaunchConfig> TuningRecords::find(const TuningKey& key, const ConfigSpace& space,
                                                std::span<const LaunchConfig> candidates) const {
  const auto text = cache_.read(file_key(key, candidates));
  if (!text) return std::nullopt;
  try {
    LaunchConfig config = from_json(Json::parse(*text));
    if (space.contains(config)) return config;
  } catch (const Error&) {
    // Written by another version: measured anew.
  }
  return std::nullopt;
}

void TuningRecords::put(const TuningKey& key, std::span<const LaunchConfig> candidates,
                        const LaunchConfig& config) const {
  (void)cache_.write(file_key(key, candidates), to_json(config).dump());
}

LaunchConfig tune(const codegen::TileKernel& kernel, const TuningKey& key, Bench& bench,
                  const TuningRecords& records, const SearchOptions& options) {
  const Strategy& strategy = strategy_named(key.strategy);
  const ConfigSpace space(kernel);
  const std::vector<LaunchConfig> start = candidates(kernel);
  const std::string name = key.sizes.empty() ? kernel.name : fmt::format("{} ({})", kernel.name, key.sizes);
  if (auto recorded = records.find(key, space, start)) {
    log::print(log::Channel::autotune, "{}: {} (recorded)", name, to_string(*recorded));
    return *recorded;
  }
  const SearchResult result = strategy.search(space, start, bench, options);
  if (result.trials.empty()) return result.best;  // nothing was measured, so there is nothing to keep
  log::print(log::Channel::autotune, "{}: {} of {} configurations measured on {}\n{}", name,
             result.trials.size(), space.size(), key.gpu, table_of(result));
  records.put(key, start, result.best);
  return result.best;
}

}  // namespace stax::tuning
