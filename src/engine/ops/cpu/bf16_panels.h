#pragma once

#include <cstdint>

#include "device/element.h"

// Products of bf16 by the instruction of AVX512-BF16 that adds two products to a float (VDPBF16PS): how its operands
// are laid out, and the product of one tile in registers.
namespace tprimat::engine {

// Whether this CPU has that instruction, and nothing faster for products of bf16 (AMX).
bool has_bf16_pairs();

// One operand of a product: `count` lines (rows of the left factor, columns of the right one) of `length` elements.
// Element k of line i is at data[i·line_stride + k·step]; one of the strides is 1.
struct Bf16Lines {
  const bf16* data;
  int64_t count, length;
  int64_t line_stride, step;
};

// Lines [line, line + count) and elements [begin, begin + length) of an operand. Lines that it lacks count as zero.
struct Bf16Part {
  int64_t line, count, begin, length;
};

// A packed operand is a row of panels. A panel holds, for each pair of elements (k, k + 1), the pairs of all its lines
// side by side. Lines past the last and the odd element out are zero. A tile of a large product is one panel of each
// side: 8×48 floats, which is 24 of the 32 registers.
enum class Side : uint8_t { left, right };
constexpr int64_t panel_lines(Side side) { return side == Side::left ? 8 : 48; }
inline int64_t pair_count(int64_t length) { return (length + 1) / 2; }
inline int64_t panel_size(Side side, int64_t length) { return panel_lines(side) * pair_count(length) * 2; }
// Elements to allow for; packing goes by 16 lines, so the left side may have one panel too many.
int64_t packed_size(Side side, int64_t lines, int64_t length);

// One of the shares in which several threads pack a part together.
struct PackShare {
  int64_t index = 0, of = 1;
};
void pack_panels(Side side, const Bf16Lines& from, const Bf16Part& part, bf16* panels, const PackShare& share = {});

// Where a tile goes: c = left·rightᵀ + addend (nullptr: nothing to add). C is float or bf16.
template <class C>
struct Bf16Tile {
  int64_t rows, cols;
  C* c;
  int64_t c_stride;
  const float* addend;
  int64_t addend_stride;
};
// The left side of a tile: pair k of line r at data[r·line + k·pair]. A packed panel is {panel, 2, 2·8}; rows of whole
// pairs that lie in memory one element after the other need no packing: {row, row_stride, 2}.
struct LeftTile {
  const bf16* data;
  int64_t line, pair;
};
template <class C>
void multiply_panels(const LeftTile& left, const bf16* right_panel, int64_t pairs, const Bf16Tile<C>& tile);

// Small products, all within the cache. The right operand lies in one panel of a multiple of 16 lines. The left one
// lies anywhere: pair k of line r at left[r·left_line + k·left_pair], so that a row-major matrix needs no packing
// (left_pair = 2), nor does the transpose of an interleaved one (left_line = 2).
void pack_whole_panel(const Bf16Lines& from, int64_t panel_lines, bf16* panel);
struct SmallProduct {
  LeftTile left;
  const bf16* right;
  int64_t rows, cols, pairs;  // cols: lines of the panel
  float* c;                   // rows×cols
};
void multiply_small(const SmallProduct& product, bool accumulate);

}  // namespace tprimat::engine
