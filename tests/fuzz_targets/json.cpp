#include "support/json.h"

#include "tests/fuzz_targets/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return stax::fuzzing::expect_user_error_at_most([&] {
    const stax::Json value = stax::Json::parse({reinterpret_cast<const char*>(data), size});
    if (stax::Json::parse(value.dump()) != value || stax::Json::parse(value.dump(2)) != value) std::abort();
  });
}
