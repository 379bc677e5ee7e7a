#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "device/parallel.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/bf16_attention.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/cpu/tile-inl.h"
#include "ops/op_table.h"
#include "ops/reference/attention.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

// `count` rows of head_dim values, `stride` apart.
template <class T>
struct RowsOf {
  const T* first;
  int64_t stride, count;
};

// As dense float rows of `width`, times `factor`; the padding is zeroed.
template <class T>
void widen_rows(const AttentionTiles& t, const RowsOf<T>& rows, float factor, float* to) {
  const auto [from, stride, count] = rows;
  for (int64_t r = 0; r < count; ++r) {
    prefetch_row<For::reading>(from + (r + k_rows_ahead) * stride, t.shape.head_dim);
    for_lanes(0, t.shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      hn::StoreU(hn::Mul(load(d, from + r * stride + c), hn::Set(d, factor)), d, to + r * t.width + c);
    });
    std::fill(to + r * t.width + t.shape.head_dim, to + (r + 1) * t.width, 0.0f);
  }
}

// Dense rows (length×width) as transposed tiles: tile j holds width×64, so that its columns are the keys of the tile.
inline void transpose_tiles(const AttentionTiles& t, const float* rows, float* to) {
  for (int64_t tile = 0; tile < t.key_tiles; ++tile)
    for (int64_t r = 0; r < k_tile; r += 4)
      for (int64_t c = 0; c < t.width; c += 4)
        transpose4(rows + (tile * k_tile + r) * t.width + c, t.width, to + (tile * t.width + c) * k_tile + r, k_tile);
}

// Dense float copies of the group's keys or values; rows past the last one are zero.
template <class T>
float* widen_sequence(const AttentionTiles& t, const HeadRows<const T>& rows, const HeadGroup& group, float* to) {
  widen_rows<T>(t, {t.head(rows, group.batch, group.kv_head, 0), rows.row_stride, t.keys}, 1.0f, to);
  std::fill(to + t.keys * t.width, to + t.key_length() * t.width, 0.0f);
  return to;
}

// The keys that a query sees, and others up to whole vectors.
inline Span vectors_seen(const TileMask& mask, int64_t query) {
  return mask.keys_of({query, query + 1}).in_wholes_of(static_cast<int64_t>(hn::Lanes(Floats())));
}

// Zeros in a row of a tile outside the keys that its query sees: products may read them.
inline void clear_others(const Span& seen, float* row) {
  std::fill(row, row + seen.begin, 0.0f);
  std::fill(row + seen.end, row + k_tile, 0.0f);
}

// −∞ for masked scores, in vectors with a key that is seen; the softmax reads no others.
inline void mask_scores(const TileMask& mask, float* scores) {
  for (int64_t r = 0; r < mask.rows; ++r, scores += k_tile) {
    const Span keys = mask.keys_of({r, r + 1}), seen = vectors_seen(mask, r);
    std::fill(scores + seen.begin, scores + keys.begin, k_minus_infinity);
    std::fill(scores + keys.end, scores + seen.end, k_minus_infinity);
  }
}

// scores = rows · columns, width×64. Where no query of a part sees a key, scores keep what was there.
inline void score_tile(const TileMask& mask, const float* rows, const float* columns, float* scores) {
  const int64_t width = mask.t.width;
  mask.in_parts(mask.rows, [&](const Span& queries) HWY_ATTR {
    const Span keys = mask.keys_of(queries).in_wholes_of(k_tile_columns);
    multiply_tile<false>({rows + queries.begin * width, width, 1, columns + keys.begin, k_tile,
                          scores + queries.begin * k_tile + keys.begin, k_tile, queries.count(), keys.count(),
                          mask.t.shape.head_dim});
  });
}

// to (queries×width) += powers (queries×64) · of_keys (64×width).
inline void add_to_queries(const TileMask& mask, const float* powers, const float* of_keys, float* to) {
  const int64_t width = mask.t.width;
  mask.in_parts(mask.rows, [&](const Span& queries) HWY_ATTR {
    const Span keys = mask.keys_of(queries);
    multiply_tile<true>({powers + queries.begin * k_tile + keys.begin, k_tile, 1, of_keys + keys.begin * width, width,
                         to + queries.begin * width, width, queries.count(), width, keys.count()});
  });
}

// to (64×width) += powersᵀ · of_queries (queries×width).
inline void add_to_keys(const TileMask& mask, const float* powers, const float* of_queries, float* to) {
  const int64_t width = mask.t.width;
  mask.in_parts(k_tile, [&](const Span& keys) HWY_ATTR {
    const Span queries = mask.queries_of(keys);
    multiply_tile<true>({powers + queries.begin * k_tile + keys.begin, 1, k_tile, of_queries + queries.begin * width,
                         width, to + keys.begin * width, width, keys.count(), width, queries.count()});
  });
}

