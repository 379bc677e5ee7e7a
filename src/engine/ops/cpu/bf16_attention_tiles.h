#pragma once

#include <algorithm>
#include <array>

#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/bf16_panels.h"
#include "ops/cpu/bf16_vectors.h"

// What the passes of attention share whose products are of bf16.
#if TPRIMAT_HAS_AVX512_BF16
namespace tprimat::engine {

// Which of 64 keys one query sees: a bit for each.
static_assert(k_tile == 64);
inline uint64_t bits_below(int64_t count) {
  return count >= k_tile ? ~0ull : (1ull << std::max<int64_t>(count, 0)) - 1;
}
inline uint64_t visible_keys(const AttentionTiles& t, int64_t position, int64_t key) {
  return bits_below(t.end_key(position) - key) & ~bits_below(t.first_key(position) - key);
}
inline __mmask16 lanes_of(uint64_t keys, int64_t first) { return static_cast<__mmask16>(keys >> first); }

inline bf16* take_bf16(TileScratch& scratch, int64_t count) {
  return reinterpret_cast<bf16*>(scratch.take((count + 1) / 2));
}

inline int64_t keys_in_tile(const AttentionTiles& t, int64_t tile) { return std::min(k_tile, t.keys - tile * k_tile); }

// The keys or values of a group, tile by tile, as right operands.
//   across: a product over head_dim whose columns are keys, for scores;   along: a product over keys, columns head_dim
inline void pack_across(const AttentionTiles& t, const HeadRows<const bf16>& rows, const HeadGroup& group, bf16* to) {
  for (int64_t tile = 0; tile < t.key_tiles; ++tile) {
    const bf16* const first = t.head(rows, group.batch, group.kv_head, tile * k_tile);
    pack_whole_panel({first, keys_in_tile(t, tile), t.shape.head_dim, rows.row_stride, 1}, k_tile,
                     to + tile * k_tile * t.width);
  }
}
inline void pack_along(const AttentionTiles& t, const HeadRows<const bf16>& rows, const HeadGroup& group, bf16* to) {
  for (int64_t tile = 0; tile < t.key_tiles; ++tile) {
    const bf16* const first = t.head(rows, group.batch, group.kv_head, tile * k_tile);
    pack_whole_panel({first, t.shape.head_dim, keys_in_tile(t, tile), 1, rows.row_stride}, t.width,
                     to + tile * k_tile * t.width);
  }
}

inline int64_t pairs_in_tile(const AttentionTiles& t, int64_t tile) { return pair_count(keys_in_tile(t, tile)); }

// One tile of rows of one head, in place.
struct QueryTile {
  const bf16* rows;
  int64_t stride, count;
};
inline QueryTile query_tile(const AttentionTiles& t, const HeadRows<const bf16>& of, const HeadGroup& group,
                            int64_t head, int64_t tile) {
  return {t.head(of, group.batch, head, tile * k_tile), of.row_stride, t.rows(tile)};
}

// scores (64×64) = rows · panelᵀ over head_dim.
inline void score(const AttentionTiles& t, const QueryTile& rows, const bf16* panel, float* scores) {
  multiply_small({rows.rows, rows.stride, panel, rows.count, k_tile, pair_count(t.shape.head_dim), scores}, false);
}

// Rows of float, `width` apart, times their factors, as rows of bf16.
TPRIMAT_AVX512_BF16 inline void narrow_row(const AttentionTiles& t, const float* from, float factor, bool accumulate,
                                           bf16* to) {
  for (int64_t c = 0; c < t.shape.head_dim; c += k_lanes) {
    const __mmask16 present = lanes_below(t.shape.head_dim - c);
    __m512 value = _mm512_mul_ps(_mm512_loadu_ps(from + c), _mm512_set1_ps(factor));
    if (accumulate) value = _mm512_add_ps(value, widen(to + c, present));
    _mm256_mask_storeu_epi16(to + c, present, narrow(value));
  }
}

}  // namespace tprimat::engine
#endif
