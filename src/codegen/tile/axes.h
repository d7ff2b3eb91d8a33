// The axes that a GPU kernel may have: what they are called in its source, and where they lie in its grid.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stax::codegen {

/// Positions of the axes, also bits of a set of axes.
enum class TileAxisKind : uint8_t { z, y, x, r0 };
inline constexpr int kTileAxes = 4;
using AxisSet = uint8_t;
constexpr AxisSet axis_bit(TileAxisKind axis) {
  return static_cast<AxisSet>(1U << static_cast<unsigned>(axis));
}

struct TileAxisFacts {
  TileAxisKind kind;
  std::string_view name;    ///< in words
  std::string_view prefix;  ///< of its variables, "x" and a number, and of "xindex", "xoffset" and "xnumel"
  std::string_view mask;    ///< where its positions lie inside it
  std::string_view block;   ///< the parameter of its block's size
  int grid_dimension;       ///< along which its instances lie, 0 to 2; -1: every instance covers it
  int64_t largest_block;    ///< of any configuration: masks are left out only where it divides the axis
};

/// By kind.
inline constexpr std::array<TileAxisFacts, kTileAxes> kTileAxisFacts = {{
    {TileAxisKind::z, "z", "z", "zmask", "ZBLOCK", 2, 1024},
    {TileAxisKind::y, "y", "y", "ymask", "YBLOCK", 1, 1024},
    {TileAxisKind::x, "x", "x", "xmask", "XBLOCK", 0, 4096},
    {TileAxisKind::r0, "r0", "r0_", "r0_mask", "R0_BLOCK", -1, 65536},
}};

constexpr const TileAxisFacts& facts_of(TileAxisKind kind) {
  return kTileAxisFacts[static_cast<size_t>(kind)];
}

}  // namespace stax::codegen
