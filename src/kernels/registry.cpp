#include "kernels/registry.h"

#include <string>
#include <unordered_map>

#include "support/check.h"

namespace stax::kernels {
namespace {

// One row an operator: its full name and its function.
const std::unordered_map<std::string, ExternalFunction>& externals() {
  static const std::unordered_map<std::string, ExternalFunction> table = {
      {"mm", multiply_matrices},
      {"mm.dtype", multiply_matrices},
      {"bmm", multiply_matrices},
      {"bmm.dtype", multiply_matrices},
      {"product_epilogue", multiply_with_epilogue},
      {"scatter_combine", scatter_combine},
      {"searchsorted.Tensor", searchsorted},
      {"tril_indices", tril_indices},
      {"triu_indices", triu_indices},
      {"sort.stable", sort_stable},
      {"topk", topk},
      {"kthvalue", kthvalue},
      {"median", median},
      {"median.dim", median_dim},
      {"nanmedian", nanmedian},
      {"nanmedian.dim", nanmedian_dim},
      {"mode", mode},
      {"quantile_rows", quantile},
      {"nanquantile_rows", nanquantile},
      {"histc", histc},
      {"linalg_svdvals", singular_values},
      {"combinations", combinations},
      {"conv1d", convolution},
      {"conv2d", convolution},
      {"conv3d", convolution},
      {"conv_transpose1d", convolution_transposed},
      {"conv_transpose2d", convolution_transposed},
      {"conv_transpose3d", convolution_transposed},
  };
  return table;
}

// Those whose results depend on how many rows or images there are, and what is called instead where they may
// not.
const std::unordered_map<std::string, ExternalFunction>& batch_invariant_externals() {
  static const std::unordered_map<std::string, ExternalFunction> table = {
      {"mm", multiply_matrices_in_order},
      {"mm.dtype", multiply_matrices_in_order},
      {"bmm", multiply_matrices_in_order},
      {"bmm.dtype", multiply_matrices_in_order},
      {"conv1d", convolution_by_images},
      {"conv2d", convolution_by_images},
      {"conv3d", convolution_by_images},
      {"conv_transpose1d", convolution_transposed_by_images},
      {"conv_transpose2d", convolution_transposed_by_images},
      {"conv_transpose3d", convolution_transposed_by_images},
  };
  return table;
}

// What gains from knowing its constants.
const std::unordered_map<std::string, PrepareExternal>& preparations() {
  static const std::unordered_map<std::string, PrepareExternal> table = {
      {"mm", prepare_product},
      {"conv1d", prepare_convolution},
      {"conv2d", prepare_convolution},
      {"conv3d", prepare_convolution},
      {"conv_transpose1d", prepare_convolution_transposed},
      {"conv_transpose2d", prepare_convolution_transposed},
      {"conv_transpose3d", prepare_convolution_transposed},
  };
  return table;
}

const std::unordered_map<std::string, DynamicFunction>& dynamics() {
  static const std::unordered_map<std::string, DynamicFunction> table = {
      {"nonzero", nonzero},
      {"argwhere", nonzero},
      {"nonzero.as_tuple", nonzero_tuple},
      {"nonzero_numpy", nonzero_tuple},
      {"masked_select", masked_select},
      {"unique", unique},
      {"unique_consecutive", unique_consecutive},
      {"bincount", bincount},
      {"repeat_interleave.Tensor", repeat_positions},
      {"repeat_interleave.self_Tensor", repeat_interleave},
      {"one_hot.infer", one_hot},
      {"bind_value", bind_value},
  };
  return table;
}

template <class Table>
auto find_in(const Table& table, std::string_view name) {
  const auto it = table.find(std::string(name));
  STAX_ASSERT(it != table.end(), "kernels: there is no function '{}'", name);
  return it->second;
}

}  // namespace

ExternalFunction find_external(std::string_view name) {
  return find_in(externals(), name);
}

ExternalFunction find_batch_invariant_external(std::string_view name) {
  const auto it = batch_invariant_externals().find(std::string(name));
  return it == batch_invariant_externals().end() ? find_external(name) : it->second;
}

PrepareExternal find_prepare(std::string_view name) {
  const auto it = preparations().find(std::string(name));
  return it == preparations().end() ? nullptr : it->second;
}

DynamicFunction find_dynamic(std::string_view name) {
  return find_in(dynamics(), name);
}

}  // namespace stax::kernels
