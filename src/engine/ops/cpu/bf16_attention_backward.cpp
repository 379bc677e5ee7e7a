#include "base/check.h"
#include "ops/cpu/bf16_attention.h"
#include "ops/cpu/bf16_attention_tiles.h"
#include "ops/cpu/transpose16.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine {
namespace {

// `block`: as many queries or keys as tiles_at_once() tiles have.
struct BackwardBuffers {
  bf16 *keys_across, *keys_along, *values_across;  // of the group
  bf16 *queries_by_dim, *doutput_by_dim;           // of a block of queries: a row per element of the head
  bf16* dscores;                                   // 64×block, a row per query
  bf16 *power_pairs, *dscore_pairs;  // of a block of queries, panels of 64 keys: the pairs of two queries side by side
  float *scores, *dpowers;           // of one tile of queries and one of keys
  float* dqueries;                   // of a block of queries
  float* transposed;                 // a tile on its way from columns to rows
  float *dkeys, *dvalues;            // of the group: in each tile of 64 keys, a row per element of the head
};

BackwardBuffers prepare_backward(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<bf16>& inputs) {
  const int64_t whole = t.key_length() * t.width, tile = k_tile * t.width, square = k_tile * k_tile;
  const int64_t at_once = tiles_at_once();
  TileScratch& scratch = thread_scratch(t, at_once * (2 * tile + (at_once + 1) * square));
  BackwardBuffers b{};
  for (bf16** buffer : {&b.keys_across, &b.keys_along, &b.values_across}) *buffer = take_bf16(scratch, whole);
  for (bf16** buffer : {&b.queries_by_dim, &b.doutput_by_dim}) *buffer = take_bf16(scratch, at_once * tile);
  b.dscores = take_bf16(scratch, at_once * square);
  for (bf16** buffer : {&b.power_pairs, &b.dscore_pairs}) *buffer = take_bf16(scratch, at_once * at_once * square);
  for (float** buffer : {&b.scores, &b.dpowers}) *buffer = scratch.take(square);
  b.dqueries = scratch.take(at_once * tile);
  b.transposed = scratch.take(tile);
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
  uint64_t visible;
};

constexpr int k_to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

// power = e^(scale·score − logsumexp) and dscore = power·(dpower − dot) of one query and 16 keys.
struct PowerAndGradient {
  __m512 power, dscore;
};
TPRIMAT_AVX512_BF16 inline PowerAndGradient softmax_backward(const float* score, const float* dpower, float scale,
                                                             const QueryRow& row, int64_t col) {
  // Rounded as in the forward pass, where the largest score has become a part of logsumexp: no compiler may fuse these
  // two.
  const __m512 scaled = _mm512_mul_round_ps(_mm512_loadu_ps(score), _mm512_set1_ps(scale), k_to_nearest);
  const __m512 less = _mm512_mul_ps(_mm512_sub_ps(scaled, _mm512_set1_ps(row.logsumexp)), _mm512_set1_ps(k_log2_e));
  const __m512 power = _mm512_maskz_mov_ps(lanes_of(row.visible, col), power_of_two(less));
  return {power, _mm512_mul_ps(power, _mm512_sub_ps(_mm512_loadu_ps(dpower), _mm512_set1_ps(row.dot)))};
}

// Each number of the lower half beside that of the upper one.
TPRIMAT_AVX512_BF16 inline __m512i interleave_halves(__m512i halves) {
  alignas(64) static constexpr int16_t k_order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(k_order), halves);
}

// Where the powers of a tile of queries and one of keys go, and what scales their scores.
struct SoftmaxTile {
  bf16 *power_pairs, *dscore_pairs, *dscores;
  int64_t dscores_stride;
  float scale;
};

