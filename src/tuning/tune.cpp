#include "tuning/tune.h"

#include "support/hash.h"
#include "support/log.h"

namespace stax::tuning {
namespace {

using codegen::LaunchConfig;

constexpr int64_t kVersion = 2;  // of the record's form

Json facts_of(const TuningKey& key, std::span<const LaunchConfig> candidates) {
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
  return facts;
}

Json to_json(const LaunchConfig& config) {
  Json blocks = Json::object();
  for (const auto& [name, block] : config.blocks) blocks.set(name, block);
  Json record = Json::object();
  record.set("blocks", std::move(blocks));
  record.set("num_warps", static_cast<int64_t>(config.warps));
  record.set("num_stages", static_cast<int64_t>(config.stages));
  record.set("kept", static_cast<int64_t>(config.kept));
  record.set("registers", static_cast<int64_t>(config.registers));
  return record;
}

LaunchConfig from_json(const Json& record) {
  LaunchConfig config;
  for (const auto& [name, block] : record.at("blocks").as_object())
    config.blocks.emplace_back(name, block.as_int());
  config.warps = static_cast<int32_t>(record.at("num_warps").as_int());
  config.stages = static_cast<int32_t>(record.at("num_stages").as_int());
  config.kept = static_cast<int32_t>(record.at("kept").as_int());
  config.registers = static_cast<int32_t>(record.at("registers").as_int());
  return config;
}

}  // namespace

std::optional<LaunchConfig> recorded_config(const TuningRecords& records, const TuningKey& key,
                                            const ConfigSpace& space,
                                            std::span<const LaunchConfig> candidates) {
  return records.find(facts_of(key, candidates), [&](const Json& record) -> std::optional<LaunchConfig> {
    LaunchConfig config = from_json(record);
    return space.contains(config) ? std::optional(std::move(config)) : std::nullopt;
  });
}

void record_config(const TuningRecords& records, const TuningKey& key,
                   std::span<const LaunchConfig> candidates, const LaunchConfig& config) {
  records.put(facts_of(key, candidates), to_json(config));
}

LaunchConfig tune(const codegen::TileKernel& kernel, const TuningKey& key, Bench& bench,
                  const TuningRecords& records, const SearchOptions& options) {
  const Strategy& strategy = strategy_named(key.strategy);
  const ConfigSpace space(kernel);
  const std::vector<LaunchConfig> start = candidates(kernel);
  const std::string name = key.sizes.empty() ? kernel.name : fmt::format("{} ({})", kernel.name, key.sizes);
  if (auto recorded = recorded_config(records, key, space, start)) {
    log::print(log::Channel::autotune, "{}: {} (recorded)", name, to_string(*recorded));
    return *recorded;
  }
  const SearchResult result = strategy.search(space, start, bench, options);
  if (result.trials.empty()) return result.best;  // nothing was measured, so there is nothing to keep
  log::print(log::Channel::autotune, "{}: {} of {} configurations measured on {}\n{}", name,
             result.trials.size(), space.size(), key.gpu, table_of(result));
  record_config(records, key, start, result.best);
  return result.best;
}

}  // namespace stax::tuning
