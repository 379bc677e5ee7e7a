#include "ops/cpu/bf16_attention.h"

#include <cmath>

#include "base/check.h"
#include "ops/cpu/amx_attention.h"
#include "ops/cpu/bf16_attention_tiles.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine {
namespace {

struct ForwardBuffers {
  bf16 *keys, *values;     // of the group
  bf16* powers;            // 64×64
  float *scores, *output;  // 64×64, 64×width
  RunningTile* running;    // the largest scores before they are scaled
};

// The largest of one query's 64 scores; −∞ where it sees none.
template <bool IsPartial>
TPRIMAT_AVX512_BF16 float largest_score(const float* scores, uint64_t visible) {
  __m512 top = _mm512_set1_ps(k_minus_infinity);
  for (int64_t c = 0; c < k_tile; c += k_lanes) {
    const __m512 larger = _mm512_max_ps(top, _mm512_loadu_ps(scores + c));
    top = IsPartial ? _mm512_mask_mov_ps(top, lanes_of(visible, c), larger) : larger;
  }
  return _mm512_reduce_max_ps(top);
}

// powers ← 2^(scale·(scores − largest)), 0 for keys out of sight; returns their sum. The largest gives 2^0,
// however large it is.
template <bool IsPartial>
TPRIMAT_AVX512_BF16 float raise_scores(const float* scores, uint64_t visible, float scale, float largest,
                                       bf16* powers) {
  __m512 sum = _mm512_setzero_ps();
  const auto power_of = [&](int64_t c) TPRIMAT_AVX512_BF16 {
    const __m512 less = _mm512_sub_ps(_mm512_loadu_ps(scores + c), _mm512_set1_ps(largest));
    const __m512 power = power_of_two(_mm512_mul_ps(less, _mm512_set1_ps(scale)));
    return IsPartial ? _mm512_maskz_mov_ps(lanes_of(visible, c), power) : power;
  };
  for (int64_t c = 0; c < k_tile; c += 2 * k_lanes) {
    const __m512 low = power_of(c), high = power_of(c + k_lanes);
    sum = _mm512_add_ps(sum, _mm512_add_ps(low, high));
    _mm512_storeu_si512(powers + c, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  return _mm512_reduce_add_ps(sum);
}

// Brings the sums of 16 queries to the new largest scores; shrink: what their output is to be multiplied by.
TPRIMAT_AVX512_BF16 void renew_largest(const float* top, float scale, float* largest, float* sums, float* shrink) {
  const __m512 old = _mm512_loadu_ps(largest);
  const __m512 renewed = _mm512_max_ps(old, _mm512_loadu_ps(top));
  const __mmask16 has_grown = _mm512_cmp_ps_mask(old, renewed, _CMP_NEQ_UQ);
  const __m512 less = _mm512_mul_ps(_mm512_sub_ps(old, renewed), _mm512_set1_ps(scale));
  const __m512 factor = _mm512_mask_mov_ps(_mm512_set1_ps(1.0f), has_grown, power_of_two(less));
  _mm512_storeu_ps(largest, renewed);
  _mm512_storeu_ps(sums, _mm512_mul_ps(_mm512_loadu_ps(sums), factor));
  _mm512_storeu_ps(shrink, factor);
}

TPRIMAT_AVX512_BF16 void scale_row(float* row, int64_t width, float factor) {
  for (int64_t c = 0; c < width; c += k_lanes)
    _mm512_storeu_ps(row + c, _mm512_mul_ps(_mm512_loadu_ps(row + c), _mm512_set1_ps(factor)));
}

struct TilePair {
  int64_t query, key;
};

// A tile of queries and one of keys: from scores to powers, whose sums are added up. First the largest of all rows,
// then the powers, so that no row waits for the one before.
template <bool IsPartial>
void fold_scores(const AttentionTiles& t, const ForwardBuffers& b, const TilePair& tile, int64_t rows) {
  const float scale = t.scale * k_log2_e;
  std::array<uint64_t, k_tile> visible;
  std::array<float, k_tile> top, shrink;
  top.fill(k_minus_infinity);
  for (int64_t r = 0; r < rows; ++r) {
    const auto row = static_cast<size_t>(r);
    visible[row] = IsPartial ? visible_keys(t, t.position(tile.query) + r, tile.key * k_tile) : 0;
    top[row] = largest_score<IsPartial>(b.scores + r * k_tile, visible[row]);
  }
  float *const largest = b.running->largest.data(), *const sums = b.running->sums.data();
  for (int64_t r = 0; r < rows; r += k_lanes)
    renew_largest(top.data() + r, scale, largest + r, sums + r, shrink.data() + r);
  for (int64_t r = 0; r < rows; ++r) {
    const auto row = static_cast<size_t>(r);
    sums[r] += raise_scores<IsPartial>(b.scores + r * k_tile, visible[row], scale, largest[r], b.powers + r * k_tile);
    if (tile.key > t.first_key_tile(tile.query)) scale_row(b.output + r * t.width, t.width, shrink[row]);
  }
}

// One tile of queries of one head against all keys it may see; leaves the output times the sum of each row.
void attend(const AttentionTiles& t, const ForwardBuffers& b, const QueryTile& queries, int64_t tile) {
  std::fill(b.output, b.output + k_tile * t.width, 0.0f);
  *b.running = {};
  for (int64_t key_tile = t.first_key_tile(tile); key_tile < t.end_key_tile(tile); ++key_tile) {
    const int64_t at = key_tile * k_tile * t.width;
    score(t, queries, b.keys + at, b.scores);
    if (t.needs_mask(tile, key_tile))
      fold_scores<true>(t, b, {tile, key_tile}, queries.count);
    else
      fold_scores<false>(t, b, {tile, key_tile}, queries.count);
    multiply_small({b.powers, k_tile, b.values + at, queries.count, t.width, pairs_in_tile(t, key_tile), b.output},
                   true);
  }
}

void forward_group(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<bf16>& inputs,
                   const HeadRows<bf16>& y, float* logsumexp) {
  const int64_t whole = t.key_length() * t.width, square = k_tile * k_tile;
  TileScratch& scratch = thread_scratch(t);
  RunningTile running;
  const ForwardBuffers b{take_bf16(scratch, whole), take_bf16(scratch, whole),      take_bf16(scratch, square),
                         scratch.take(square),      scratch.take(k_tile * t.width), &running};
  pack_across(t, inputs.key, group, b.keys);
  pack_along(t, inputs.value, group, b.values);
  t.visit_queries(group, [&](int64_t head, int64_t tile) {
    attend(t, b, query_tile(t, inputs.query, group, head, tile), tile);
    bf16* const out = t.head(y, group.batch, head, tile * k_tile);
    for (int64_t r = 0; r < t.rows(tile); ++r) {
      const float largest = running.largest[static_cast<size_t>(r)], sum = running.sums[static_cast<size_t>(r)];
      logsumexp[t.statistic(group, head, tile * k_tile + r)] = largest * t.scale + std::log(sum);
      prefetch_row<For::writing>(out + (r + k_rows_ahead) * y.row_stride, t.shape.head_dim);
      // A query that sees no key gets zeros.
      const float share = t.sees_nothing(t.position(tile) + r) ? 0.0f : 1.0f / sum;
      narrow_row(t, b.output + r * t.width, share, false, out + r * y.row_stride);
    }
  });
}

}  // namespace

// An odd head would make the last pair of a row reach into the next head.
bool has_bf16_attention(const AttentionShape& shape) { return has_bf16_pairs() && shape.head_dim % 2 == 0; }

void bf16_attention_forward(const AttentionShape& shape, const AttentionInputs<bf16>& inputs, const HeadRows<bf16>& y,
                            float* logsumexp) {
  if (has_amx()) return amx::attention_forward(shape, inputs, y, logsumexp);
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { forward_group(tiles, group, inputs, y, logsumexp); });
}

}  // namespace tprimat::engine

#else

namespace tprimat::engine {
bool has_bf16_attention(const AttentionShape&) { return false; }
void bf16_attention_forward(const AttentionShape&, const AttentionInputs<bf16>&, const HeadRows<bf16>&, float*) {
  CHECK(false);
}
}  // namespace tprimat::engine
#endif
