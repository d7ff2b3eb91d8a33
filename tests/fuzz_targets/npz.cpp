#include "tensor/files/npz.h"

#include "tests/fuzz_targets/fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return stax::fuzzing::with_file(data, size, [](const std::string& path) {
    const stax::files::NpzFile file(path);
    for (const std::string& name : file.names()) stax::fuzzing::touch(file.array(name));
  });
}
