// Tensors in files: NumPy's .npy and .npz, and safetensors.
#pragma once

#include <map>
#include <string>

#include "stax/tensor.h"

namespace stax {

/// One array of a .npy file. UserError naming the file for malformed files and dtypes that Stax lacks.
STAX_API Tensor load_npy(const std::string& path);
/// Replaces the file whole or not at all.
STAX_API void save_npy(const std::string& path, const Tensor& tensor);

/// All arrays of a .npz archive by name.
STAX_API std::map<std::string, Tensor> load_npz(const std::string& path);
STAX_API void save_npz(const std::string& path, const std::map<std::string, Tensor>& tensors);

/// All tensors of a safetensors file by name.
STAX_API std::map<std::string, Tensor> load_safetensors(const std::string& path);
STAX_API void save_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors);

}  // namespace stax
