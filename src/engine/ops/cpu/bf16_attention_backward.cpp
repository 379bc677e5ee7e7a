#include <initializer_list>

#include "base/check.h"
#include "ops/cpu/amx_attention.h"
#include "ops/cpu/bf16_attention.h"
#include "ops/cpu/bf16_attention_gradients.h"
#include "ops/cpu/bf16_attention_tiles.h"
#include "ops/cpu/transpose16.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine {
namespace {

struct BackwardBuffers {
  bf16 *keys_across, *keys_along, *values_across;  // of the group
  bf16 *queries_by_dim, *doutput_by_dim;           // of a tile of queries: a row per element of the head
  // Of a tile of queries and one of keys.
  bf16* dscores;                     // a row per query
  bf16 *power_pairs, *dscore_pairs;  // the pairs of two queries side by side
  float *scores, *dpowers;
  float* dqueries;         // of a tile of queries
  float* transposed;       // a tile on its way from columns to rows
  float *dkeys, *dvalues;  // of the group: in each tile of 64 keys, a row per element of the head
};

BackwardBuffers prepare_backward(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<bf16>& inputs) {
  const int64_t whole = t.key_length() * t.width, tile = k_tile * t.width, square = k_tile * k_tile;
  TileScratch& scratch = thread_scratch(t);
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
  QueryStatistics statistics;
  uint64_t visible;
};

// Queries 2k and 2k+1 of the tile (the second may be missing) against a tile of keys.
TPRIMAT_AVX512_BF16 void softmax_backward_pair(const BackwardBuffers& b, const QueryRow* rows, int64_t queries,
                                               int64_t k, float scale) {
  for (int64_t c = 0; c < k_tile; c += k_lanes) {
    const int64_t at = 2 * k * k_tile + c;
    const auto values_of = [&](int64_t from, const QueryRow& row) TPRIMAT_AVX512_BF16 {
      PowerAndGradient values = softmax_backward(b.scores + from, b.dpowers + from, scale, row.statistics);
      hide_others(lanes_of(row.visible, c), values);
      return values;
    };
    const PowerAndGradient even = values_of(at, rows[2 * k]);
    PowerAndGradient odd{_mm512_setzero_ps(), _mm512_setzero_ps()};
    if (2 * k + 1 < queries) odd = values_of(at + k_tile, rows[2 * k + 1]);
    const auto powers = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.power, even.power));
    const auto gradients = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.dscore, even.dscore));
    const int64_t pair = 2 * (k * k_tile + c);
    _mm512_storeu_si512(b.power_pairs + pair, interleave_halves(powers));
    _mm512_storeu_si512(b.dscore_pairs + pair, interleave_halves(gradients));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(b.dscores + at), _mm512_castsi512_si256(gradients));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(b.dscores + at + k_tile), _mm512_extracti64x4_epi64(gradients, 1));
  }
}

// A tile of queries of one head.
struct BackwardTile {
  int64_t tile;
  QueryTile queries, doutput;
  std::array<QueryRow, k_tile> rows;
};

// What one tile of keys gives to dqueries, and gets to its dkeys and dvalues.
void backward_keys(const AttentionTiles& t, const BackwardBuffers& b, BackwardTile& q, int64_t key_tile) {
  const int64_t at = key_tile * k_tile * t.width, pairs = pair_count(q.queries.count);
  const bool is_partial = t.needs_mask(q.tile, key_tile);
  for (int64_t r = 0; r < q.queries.count; ++r)
    q.rows[static_cast<size_t>(r)].visible =
        is_partial ? visible_keys(t, t.position(q.tile) + r, key_tile * k_tile) : ~0ull;
  score(t, q.queries, b.keys_across + at, b.scores);
  score(t, q.doutput, b.values_across + at, b.dpowers);
  for (int64_t k = 0; k < pairs; ++k) softmax_backward_pair(b, q.rows.data(), q.queries.count, k, t.scale);
  multiply_small(
      {b.dscores, k_tile, b.keys_along + at, q.queries.count, t.width, pairs_in_tile(t, key_tile), b.dqueries}, true);
  multiply_small({b.doutput_by_dim, k_tile, b.power_pairs, t.width, k_tile, pairs, b.dvalues + at}, true);
  multiply_small({b.queries_by_dim, k_tile, b.dscore_pairs, t.width, k_tile, pairs, b.dkeys + at}, true);
}

// What the backward pass needs of a tile of queries.
BackwardTile gather_queries(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<bf16>& g,
                            const HeadTile& which, const BackwardBuffers& b) {
  const auto rows_of = [&](const HeadRows<const bf16>& rows) {
    return query_tile(t, rows, group, which.head, which.tile);
  };
  BackwardTile q{which.tile, rows_of(g.inputs.query), rows_of(g.dy), {}};
  const QueryTile y = rows_of(g.y);
  for (int64_t r = 0; r < q.queries.count; ++r) {
    for (const QueryTile* each : std::initializer_list<const QueryTile*>{&q.queries, &q.doutput, &y})
      prefetch_row<For::reading>(each->rows + (r + k_rows_ahead) * each->stride, t.shape.head_dim);
    q.rows[static_cast<size_t>(r)].statistics = {
        g.logsumexp[t.statistic(group, which.head, which.tile * k_tile + r)],
        dot_product(y.rows + r * y.stride, q.doutput.rows + r * q.doutput.stride, t.shape.head_dim)};
  }
  const auto pack = [&](const QueryTile& rows, bf16* to) {
    pack_rows({rows.rows, t.shape.head_dim, rows.count, 1, rows.stride}, t.width, k_tile, to);
  };
  pack(q.queries, b.queries_by_dim), pack(q.doutput, b.doutput_by_dim);
  return q;
}

void backward_queries(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<bf16>& g,
                      const HeadTile& which, const BackwardBuffers& b) {
  BackwardTile q = gather_queries(t, group, g, which, b);
  std::fill(b.dqueries, b.dqueries + k_tile * t.width, 0.0f);
  for (int64_t key_tile = t.first_key_tile(which.tile); key_tile < t.end_key_tile(which.tile); ++key_tile)
    backward_keys(t, b, q, key_tile);
  bf16* const dquery = t.head(g.dquery, group.batch, which.head, which.tile * k_tile);
  for (int64_t r = 0; r < q.queries.count; ++r) {
    prefetch_row<For::writing>(dquery + (r + k_rows_ahead) * g.dquery.row_stride, t.shape.head_dim);
    narrow_row(t, b.dqueries + r * t.width, t.scale, false, dquery + r * g.dquery.row_stride);
  }
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

void bf16_attention_backward(const AttentionShape& shape, const AttentionGradient<bf16>& gradient) {
  if (has_amx()) return amx::attention_backward(shape, gradient);
  CHECK(!gradient.is_finished());
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { backward_group(tiles, group, gradient); });
}

}  // namespace tprimat::engine

#else

namespace tprimat::engine {
void bf16_attention_backward(const AttentionShape&, const AttentionGradient<bf16>&) { CHECK(false); }
}  // namespace tprimat::engine
#endif
