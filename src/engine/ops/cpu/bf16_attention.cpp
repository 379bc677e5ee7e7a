#include "ops/cpu/bf16_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/bf16_panels.h"
#include "ops/cpu/transpose16.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine {
namespace {

constexpr int64_t k_lanes = 16;

TPRIMAT_AVX512_BF16 inline __m512 widen(const bf16* from, __mmask16 present) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(present, from)), 16));
}
TPRIMAT_AVX512_BF16 inline __m256i narrow(__m512 values) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values));
}

// e^x for x not above 0, to 2 units in the last place: x = n·ln 2 + r, and the Taylor series of e^r. NaN stays NaN.
TPRIMAT_AVX512_BF16 inline __m512 exponential(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-104.0f), x);  // e^-104 is 0 in float; the second operand passes NaN on
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 power = _mm512_set1_ps(1.0f / 720.0f);
  for (const float coefficient : {1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f, 1.0f, 1.0f})
    power = _mm512_fmadd_ps(power, r, _mm512_set1_ps(coefficient));
  return _mm512_scalef_ps(power, n);
}

__mmask16 lanes_below(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, k_lanes)) - 1u);
}

// Which columns of a tile of keys one query sees: a bit for each.
struct Visible {
  std::array<__mmask16, k_tile / k_lanes> lanes;
};
constexpr Visible k_all_visible{{0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF}};

Visible visible_keys(const AttentionTiles& t, int64_t position, int64_t key_tile) {
  const int64_t start = key_tile * k_tile, first = t.first_key(position) - start, end = t.end_key(position) - start;
  Visible visible{};
  for (int64_t i = 0; i < k_tile / k_lanes; ++i)
    visible.lanes[static_cast<size_t>(i)] =
        static_cast<__mmask16>(lanes_below(end - i * k_lanes) & ~lanes_below(first - i * k_lanes));
  return visible;
}

// What each query of a tile sees of one tile of keys.
struct TileSight {
  TileSight(const AttentionTiles& tiles, int64_t query_tile, int64_t key_tile)
      : t(tiles), position(t.position(query_tile)), keys(key_tile), is_partial(t.needs_mask(query_tile, key_tile)) {}
  Visible of(int64_t row) const { return is_partial ? visible_keys(t, position + row, keys) : k_all_visible; }

  const AttentionTiles& t;
  int64_t position, keys;
  bool is_partial;
};

bf16* take_bf16(TileScratch& scratch, int64_t count) { return reinterpret_cast<bf16*>(scratch.take((count + 1) / 2)); }

int64_t keys_in_tile(const AttentionTiles& t, int64_t tile) { return std::min(k_tile, t.keys - tile * k_tile); }

// The keys or values of a group, tile by tile, as right operands.
//   across: a product over head_dim whose columns are keys, for scores;   along: a product over keys, columns head_dim
void pack_across(const AttentionTiles& t, const HeadRows<const bf16>& rows, const HeadGroup& group, bf16* to) {
  for (int64_t tile = 0; tile < t.key_tiles; ++tile) {
    const bf16* const first = t.head(rows, group.batch, group.kv_head, tile * k_tile);
    pack_whole_panel({first, keys_in_tile(t, tile), t.shape.head_dim, rows.row_stride, 1}, k_tile,
                     to + tile * k_tile * t.width);
  }
}
void pack_along(const AttentionTiles& t, const HeadRows<const bf16>& rows, const HeadGroup& group, bf16* to) {
  for (int64_t tile = 0; tile < t.key_tiles; ++tile) {
    const bf16* const first = t.head(rows, group.batch, group.kv_head, tile * k_tile);
    pack_whole_panel({first, t.shape.head_dim, keys_in_tile(t, tile), 1, rows.row_stride}, t.width,
                     to + tile * k_tile * t.width);
  }
}

// One tile of rows of one head, in place.
struct QueryTile {
  const bf16* rows;
  int64_t stride, count;
};
QueryTile query_tile(const AttentionTiles& t, const HeadRows<const bf16>& of, const HeadGroup& group, int64_t head,
                     int64_t tile) {
  return {t.head(of, group.batch, head, tile * k_tile), of.row_stride, t.rows(tile)};
}

