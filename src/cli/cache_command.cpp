// stax cache: looks after the disk cache of compiled kernels.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include "cli/commands.h"
#include "runtime/code_cache.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::cli {
namespace {

runtime::CodeCache open_cache() {
  const std::string folder = runtime::CodeCache::default_folder();
  STAX_CHECK(!folder.empty(), "cache: there is no cache folder; set STAX_CACHE_DIR or HOME");
  runtime::CodeCache cache(folder);
  STAX_RUNTIME_CHECK(cache.problem().empty(), "cache: {}", cache.problem());
  return cache;
}

}  // namespace

int cache_list() {
  const runtime::CodeCache cache = open_cache();
  for (const auto& entry : cache.list()) {
    fmt::print("{} {:>9} bytes  used {:%Y-%m-%d %H:%M:%S}\n", entry.key, entry.bytes,
               fmt::localtime(static_cast<std::time_t>(entry.last_used)));
  }
  return 0;
}

int cache_size() {
  const runtime::CodeCache cache = open_cache();
  fmt::print("{} in {} in {}\n", counted(cache.size(), "byte"),
             counted(cache.list().size(), "entry", "entries"), cache.folder());
  return 0;
}

int cache_clear() {
  const runtime::CodeCache cache = open_cache();
  fmt::print("removed {} from {}\n", counted(cache.clear(), "entry", "entries"), cache.folder());
  return 0;
}

}  // namespace stax::cli
