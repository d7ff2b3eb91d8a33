#include "tensor/files/safetensors.h"

#include "tests/fuzz_targets/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return stax::fuzzing::with_file(data, size, [](const std::string& path) {
    const stax::files::SafetensorsFile file(path);
    for (const auto& entry : file.entries()) {
      stax::fuzzing::expect_user_error_at_most([&] { stax::fuzzing::touch(file.tensor(entry.name)); });
    }
  });
}