inline float largest_of(const float* scores, const Span& seen) {
  const Floats d;
  auto top = hn::Set(d, k_minus_infinity);
  for_whole_lanes(seen.begin, seen.end,
                  [&](auto lanes, int64_t c) HWY_ATTR { top = hn::Max(top, load(lanes, scores + c)); });
  return hn::GetLane(hn::MaxOfLanes(d, top));
}

// Brings the sums of a tile of queries to the new largest scores; shrink: what their output is to be multiplied by.
inline void renew_largest(const float* top, RunningTile& running, float* shrink) {
  for_whole_lanes(k_tile, [&](auto d, int64_t r) HWY_ATTR {
    const auto old = load(d, running.largest.data() + r), renewed = hn::Max(old, load(d, top + r));
    const auto factor = hn::IfThenElse(hn::Eq(old, renewed), hn::Set(d, 1.0f), exponential(d, hn::Sub(old, renewed)));
    store(d, renewed, running.largest.data() + r);
    store(d, hn::Mul(load(d, running.sums.data() + r), factor), running.sums.data() + r);
    store(d, factor, shrink + r);
  });
}

// scores ← e^(scores − largest); returns their sum. Zeros where no key is seen and the largest is −∞.
inline float raise_scores(float largest, float* scores, const Span& seen) {
  if (largest == k_minus_infinity) largest = 0.0f;  // −∞ − −∞ would be NaN
  clear_others(seen, scores);
  return sum_lanes(seen.begin, seen.end, [&](auto d, int64_t c) HWY_ATTR {
    const auto power = exponential(d, hn::Sub(load(d, scores + c), hn::Set(d, largest)));
    store(d, power, scores + c);
    return power;
  });
}

// What the forward pass of one group holds in float: keys_t and values key_length×width, the others one tile.
struct ForwardBuffers {
  float *keys_t, *values, *queries, *output, *scores;
  RunningTile* running;
};

// From the scores of a tile of queries and one of keys to powers, whose sums are added up; the output so far is brought
// to the same largest. First the largest of all rows, then the powers, so that no row waits for the one before.
inline void fold_scores(const TileMask& mask, const ForwardBuffers& b) {
  std::array<float, k_tile> top, shrink;
  top.fill(k_minus_infinity);
  for (int64_t r = 0; r < mask.rows; ++r)
    top[static_cast<size_t>(r)] = largest_of(b.scores + r * k_tile, vectors_seen(mask, r));
  renew_largest(top.data(), *b.running, shrink.data());
  for (int64_t r = 0; r < mask.rows; ++r) {
    const auto row = static_cast<size_t>(r);
    b.running->sums[row] += raise_scores(b.running->largest[row], b.scores + r * k_tile, vectors_seen(mask, r));
    if (shrink[row] == 1.0f) continue;
    float* const output = b.output + r * mask.t.width;
    for_whole_lanes(mask.t.width, [&](auto d, int64_t c) HWY_ATTR {
      store(d, hn::Mul(load(d, output + c), hn::Set(d, shrink[row])), output + c);
    });
  }
}

template <class T>
ForwardBuffers prepare_forward(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<T>& inputs,
                               TileScratch& scratch) {
  const int64_t whole = t.key_length() * t.width, tile = k_tile * t.width;
  ForwardBuffers b{};
  const float* keys = widen_sequence(t, inputs.key, group, scratch.take(whole));
  b.values = widen_sequence(t, inputs.value, group, scratch.take(whole));
  b.keys_t = scratch.take(whole);
  transpose_tiles(t, keys, b.keys_t);
  b.queries = scratch.take(tile), b.output = scratch.take(tile), b.scores = scratch.take(k_tile * k_tile);
  return b;
}

// One tile of queries of one head against all keys it may see; leaves the output times the sum of each row.
inline void attend_tile(const AttentionTiles& t, const ForwardBuffers& b, int64_t query_tile) {
  std::fill(b.output, b.output + k_tile * t.width, 0.0f);
  *b.running = {};
  for (int64_t key_tile = t.first_key_tile(query_tile); key_tile < t.end_key_tile(query_tile); ++key_tile) {
    const TileMask mask{t, query_tile, key_tile};
    score_tile(mask, b.queries, b.keys_t + key_tile * t.width * k_tile, b.scores);
    if (mask.is_masked) mask_scores(mask, b.scores);
    fold_scores(mask, b);
    add_to_queries(mask, b.scores, b.values + key_tile * k_tile * t.width, b.output);
  }
}

