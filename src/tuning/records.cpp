#include "tuning/records.h"

#include "support/hash.h"

namespace stax::tuning {

std::optional<Json> TuningRecords::find(const Json& facts) const {
  const auto text = cache_.read(sha256_hex(facts.dump()));
  return text ? std::optional(Json::parse(*text)) : std::nullopt;
}

void TuningRecords::put(const Json& facts, const Json& record) const {
  (void)cache_.write(sha256_hex(facts.dump()), record.dump());
}

}  // namespace stax::tuning
