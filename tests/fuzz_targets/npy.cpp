#include "tensor/files/npy.h"

#include "tests/fuzz_targets/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return stax::fuzzing::with_file(
      data, size, [](const std::string& path) { stax::fuzzing::touch(stax::files::load_npy(path)); });
}