// Divides a tile by the sums of its rows; queries that see no key get zeros.
template <class T>
void finish_tile(const AttentionTiles& t, const ForwardBuffers& b, int64_t query_tile, const HeadRows<T>& y,
                 float* logsumexp) {
  for (int64_t r = 0; r < t.rows(query_tile); ++r) {
    const float largest = b.running->largest[static_cast<size_t>(r)], sum = b.running->sums[static_cast<size_t>(r)];
    logsumexp[r] = largest + std::log(sum);
    const float share = t.sees_nothing(t.position(query_tile) + r) ? 0.0f : 1.0f / sum;
    prefetch_row<For::writing>(y.data + (r + k_rows_ahead) * y.row_stride, t.shape.head_dim);
    T* to = y.data + r * y.row_stride;
    for_lanes(0, t.shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      store(d, hn::Mul(load(d, b.output + r * t.width + c), hn::Set(d, share)), to + c);
    });
  }
}

template <class T>
void forward_group(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<T>& inputs,
                   const HeadRows<T>& y, float* logsumexp) {
  ForwardBuffers b = prepare_forward(t, group, inputs, thread_scratch(t));
  RunningTile running;
  b.running = &running;
  t.visit_queries(group, [&](int64_t head, int64_t tile) {
    const int64_t start = tile * k_tile;
    const T* queries = t.head(inputs.query, group.batch, head, start);
    widen_rows<T>(t, {queries, inputs.query.row_stride, t.rows(tile)}, t.scale, b.queries);
    attend_tile(t, b, tile);
    finish_tile<T>(t, b, tile, {t.head(y, group.batch, head, start), y.row_stride, y.sequence_stride},
                   logsumexp + t.statistic(group, head, start));
  });
}

// What the backward pass of one group holds in float, all key_length×width or one tile of it.
struct BackwardBuffers {
  float *keys, *keys_t, *values_t, *dkeys, *dvalues;
  float *queries, *doutput, *dqueries, *scores, *dscores, *logsumexp, *dot;
};

template <class T>
BackwardBuffers prepare_backward(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<T>& inputs,
                                 TileScratch& scratch) {
  const int64_t whole = t.key_length() * t.width, tile = k_tile * t.width;
  BackwardBuffers b{};
  b.keys = widen_sequence(t, inputs.key, group, scratch.take(whole));
  b.keys_t = scratch.take(whole);
  transpose_tiles(t, b.keys, b.keys_t);
  b.dvalues = scratch.take(whole);
  b.values_t = scratch.take(whole);
  transpose_tiles(t, widen_sequence(t, inputs.value, group, b.dvalues), b.values_t);  // in the memory of dvalues
  b.dkeys = scratch.take(whole);
  std::fill(b.dvalues, b.dvalues + whole, 0.0f);
  std::fill(b.dkeys, b.dkeys + whole, 0.0f);
  b.queries = scratch.take(tile), b.doutput = scratch.take(tile), b.dqueries = scratch.take(tile);
  b.scores = scratch.take(k_tile * k_tile), b.dscores = scratch.take(k_tile * k_tile);
  b.logsumexp = scratch.take(k_tile), b.dot = scratch.take(k_tile);
  return b;
}

// scores ← p = e^(scores − logsumexp);  dscores ← p·(dscores − dot)
inline void softmax_backward(const TileMask& mask, const BackwardBuffers& b) {
  for (int64_t r = 0; r < mask.rows; ++r) {
    float *p = b.scores + r * k_tile, *dp = b.dscores + r * k_tile;
    const float logsumexp = b.logsumexp[r], dot = b.dot[r];
    const Span seen = vectors_seen(mask, r);
    clear_others(seen, p), clear_others(seen, dp);
    for_whole_lanes(seen.begin, seen.end, [&](auto d, int64_t c) HWY_ATTR {
      const auto power = exponential(d, hn::Sub(load(d, p + c), hn::Set(d, logsumexp)));
      store(d, power, p + c);
      store(d, hn::Mul(power, hn::Sub(load(d, dp + c), hn::Set(d, dot))), dp + c);
    });
  }
}

