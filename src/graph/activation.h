// What a product of matrices may end in: the one list of it, for passes, libraries and kernels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "support/check.h"

namespace stax::graph {

/// A function of each element of a product.
enum class Activation : uint8_t { none, relu, gelu_tanh };

struct ActivationRow {
  Activation activation;
  std::string_view name;       // as product_epilogue's argument, and in keys
  std::string_view op = {};    // the operator that it is; empty: nothing is computed
  std::string_view mode = {};  // that operator's second argument, where it has one
};
inline constexpr std::array<ActivationRow, 3> kActivations = {{
    {Activation::none, "none"},
    {Activation::relu, "relu", "relu"},
    {Activation::gelu_tanh, "gelu_tanh", "gelu", "tanh"},
}};

inline const ActivationRow& row_of(Activation activation) {
  return *std::ranges::find(kActivations, activation, &ActivationRow::activation);
}

inline std::string_view name(Activation activation) {
  return row_of(activation).name;
}

/// The activation of that name; an internal error where there is none.
inline Activation activation_named(std::string_view name) {
  const auto* const row = std::ranges::find(kActivations, name, &ActivationRow::name);
  STAX_ASSERT(row != kActivations.end(), "[product] no activation is called '{}'", name);
  return row->activation;
}

}  // namespace stax::graph