// Queries 2k and 2k+1 of the tile (the second may be missing) against a tile of keys.
TPRIMAT_AVX512_BF16 void softmax_backward_pair(const BackwardBuffers& b, const QueryRow* rows, int64_t queries,
                                               int64_t k, const SoftmaxTile& to) {
  bf16* const dscores = to.dscores + 2 * k * to.dscores_stride;
  for (int64_t c = 0; c < k_tile; c += k_lanes) {
    const int64_t at = 2 * k * k_tile + c;
    const PowerAndGradient even = softmax_backward(b.scores + at, b.dpowers + at, to.scale, rows[2 * k], c);
    PowerAndGradient odd{_mm512_setzero_ps(), _mm512_setzero_ps()};
    if (2 * k + 1 < queries)
      odd = softmax_backward(b.scores + at + k_tile, b.dpowers + at + k_tile, to.scale, rows[2 * k + 1], c);
    const auto powers = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.power, even.power));
    const auto gradients = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.dscore, even.dscore));
    const int64_t pair = 2 * (k * k_tile + c);
    _mm512_storeu_si512(to.power_pairs + pair, interleave_halves(powers));
    _mm512_storeu_si512(to.dscore_pairs + pair, interleave_halves(gradients));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dscores + c), _mm512_castsi512_si256(gradients));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dscores + to.dscores_stride + c),
                        _mm512_extracti64x4_epi64(gradients, 1));
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

// Tiles of queries of one head, side by side.
struct QueryBlock {
  int64_t first, count;  // tiles
  std::array<QueryTile, k_max_tiles> queries, doutput;
  std::array<QueryRow, k_max_tiles * k_tile> rows;
};

// Of the tiles of keys, those that a tile of queries sees.
KeyTiles seen_of(const AttentionTiles& t, const KeyTiles& keys, int64_t query_tile) {
  const int64_t first = std::max(keys.first, t.first_key_tile(query_tile));
  return {first, std::max<int64_t>(0, std::min(keys.end(), t.end_key_tile(query_tile)) - first)};
}

// Fills the powers and gradients of the scores of one tile of queries; adds to its dqueries.
void backward_tile(const AttentionTiles& t, const BackwardBuffers& b, QueryBlock& block, int64_t i,
                   const KeyTiles& keys) {
  const int64_t tile = block.first + i, length = tiles_at_once() * k_tile;
  const QueryTile &queries = block.queries[static_cast<size_t>(i)], &doutput = block.doutput[static_cast<size_t>(i)];
  QueryRow* const rows = block.rows.data() + i * k_tile;
  const KeyTiles seen = seen_of(t, keys, tile);
  if (seen.count == 0) return;
  for (int64_t key_tile = seen.first; key_tile < seen.end(); ++key_tile) {
    const bool is_partial = t.needs_mask(tile, key_tile);
    for (int64_t r = 0; r < queries.count; ++r)
      rows[r].visible = is_partial ? visible_keys(t, t.position(tile) + r, key_tile) : ~0ull;
    score(t, queries, b.keys_across + key_tile * k_tile * t.width, b.scores);
    score(t, doutput, b.values_across + key_tile * k_tile * t.width, b.dpowers);
    const int64_t pairs = (key_tile - keys.first) * length * k_tile + i * k_tile * k_tile;
    const SoftmaxTile to{b.power_pairs + pairs, b.dscore_pairs + pairs, b.dscores + (key_tile - seen.first) * k_tile,
                         length, t.scale};
    for (int64_t k = 0; k < pair_count(queries.count); ++k) softmax_backward_pair(b, rows, queries.count, k, to);
  }
  multiply_small({b.dscores, length, b.keys_along + seen.first * k_tile * t.width, queries.count, t.width,
                  pairs_in(t, seen), b.dqueries + i * k_tile * t.width},
                 true);
}

// Adds to dkeys and dvalues of one tile of keys what the block's queries that see it give.
void backward_keys(const AttentionTiles& t, const BackwardBuffers& b, const QueryBlock& block, const KeyTiles& keys,
                   int64_t key_tile) {
  const auto sees = [&](int64_t i) { return seen_of(t, {key_tile, 1}, block.first + i).count > 0; };
  int64_t begin = 0, end = block.count;
  while (begin < end && !sees(begin)) ++begin;
  while (begin < end && !sees(end - 1)) --end;
  if (begin == end) return;
  const int64_t length = tiles_at_once() * k_tile, at = key_tile * k_tile * t.width, query = begin * k_tile;
  const int64_t pairs =
      (end - 1) * k_tile / 2 + pair_count(block.queries[static_cast<size_t>(end - 1)].count) - query / 2;
  const int64_t panel = (key_tile - keys.first) * length * k_tile + query * k_tile;
  multiply_small({b.doutput_by_dim + query, length, b.power_pairs + panel, t.width, k_tile, pairs, b.dvalues + at},
                 true);
  multiply_small({b.queries_by_dim + query, length, b.dscore_pairs + panel, t.width, k_tile, pairs, b.dkeys + at},
                 true);
}

