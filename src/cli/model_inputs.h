// What a model is given on the command line: NAME=FILE.npy for each input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontends/onnx_program.h"

namespace stax::cli {

/// The arrays in the order of the model's inputs. UserError for a name that the model does not have, an input
/// that is not given, and files that cannot be read.
std::vector<Tensor> read_inputs(const onnx::OnnxProgram& program, const std::vector<std::string>& given);

/// Zeros of the declared shapes, with `batch` (1 where it is not given) for dimensions that have no fixed
/// length. UserError for inputs without a declared dtype or rank, and for a batch where each length is fixed.
std::vector<Tensor> empty_inputs(const onnx::OnnxProgram& program, const std::optional<int64_t>& batch);

}  // namespace stax::cli
