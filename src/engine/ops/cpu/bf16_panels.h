#pragma once

#include <cstdint>

#include "ops/cpu/bf16_lines.h"

// Products of bf16 by the instruction of AVX512-BF16 that adds two products to a float (VDPBF16PS): how its operands
// are laid out, and the product of one tile in registers.
namespace tprimat::engine {

// Whether this CPU has that instruction.
bool has_bf16_pairs();

// A packed operand is a row of panels. A panel holds, for each pair of elements (k, k + 1), the pairs of all its lines
// side by side. Lines past the last and the odd element out are zero. A tile of a large product is one panel of each
// side: 8×48 floats, which is 24 of the 32 registers.
constexpr int64_t panel_lines(Side side) { return side == Side::left ? 8 : 48; }
inline int64_t pair_count(int64_t length) { return (length + 1) / 2; }
inline int64_t panel_size(Side side, int64_t length) { return panel_lines(side) * pair_count(length) * 2; }
// Elements to allow for; packing goes by 16 lines, so the left side may have one panel too many.
int64_t packed_size(Side side, int64_t lines, int64_t length);

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

// Small products, all within the cache. The right operand lies in one panel of a multiple of 16 lines, the left one in
// rows, each of consecutive elements.
void pack_whole_panel(const Bf16Lines& from, int64_t panel_lines, bf16* panel);
// Lines that lie across, as rows of `row_length` elements, a multiple of 32; `lines` is one of 16. What `from` lacks is
// zero.
void pack_rows(const Bf16Lines& from, int64_t lines, int64_t row_length, bf16* rows);
struct SmallProduct {
  const bf16* left;
  int64_t left_stride;
  const bf16* right;
  int64_t rows, cols, pairs;  // cols: lines of the panel
  float* c;                   // rows×cols
};
void multiply_small(const SmallProduct& product, bool accumulate);

}  // namespace tprimat::engine