// All keys that a block of queries sees: adds to dkeys and dvalues, fills dqueries.
void backward_block(const AttentionTiles& t, const BackwardBuffers& b, QueryBlock& block) {
  std::fill(b.dqueries, b.dqueries + block.count * k_tile * t.width, 0.0f);
  const int64_t end = t.end_key_tile(block.first + block.count - 1);
  for (KeyTiles keys{t.first_key_tile(block.first), 0}; keys.first < end; keys.first += tiles_at_once()) {
    keys.count = std::min(tiles_at_once(), end - keys.first);
    for (int64_t i = 0; i < block.count; ++i) backward_tile(t, b, block, i, keys);
    for (int64_t key_tile = keys.first; key_tile < keys.end(); ++key_tile) backward_keys(t, b, block, keys, key_tile);
  }
}

// What the backward pass needs of a block of queries of one head.
QueryBlock gather_queries(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<bf16>& g,
                          const HeadTile& which, const BackwardBuffers& b) {
  const auto [head, first] = which;
  QueryBlock block{first, std::min(tiles_at_once(), t.query_tiles - first), {}, {}, {}};
  int64_t count = 0;
  for (int64_t i = 0; i < block.count; ++i) {
    const int64_t tile = first + i;
    const QueryTile queries = query_tile(t, g.inputs.query, group, head, tile),
                    doutput = query_tile(t, g.dy, group, head, tile), y = query_tile(t, g.y, group, head, tile);
    block.queries[static_cast<size_t>(i)] = queries, block.doutput[static_cast<size_t>(i)] = doutput;
    for (int64_t r = 0; r < queries.count; ++r) {
      for (const QueryTile* each : {&queries, &doutput, &y})
        prefetch_row<For::reading>(each->rows + (r + k_rows_ahead) * each->stride, t.shape.head_dim);
      block.rows[static_cast<size_t>(i * k_tile + r)] = {
          g.logsumexp[t.statistic(group, head, tile * k_tile + r)],
          dot_product(y.rows + r * y.stride, doutput.rows + r * doutput.stride, t.shape.head_dim), 0};
    }
    count += queries.count;
  }
  const int64_t length = tiles_at_once() * k_tile;
  const auto pack = [&](const QueryTile& rows, bf16* to) {
    pack_rows({rows.rows, t.shape.head_dim, count, 1, rows.stride}, t.width, length, to);
  };
  pack(block.queries[0], b.queries_by_dim), pack(block.doutput[0], b.doutput_by_dim);
  return block;
}

void backward_queries(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<bf16>& g,
                      const HeadTile& which, const BackwardBuffers& b) {
  QueryBlock block = gather_queries(t, group, g, which, b);
  backward_block(t, b, block);
  for (int64_t i = 0; i < block.count; ++i) {
    bf16* const dquery = t.head(g.dquery, group.batch, which.head, (block.first + i) * k_tile);
    for (int64_t r = 0; r < block.queries[static_cast<size_t>(i)].count; ++r) {
      prefetch_row<For::writing>(dquery + (r + k_rows_ahead) * g.dquery.row_stride, t.shape.head_dim);
      narrow_row(t, b.dqueries + (i * k_tile + r) * t.width, t.scale, false, dquery + r * g.dquery.row_stride);
    }
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
  const TileRegisters registers;
  const BackwardBuffers b = prepare_backward(t, group, g.inputs);
  t.visit_queries(group, [&](int64_t head, int64_t tile) {
    if (tile % tiles_at_once() == 0) backward_queries(t, group, g, {head, tile}, b);
  });
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
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { backward_group(tiles, group, gradient); });
}

}  // namespace tprimat::engine

#else

namespace tprimat::engine {
void bf16_attention_backward(const AttentionShape&, const AttentionGradient<bf16>&) { CHECK(false); }
}  // namespace tprimat::engine
#endif
