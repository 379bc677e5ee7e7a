#pragma once

#include <algorithm>

#include "ops/cpu/amx_instructions.h"
#include "ops/cpu/amx_sums.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/bf16_attention_tiles.h"
#include "ops/cpu/transpose16.h"

// What both passes of attention by AMX share. Both go by strips of 32 queries and of 32 keys, packed as panels of
// tiles (amx_tiles.h), which lie in the second-level cache; the scores of a strip stay in the first.
#if TPRIMAT_HAS_AVX512_BF16
namespace tprimat::engine::amx {

inline constexpr int64_t k_strip = 32;
static_assert(k_strip == k_panel_lines && k_strip == k_step);

inline int64_t whole_strips(int64_t count) { return (count + k_strip - 1) / k_strip * k_strip; }

// Rows of one head from `first` on.
struct RowsOfHead {
  int64_t head, first, count;
};
// rows[r·stride] is row first + r.
struct StripRows {
  const bf16* rows;
  int64_t stride, count;  // rows that there are
};
inline StripRows strip_rows(const AttentionTiles& t, const HeadRows<const bf16>& of, int64_t batch,
                            const RowsOfHead& rows) {
  return {t.head(of, batch, rows.head, rows.first), of.row_stride, rows.count};
}

// Up to 32 rows as one strip, width·32 elements; what is missing is zero.
//   rows:    the left side of a product over head_dim
//   across:  the right side of a product over head_dim, whose columns are these rows
//   along:   the right side of a product over these rows, whose columns are head_dim
inline void pack_rows(const AttentionTiles& t, const StripRows& from, bf16* to) {
  amx::pack_panels(Side::left, {from.rows, from.count, t.shape.head_dim, from.stride, 1},
                   {0, k_strip, 0, t.shape.head_dim}, to);
}
inline void pack_across(const AttentionTiles& t, const StripRows& from, bf16* to) {
  amx::pack_panels(Side::right, {from.rows, from.count, t.shape.head_dim, from.stride, 1},
                   {0, k_strip, 0, t.shape.head_dim}, to);
}
inline void pack_along(const AttentionTiles& t, const StripRows& from, bf16* to) {
  amx::pack_panels(Side::right, {from.rows, t.shape.head_dim, from.count, 1, from.stride}, {0, t.width, 0, from.count},
                   to);
}

// The right side of a product: `to_next_block` elements lead from one 32 columns to the next.
struct RightPanels {
  const bf16* first;
  int64_t to_next_step, to_next_block;
};
inline RightPanels across(const AttentionTiles& t, const bf16* strip) {
  return {strip, k_step_size, k_strip * t.width};
}
inline RightPanels along(const AttentionTiles& t, const bf16* strip) { return {strip, k_strip * t.width, k_step_size}; }

// c = left·right, or c += left·right: 32 rows, `steps` times 32 elements, `blocks` times 32 columns.
struct StripProduct {
  LeftPanel left;
  RightPanels right;
  int64_t steps, blocks;
  float* c;
  int64_t c_stride;
  int64_t row_bytes() const { return c_stride * static_cast<int64_t>(sizeof(float)); }
};

// Where there are two steps, the left side stays in four tiles while all columns pass by.
inline void multiply_two_steps(const StripProduct& p) {
  load_tile<4>(p.left.first, p.left.row_bytes);
  load_tile<5>(p.left.first + p.left.to_second, p.left.row_bytes);
  load_tile<6>(p.left.first + p.left.to_next, p.left.row_bytes);
  load_tile<7>(p.left.first + p.left.to_next + p.left.to_second, p.left.row_bytes);
  for (int64_t tile = 0; tile < 2 * p.blocks; ++tile) {
    const LeftPanel right = packed_left(p.right.first + tile / 2 * p.right.to_next_block);
    const bf16* const from = right.first + tile % 2 * right.to_second;
    stream_tile<2>(from, right.row_bytes);
    stream_tile<3>(from + p.right.to_next_step, right.row_bytes);
    clear_tile<0>(), clear_tile<1>();
    add_product<0, 4, 2>(), add_product<1, 5, 2>();
    add_product<0, 6, 3>(), add_product<1, 7, 3>();
    float* const c = p.c + tile * k_tile_lines;
    store_tile<0>(c, p.row_bytes()), store_tile<1>(c + k_tile_lines * p.c_stride, p.row_bytes());
  }
}

inline void multiply(const StripProduct& p, bool accumulate) {
  if (p.steps == 2 && !accumulate) return multiply_two_steps(p);
  const int64_t row = p.row_bytes();
  for (int64_t block = 0; block < p.blocks; ++block) {
    LeftPanel left = p.left, right = packed_left(p.right.first + block * p.right.to_next_block);
    float *const top = p.c + block * k_panel_lines, *const bottom = top + k_tile_lines * p.c_stride;
    if (accumulate) {
      load_tile<0>(top, row), load_tile<1>(top + k_tile_lines, row);
      load_tile<2>(bottom, row), load_tile<3>(bottom + k_tile_lines, row);
    } else {
      clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
    }
    for (int64_t step = 0; step < p.steps; ++step) {
      load_step<false, true>(left, right), add_step();
      left.first += left.to_next, right.first += p.right.to_next_step;
    }
    store_tile<0>(top, row), store_tile<1>(top + k_tile_lines, row);
    store_tile<2>(bottom, row), store_tile<3>(bottom + k_tile_lines, row);
  }
}

// To the second-level cache. Assembly: GCC 12 takes a function that only prefetches for one without effect and leaves
// out its calls.
inline void fetch_row(const bf16* row, int64_t elements) {
  for (int64_t c = 0; c < elements; c += k_strip) asm volatile("prefetcht1 (%0)" ::"r"(row + c));
}

// 32 numbers times a factor, as a line of bf16.
TPRIMAT_INLINE_AVX512_BF16 inline void put_line(bf16* to, __mmask32 present, const float* from, float factor,
                                                bool streams) {
  const __m512 factors = _mm512_set1_ps(factor);
  store_line(
      to, present,
      narrow_both(_mm512_mul_ps(_mm512_load_ps(from), factors), _mm512_mul_ps(_mm512_load_ps(from + k_lanes), factors)),
      streams);
}

// The bytes of the whole tensor that these rows belong to.
template <class T>
int64_t tensor_bytes(const AttentionTiles& t, const HeadRows<T>& rows) {
  return t.shape.batch * rows.sequence_stride * static_cast<int64_t>(sizeof(T));
}

}  // namespace tprimat::engine::amx
#endif