// All keys that one tile of queries sees: adds to dkeys and dvalues, fills dqueries.
inline void backward_tile(const AttentionTiles& t, const BackwardBuffers& b, int64_t query_tile) {
  const int64_t width = t.width;
  std::fill(b.dqueries, b.dqueries + k_tile * width, 0.0f);
  for (int64_t key_tile = t.first_key_tile(query_tile); key_tile < t.end_key_tile(query_tile); ++key_tile) {
    const int64_t at = key_tile * k_tile * width;
    const TileMask mask{t, query_tile, key_tile};
    score_tile(mask, b.queries, b.keys_t + at, b.scores);
    if (mask.is_masked) mask_scores(mask, b.scores);
    score_tile(mask, b.doutput, b.values_t + at, b.dscores);
    softmax_backward(mask, b);
    add_to_keys(mask, b.scores, b.doutput, b.dvalues + at);
    add_to_keys(mask, b.dscores, b.queries, b.dkeys + at);
    add_to_queries(mask, b.dscores, b.keys + at, b.dqueries);
  }
}

template <class T>
void load_query_tile(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<T>& g, HeadTile which,
                     const BackwardBuffers& b) {
  const auto [head, tile] = which;
  const int64_t start = tile * k_tile, rows = t.rows(tile);
  const HeadRows<const T>& queries = g.inputs.query;
  widen_rows<T>(t, {t.head(queries, group.batch, head, start), queries.row_stride, rows}, t.scale, b.queries);
  widen_rows<T>(t, {t.head(g.dy, group.batch, head, start), g.dy.row_stride, rows}, 1.0f, b.doutput);
  for (int64_t r = 0; r < rows; ++r) {
    const T* y = t.head(g.y, group.batch, head, start + r);
    // Without a visible key the scores are −∞ and so is their logsumexp; 0 makes e^(score − logsumexp) 0.
    const bool sees_nothing = t.sees_nothing(t.position(tile) + r);
    b.logsumexp[r] = sees_nothing ? 0.0f : g.logsumexp[t.statistic(group, head, start + r)];
    b.dot[r] = sum_lanes(0, t.shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      return hn::Mul(load(d, y + c), load(d, b.doutput + r * t.width + c));
    });
  }
}

// A float row times `factor` as a row of T, or added to it.
template <class T>
void narrow_row(const AttentionTiles& t, const float* from, float factor, bool accumulate, T* to) {
  for_lanes(0, t.shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
    auto value = hn::Mul(load(d, from + c), hn::Set(d, factor));
    if (accumulate) value = hn::Add(load(d, to + c), value);
    store(d, value, to + c);
  });
}

template <class T>
void backward_group(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<T>& g) {
  const BackwardBuffers b = prepare_backward(t, group, g.inputs, thread_scratch(t));
  t.visit_queries(group, [&](int64_t head, int64_t tile) {
    load_query_tile(t, group, g, {head, tile}, b);
    backward_tile(t, b, tile);
    T* const dquery = t.head(g.dquery, group.batch, head, tile * k_tile);
    for (int64_t r = 0; r < t.rows(tile); ++r) {
      prefetch_row<For::writing>(dquery + (r + k_rows_ahead) * g.dquery.row_stride, t.shape.head_dim);
      narrow_row(t, b.dqueries + r * t.width, t.scale, false, dquery + r * g.dquery.row_stride);
    }
  });
  const auto put = [&](const float* from, T* to) { narrow_row(t, from, 1.0f, g.accumulate, to); };
  t.put_key_gradient(group, b.dkeys, g.accumulate, g.dkey, put);
  t.put_key_gradient(group, b.dvalues, g.accumulate, g.dvalue, put);
}

template <class T>
void forward(const AttentionShape& shape, const AttentionInputs<T>& inputs, const HeadRows<T>& y, float* logsumexp) {
  if constexpr (std::is_same_v<T, bf16>)
    if (has_bf16_attention(shape)) return bf16_attention_forward(shape, inputs, y, logsumexp);
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { forward_group(tiles, group, inputs, y, logsumexp); });
}

template <class T>
void backward(const AttentionShape& shape, const AttentionGradient<T>& gradient) {
  if constexpr (std::is_same_v<T, bf16>)
    if (has_bf16_attention(shape)) return bf16_attention_backward(shape, gradient);
  CHECK(!gradient.is_finished());
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { backward_group(tiles, group, gradient); });
}

void attention(OpsByFormat<AttentionOps>& ops) {
  ops.set_fast([]<class T>(AttentionOps<T>& fast) { fast = {forward<T>, backward<T>}; });
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::engine {

HWY_EXPORT(attention);

void set_cpu_ops(OpsByFormat<AttentionOps>& ops) {
  HWY_DYNAMIC_DISPATCH(attention)(ops);
  ops.bfloat16.finishes_gradients = has_amx();
  ops.f64 = {reference::attention_forward, reference::attention_backward};
}

}  // namespace tprimat::engine
#endif  // HWY_ONCE
