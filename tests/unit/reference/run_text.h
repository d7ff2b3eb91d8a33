// Runs loop programs written as text.
#pragma once

#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loops/parse.h"
#include "reference/executor.h"

namespace stax::reference {

/// Bytes of one buffer, and what they are read as.
struct Data {
  std::vector<std::byte> bytes;
  template <class T>
  static Data of(const std::vector<T>& values) {
    Data d;
    d.bytes.resize(values.size() * sizeof(T) + 1);
    for (size_t i = 0; i < values.size(); ++i) {
      const T v = values[i];
      std::memcpy(d.bytes.data() + i * sizeof(T), &v, sizeof(T));
    }
    return d;
  }
  template <class T>
  std::vector<T> as(size_t count) const {
    std::vector<T> out(count);
    for (size_t i = 0; i < count; ++i) {
      T v;
      std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = v;
    }
    return out;
  }
};

/// Parses, verifies, prepares and runs; returns the outputs, each of `bytes` bytes, zero beforehand.
inline std::vector<Data> run_text(std::string_view text, std::vector<Data>& inputs, size_t bytes,
                                  std::vector<loops::Constant> scalars = {},
                                  const std::unordered_map<Symbol, int64_t>* symbols = nullptr) {
  loops::Program program = loops::parse_program(text);
  loops::verify(program);
  const auto executable = Executable::prepare(std::move(program));
  std::vector<Data> outputs(executable->program().outputs.size());
  std::vector<void*> in, out;
  for (Data& d : inputs) in.push_back(d.bytes.data());
  for (Data& d : outputs) {
    d.bytes.resize(bytes);
    out.push_back(d.bytes.data());
  }
  executable->run({in, out, scalars, symbols});
  return outputs;
}

/// One output, read as T.
template <class T>
std::vector<T> run_one(std::string_view text, std::vector<Data> inputs, size_t count,
                       std::vector<loops::Constant> scalars = {}) {
  return run_text(text, inputs, count * 8 + 64, std::move(scalars)).at(0).template as<T>(count);
}

}  // namespace stax::reference