// scores (64×64) = rows · panelᵀ over head_dim.
void score(const AttentionTiles& t, const QueryTile& rows, const bf16* panel, float* scores) {
  multiply_small({rows.rows, rows.stride, panel, rows.count, k_tile, pair_count(t.shape.head_dim), scores}, false);
}

struct ForwardBuffers {
  bf16 *keys, *values, *powers;
  float *scores, *output;
  RunningRow* running;
};

// powers ← e^(scale·scores − largest so far), 0 for keys out of sight; the output so far is brought to the same
// largest.
TPRIMAT_AVX512_BF16 void fold_scores(const AttentionTiles& t, const ForwardBuffers& b, int64_t r,
                                     const Visible& visible) {
  const float scale = t.scale;
  const float* const scores = b.scores + r * k_tile;
  bf16* const powers = b.powers + r * k_tile;
  RunningRow& row = b.running[r];
  __m512 top = _mm512_set1_ps(k_minus_infinity);
  for (size_t i = 0; i < visible.lanes.size(); ++i)
    top = _mm512_mask_max_ps(top, visible.lanes[i], top, _mm512_loadu_ps(scores + i * k_lanes));
  const float largest = std::max(row.largest, _mm512_reduce_max_ps(top) * scale);
  __m512 sum = _mm512_setzero_ps();
  const auto power_of = [&](size_t i) TPRIMAT_AVX512_BF16 {
    const __m512 score = _mm512_loadu_ps(scores + i * k_lanes);
    const __m512 scaled = _mm512_fmsub_ps(score, _mm512_set1_ps(scale), _mm512_set1_ps(largest));
    return _mm512_maskz_mov_ps(visible.lanes[i], exponential(scaled));
  };
  for (size_t i = 0; i < visible.lanes.size(); i += 2) {
    const __m512 low = power_of(i), high = power_of(i + 1);
    sum = _mm512_add_ps(sum, _mm512_add_ps(low, high));
    // As a tile reads it: a load waits for what two stores left.
    _mm512_storeu_si512(powers + i * k_lanes, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  if (largest == row.largest) {
    row.sum += _mm512_reduce_add_ps(sum);  // nothing where the query sees none of the keys
    return;
  }
  const bool has_output = row.largest != k_minus_infinity;
  const float shrink = std::exp(row.largest - largest);
  row = {largest, row.sum * shrink + _mm512_reduce_add_ps(sum)};
  if (!has_output) return;
  for (int64_t c = 0; c < t.width; c += k_lanes) {
    float* const output = b.output + r * t.width + c;
    _mm512_storeu_ps(output, _mm512_mul_ps(_mm512_loadu_ps(output), _mm512_set1_ps(shrink)));
  }
}

// One tile of queries of one head against all keys it may see; leaves the output times the sum of each row.
void attend(const AttentionTiles& t, const ForwardBuffers& b, const QueryTile& queries, int64_t tile) {
  std::fill(b.output, b.output + k_tile * t.width, 0.0f);
  std::fill(b.running, b.running + k_tile, RunningRow{});
  for (int64_t key_tile = t.first_key_tile(tile); key_tile < t.end_key_tile(tile); ++key_tile) {
    const int64_t at = key_tile * k_tile * t.width;
    score(t, queries, b.keys + at, b.scores);
    const TileSight sight(t, tile, key_tile);
    for (int64_t r = 0; r < queries.count; ++r) fold_scores(t, b, r, sight.of(r));
    multiply_small(
        {b.powers, k_tile, b.values + at, queries.count, t.width, pair_count(keys_in_tile(t, key_tile)), b.output},
        true);
  }
}

// Rows of float, `width` apart, times their factors, as rows of bf16.
TPRIMAT_AVX512_BF16 void narrow_row(const AttentionTiles& t, const float* from, float factor, bool accumulate,
                                    bf16* to) {
  for (int64_t c = 0; c < t.shape.head_dim; c += k_lanes) {
    const __mmask16 present = lanes_below(t.shape.head_dim - c);
    __m512 value = _mm512_mul_ps(_mm512_loadu_ps(from + c), _mm512_set1_ps(factor));
    if (accumulate) value = _mm512_add_ps(value, widen(to + c, present));
    _mm256_mask_storeu_epi16(to + c, present, narrow(value));
  }
}

void forward_group(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<bf16>& inputs,
                   const HeadRows<bf16>& y, float* logsumexp) {
  const TileRegisters registers;
  TileScratch& scratch = thread_scratch(t);
  RunningRow running[k_tile];
  const int64_t whole = t.key_length() * t.width;
  const ForwardBuffers b{take_bf16(scratch, whole),           take_bf16(scratch, whole),
                         take_bf16(scratch, k_tile * k_tile), scratch.take(k_tile * k_tile),
                         scratch.take(k_tile * t.width),      running};
  pack_across(t, inputs.key, group, b.keys);
  pack_along(t, inputs.value, group, b.values);
  t.visit_queries(group, [&](int64_t head, int64_t tile) {
    attend(t, b, query_tile(t, inputs.query, group, head, tile), tile);
    bf16* const out = t.head(y, group.batch, head, tile * k_tile);
    for (int64_t r = 0; r < t.rows(tile); ++r) {
      const RunningRow& row = running[r];
      logsumexp[t.statistic(group, head, tile * k_tile + r)] = row.largest + std::log(row.sum);
      // A query that sees no key gets zeros.
      const float share = t.sees_nothing(t.position(tile) + r) ? 0.0f : 1.0f / row.sum;
      narrow_row(t, b.output + r * t.width, share, false, out + r * y.row_stride);
    }
  });
}

struct BackwardBuffers {
  bf16 *keys_across, *keys_along, *values_across;  // of the group
  bf16 *queries_by_dim, *doutput_by_dim;           // of one tile of queries: a row per element of the head
  bf16* dscores;                                   // 64×64, a row per query
  bf16 *power_pairs, *dscore_pairs;                // panels of 64 keys: the pairs of two queries side by side
  float *scores, *dpowers, *dqueries;              // of one tile
  float* transposed;                               // a tile on its way from columns to rows
  float *dkeys, *dvalues;  // of the group: in each tile of 64 keys, a row per element of the head
};

BackwardBuffers prepare_backward(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<bf16>& inputs) {
  TileScratch& scratch = thread_scratch(t);
  const int64_t whole = t.key_length() * t.width, tile = k_tile * t.width, square = k_tile * k_tile;
  BackwardBuffers b{};
  for (bf16** buffer : {&b.keys_across, &b.keys_along, &b.values_across}) *buffer = take_bf16(scratch, whole);
  for (bf16** buffer : {&b.queries_by_dim, &b.doutput_by_dim}) *buffer = take_bf16(scratch, tile);
  for (bf16** buffer : {&b.dscores, &b.power_pairs, &b.dscore_pairs}) *buffer = take_bf16(scratch, square);
  for (float** buffer : {&b.scores, &b.dpowers}) *buffer = scratch.take(square);
  for (float** buffer : {&b.dqueries, &b.transposed}) *buffer = scratch.take(tile);
  for (float** buffer : {&b.dkeys, &b.dvalues}) {
    *buffer = scratch.take(whole);
    std::fill(*buffer, *buffer + whole, 0.0f);
  }
  pack_across(t, inputs.key, group, b.keys_across);
  pack_along(t, inputs.key, group, b.keys_along);
  pack_across(t, inputs.value, group, b.values_across);
  return b;
}

// What the backward pass needs of one query, and what it sees of the tile of keys.
struct QueryRow {
  float logsumexp, dot;
  Visible visible;
};

// power = e^(scale·score − logsumexp) and dscore = power·(dpower − dot) of one query and 16 keys.
struct PowerAndGradient {
  __m512i power, dscore;  // bf16 in the lower half of each lane
};
TPRIMAT_AVX512_BF16 inline PowerAndGradient softmax_backward(const float* score, const float* dpower, float scale,
                                                             const QueryRow& row, int64_t col) {
  const __m512 scaled = _mm512_fmsub_ps(_mm512_loadu_ps(score), _mm512_set1_ps(scale), _mm512_set1_ps(row.logsumexp));
  const __m512 power = _mm512_maskz_mov_ps(row.visible.lanes[static_cast<size_t>(col / k_lanes)], exponential(scaled));
  const __m512 dscore = _mm512_mul_ps(power, _mm512_sub_ps(_mm512_loadu_ps(dpower), _mm512_set1_ps(row.dot)));
  return {_mm512_cvtepu16_epi32(narrow(power)), _mm512_cvtepu16_epi32(narrow(dscore))};
}

// Queries 2k and 2k+1 of the tile (the second may be missing) against a tile of keys.
TPRIMAT_AVX512_BF16 void softmax_backward_pair(const BackwardBuffers& b, float scale, const QueryRow* rows,
                                               int64_t queries, int64_t k) {
  for (int64_t c = 0; c < k_tile; c += k_lanes) {
    const int64_t at = 2 * k * k_tile + c;
    const PowerAndGradient even = softmax_backward(b.scores + at, b.dpowers + at, scale, rows[2 * k], c);
    PowerAndGradient odd{_mm512_setzero_si512(), _mm512_setzero_si512()};
    if (2 * k + 1 < queries)
      odd = softmax_backward(b.scores + at + k_tile, b.dpowers + at + k_tile, scale, rows[2 * k + 1], c);
    const int64_t transposed = 2 * (k * k_tile + c);
    _mm512_storeu_si512(b.power_pairs + transposed, _mm512_or_si512(even.power, _mm512_slli_epi32(odd.power, 16)));
    _mm512_storeu_si512(b.dscore_pairs + transposed, _mm512_or_si512(even.dscore, _mm512_slli_epi32(odd.dscore, 16)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(b.dscores + at), _mm512_cvtepi32_epi16(even.dscore));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(b.dscores + at + k_tile), _mm512_cvtepi32_epi16(odd.dscore));
  }
}

TPRIMAT_AVX512_BF16 float dot_product(const bf16* a, const bf16* b, int64_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t c = 0; c < count; c += k_lanes) {
    const __mmask16 present = lanes_below(count - c);
    sum = _mm512_fmadd_ps(widen(a + c, present), widen(b + c, present), sum);
  }
  return _mm512_reduce_add_ps(sum);
}

struct TileOfRows {
  int64_t index = 0;
  QueryRow* rows = nullptr;
};

// All keys that one tile of queries sees: adds to dkeys and dvalues, fills dqueries.
void backward_tile(const AttentionTiles& t, const BackwardBuffers& b, const QueryTile& queries,
                   const QueryTile& doutput, const TileOfRows& of) {
  const auto [tile, rows] = of;
  const int64_t query_pairs = pair_count(queries.count);
  std::fill(b.dqueries, b.dqueries + k_tile * t.width, 0.0f);
  for (int64_t key_tile = t.first_key_tile(tile); key_tile < t.end_key_tile(tile); ++key_tile) {
    const int64_t at = key_tile * k_tile * t.width, keys = keys_in_tile(t, key_tile);
    const TileSight sight(t, tile, key_tile);
    for (int64_t r = 0; r < queries.count; ++r) rows[r].visible = sight.of(r);
    score(t, queries, b.keys_across + at, b.scores);
    score(t, doutput, b.values_across + at, b.dpowers);
    for (int64_t k = 0; k < query_pairs; ++k) softmax_backward_pair(b, t.scale, rows, queries.count, k);
    multiply_small({b.doutput_by_dim, k_tile, b.power_pairs, t.width, k_tile, query_pairs, b.dvalues + at}, true);
    multiply_small({b.queries_by_dim, k_tile, b.dscore_pairs, t.width, k_tile, query_pairs, b.dkeys + at}, true);
    multiply_small({b.dscores, k_tile, b.keys_along + at, queries.count, t.width, pair_count(keys), b.dqueries}, true);
  }
}

void backward_queries(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<bf16>& g,
                      const HeadTile& which, const BackwardBuffers& b) {
  const auto [head, tile] = which;
  const QueryTile queries = query_tile(t, g.inputs.query, group, head, tile),
                  doutput = query_tile(t, g.dy, group, head, tile), y = query_tile(t, g.y, group, head, tile);
  pack_rows({queries.rows, t.shape.head_dim, queries.count, 1, queries.stride}, t.width, k_tile, b.queries_by_dim);
  pack_rows({doutput.rows, t.shape.head_dim, doutput.count, 1, doutput.stride}, t.width, k_tile, b.doutput_by_dim);
  QueryRow rows[k_tile];
  for (int64_t r = 0; r < queries.count; ++r)
    rows[r] = {g.logsumexp[t.statistic(group, head, tile * k_tile + r)],
               dot_product(y.rows + r * y.stride, doutput.rows + r * doutput.stride, t.shape.head_dim),
               {}};
  backward_tile(t, b, queries, doutput, {tile, rows});
  bf16* const dquery = t.head(g.dquery, group.batch, head, tile * k_tile);
  for (int64_t r = 0; r < queries.count; ++r)
    narrow_row(t, b.dqueries + r * t.width, t.scale, false, dquery + r * g.dquery.row_stride);
}

// A tile of `rows` rows and 64 columns becomes one of 64 rows.
TPRIMAT_AVX512_BF16 void transpose_tile(float* tile, int64_t rows, float* transposed) {
  for (int64_t row = 0; row < rows; row += k_lanes)
    for (int64_t col = 0; col < k_tile; col += k_lanes) {
      __m512i block[k_lanes];
      for (int64_t i = 0; i < k_lanes; ++i) block[i] = _mm512_loadu_si512(tile + (row + i) * k_tile + col);
      transpose(block);
      for (int64_t i = 0; i < k_lanes; ++i) _mm512_storeu_si512(transposed + (col + i) * rows + row, block[i]);
    }
  std::copy_n(transposed, rows * k_tile, tile);
}

void backward_group(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<bf16>& g) {
  const TileRegisters registers;
  const BackwardBuffers b = prepare_backward(t, group, g.inputs);
  t.visit_queries(group, [&](int64_t head, int64_t tile) { backward_queries(t, group, g, {head, tile}, b); });
  const int64_t whole = t.key_length() * t.width;
  for (float* gradient : {b.dkeys, b.dvalues})
    for (int64_t at = 0; at < whole; at += k_tile * t.width) transpose_tile(gradient + at, t.width, b.transposed);
  const auto put_by = [&](float factor) {
    return [&t, &g, factor](const float* from, bf16* to) { narrow_row(t, from, factor, g.accumulate, to); };
  };
  t.put_key_gradient(group, b.dkeys, g.accumulate, g.dkey, put_by(t.scale));
  t.put_key_gradient(group, b.dvalues, g.accumulate, g.dvalue, put_by(1.0f));
}

}  // namespace

// An odd head would make the last pair of a row reach into the next head.
bool has_bf16_attention(const AttentionShape& shape) { return has_bf16_pairs() && shape.head_dim % 2 == 0; }

void bf16_attention_forward(const AttentionShape& shape, const AttentionInputs<bf16>& inputs, const HeadRows<bf16>& y,
                            float* logsumexp) {
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { forward_group(tiles, group, inputs, y, logsumexp); });
}

void bf16_attention_backward(const AttentionShape& shape, const AttentionGradient<bf16>& gradient) {
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { backward_group(tiles, group, gradient); });
}

}  // namespace tprimat::engine

#else

namespace tprimat::engine {
bool has_bf16_attention(const AttentionShape&) { return false; }
void bf16_attention_forward(const AttentionShape&, const AttentionInputs<bf16>&, const HeadRows<bf16>&, float*) {
  CHECK(false);
}
void bf16_attention_backward(const AttentionShape&, const AttentionGradient<bf16>&) { CHECK(false); }
}  // namespace tprimat::engine
#endif
