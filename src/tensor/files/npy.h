// NumPy's .npy files, format versions 1.0, 2.0 and 3.0.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensor/files/array_view.h"

namespace stax::files {

/// Reads one array. Both byte orders and both index orders are read; big-endian data is swapped into a copy,
/// everything else stays in the mapped file. Dtypes: b1, u1, i1, i2, i4, i8, f2, f4, f8, and V2, which is
/// bfloat16: NumPy has no such dtype, and two raw bytes is what the ml_dtypes package saves it as. Throws
/// UserError naming the file for other dtypes (object arrays, which hold Python pickles, among them),
/// malformed or truncated files, and bytes after the array.
ArrayView load_npy(const std::string& path);

/// The same for the bytes of a .npy file that `owner` keeps alive; `what` names them in errors.
ArrayView parse_npy(std::span<const std::byte> bytes, const std::shared_ptr<void>& owner,
                    std::string_view what);

/// Writes one array, replacing the file whole or not at all; bfloat16 as '<V2'. A fortran_order array stays
/// one. Throws UserError for an inconsistent view, RuntimeError when the system cannot write.
void save_npy(const std::string& path, const ArrayView& array);

/// The header that stands before the array's bytes; its length is a multiple of 64.
std::string npy_header(const ArrayView& array);

}  // namespace stax::files
