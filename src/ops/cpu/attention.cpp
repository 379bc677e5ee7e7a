#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/attention.cpp"
#include <hwy/foreach_target.h>

#include "ops/attention.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "device/parallel.h"
#include "ops/cpu/attention_tiles.h"
#include "ops/cpu/lanes-inl.h"
#include "ops/cpu/tile-inl.h"
#include "ops/reference/attention.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat {
namespace HWY_NAMESPACE {

constexpr float k_minus_infinity = -std::numeric_limits<float>::infinity();

// Rows of head_dim values, `stride` apart, as dense float rows of `width`, times `factor`; the padding is zeroed.
template <class T>
void widen_rows(const AttentionTiles& t, const T* from, int64_t stride, int64_t rows, float factor, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for_lanes(0, t.shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      hn::StoreU(hn::Mul(load(d, from + r * stride + c), hn::Set(d, factor)), d, to + r * t.width + c);
    });
    std::fill(to + r * t.width + t.shape.head_dim, to + (r + 1) * t.width, 0.0f);
  }
}

// Dense rows (length×width) as transposed tiles: tile j holds width×64, so that its columns are the keys of the tile.
inline void transpose_tiles(const AttentionTiles& t, const float* rows, float* to) {
  for (int64_t tile = 0; tile < t.tiles; ++tile)
    for (int64_t r = 0; r < k_tile; ++r)
      for (int64_t c = 0; c < t.width; ++c)
        to[(tile * t.width + c) * k_tile + r] = rows[(tile * k_tile + r) * t.width + c];
}

// Dense float copies of the group's keys or values; rows past the sequence are zero.
template <class T>
float* widen_sequence(const AttentionTiles& t, const T* first, float* to) {
  widen_rows(t, first, t.shape.row_width(), t.shape.sequence, 1.0f, to);
  std::fill(to + t.shape.sequence * t.width, to + t.length() * t.width, 0.0f);
  return to;
}

inline void mask_scores(const AttentionTiles& t, int64_t query_tile, int64_t key_tile, float* scores) {
  for (int64_t r = 0; r < t.rows(query_tile); ++r) {
    const int64_t query = query_tile * k_tile + r, first = t.shape.first_key(query);
    for (int64_t c = 0; c < k_tile; ++c) {
      const int64_t key = key_tile * k_tile + c;
      if (key > query || key < first) scores[r * k_tile + c] = k_minus_infinity;
    }
  }
}

// scores = queries · keysᵀ for one pair of tiles, masked.
inline void score_tile(const AttentionTiles& t, const float* queries, const float* keys_t,
                       std::pair<int64_t, int64_t> pair, float* scores) {
  const auto [query_tile, key_tile] = pair;
  multiply_tile<false>({queries, t.width, 1, keys_t + key_tile * t.width * k_tile, k_tile, scores, k_tile,
                        t.rows(query_tile), k_tile, t.shape.head_dim});
  if (t.needs_mask(query_tile, key_tile)) mask_scores(t, query_tile, key_tile, scores);
}

struct RunningRow {
  float largest = k_minus_infinity;
  float sum = 0.0f;
};

// scores ← e^(scores − largest so far); the output so far is brought to the same largest.
inline void fold_scores(float* scores, int64_t width, float* output, RunningRow& row) {
  const Floats d;
  auto top = hn::Set(d, k_minus_infinity);
  for (int64_t c = 0; c < k_tile; c += static_cast<int64_t>(hn::Lanes(d))) top = hn::Max(top, hn::LoadU(d, scores + c));
  const float largest = std::max(row.largest, hn::GetLane(hn::MaxOfLanes(d, top)));
  if (largest == k_minus_infinity) {
    std::fill(scores, scores + k_tile, 0.0f);
    return;
  }
  const float shrink = std::exp(row.largest - largest);
  const float added = sum_lanes(0, k_tile, [&](auto lanes, int64_t c) HWY_ATTR {
    const auto power = hn::Exp(lanes, hn::Sub(load(lanes, scores + c), hn::Set(lanes, largest)));
    store(lanes, power, scores + c);
    return power;
  });
  row = {largest, row.sum * shrink + added};
  if (shrink != 1.0f)
    for_whole_lanes(width, [&](auto lanes, int64_t c) HWY_ATTR {
      store(lanes, hn::Mul(load(lanes, output + c), hn::Set(lanes, shrink)), output + c);
    });
}

// One tile of queries of one head against all keys it may see; leaves the unscaled output in `output`.
inline void attend_tile(const AttentionTiles& t, const float* queries, const float* keys_t, const float* values,
                        int64_t query_tile, float* scores, float* output, RunningRow* running) {
  std::fill(output, output + k_tile * t.width, 0.0f);
  std::fill(running, running + k_tile, RunningRow{});
  for (int64_t key_tile = t.first_tile(query_tile); key_tile <= query_tile; ++key_tile) {
    score_tile(t, queries, keys_t, {query_tile, key_tile}, scores);
    for (int64_t r = 0; r < t.rows(query_tile); ++r)
      fold_scores(scores + r * k_tile, t.width, output + r * t.width, running[r]);
    multiply_tile<true>({scores, k_tile, 1, values + key_tile * k_tile * t.width, t.width, output, t.width,
                         t.rows(query_tile), t.width, k_tile});
  }
}

template <class T>
void forward_group(const AttentionTiles& t, const HeadGroup& group, const T* qkv, T* y, float* logsumexp) {
  TileScratch& scratch = thread_scratch(t);
  const float* keys = widen_sequence(t, qkv + t.key(group, 0), scratch.take(t.length() * t.width));
  const float* values = widen_sequence(t, qkv + t.value(group, 0), scratch.take(t.length() * t.width));
  float* keys_t = scratch.take(t.length() * t.width);
  transpose_tiles(t, keys, keys_t);
  float *queries = scratch.take(k_tile * t.width), *output = scratch.take(k_tile * t.width);
  float* scores = scratch.take(k_tile * k_tile);
  RunningRow running[k_tile];
  const float scale = 1.0f / std::sqrt(static_cast<float>(t.shape.head_dim));
  for (int64_t head = group.kv_head * t.heads_per_group(); head < (group.kv_head + 1) * t.heads_per_group(); ++head) {
    for (int64_t tile = 0; tile < t.tiles; ++tile) {
      const int64_t start = tile * k_tile;
      widen_rows(t, qkv + t.query(group, head, start), t.shape.row_width(), t.rows(tile), scale, queries);
      attend_tile(t, queries, keys_t, values, tile, scores, output, running);
      for (int64_t r = 0; r < t.rows(tile); ++r) {
        logsumexp[t.statistic(group, head, start + r)] = running[r].largest + std::log(running[r].sum);
        const float share = 1.0f / running[r].sum;
        T* to = y + t.output(group, head, start + r);
        for_lanes(0, t.shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
          store(d, hn::Mul(load(d, output + r * t.width + c), hn::Set(d, share)), to + c);
        });
      }
    }
  }
}

// What the backward pass of one group holds in float, all length×width or one tile of it.
struct BackwardBuffers {
  float *keys, *keys_t, *values_t, *dkeys, *dvalues;
  float *queries, *doutput, *dqueries, *scores, *dscores, *logsumexp, *dot;
};

template <class T>
BackwardBuffers prepare_backward(const AttentionTiles& t, const HeadGroup& group, const T* qkv, TileScratch& scratch) {
  const int64_t whole = t.length() * t.width, tile = k_tile * t.width;
  BackwardBuffers b{};
  b.keys = widen_sequence(t, qkv + t.key(group, 0), scratch.take(whole));
  b.keys_t = scratch.take(whole);
  transpose_tiles(t, b.keys, b.keys_t);
  b.dvalues = scratch.take(whole);
  b.values_t = scratch.take(whole);
  transpose_tiles(t, widen_sequence(t, qkv + t.value(group, 0), b.dvalues), b.values_t);  // dvalues lends its room
  b.dkeys = scratch.take(whole);
  std::fill(b.dvalues, b.dvalues + whole, 0.0f);
  std::fill(b.dkeys, b.dkeys + whole, 0.0f);
  b.queries = scratch.take(tile), b.doutput = scratch.take(tile), b.dqueries = scratch.take(tile);
  b.scores = scratch.take(k_tile * k_tile), b.dscores = scratch.take(k_tile * k_tile);
  b.logsumexp = scratch.take(k_tile), b.dot = scratch.take(k_tile);
  return b;
}

// scores ← p = e^(scores − logsumexp);  dscores ← p·(dscores − dot)
inline void softmax_backward(const BackwardBuffers& b, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    float *p = b.scores + r * k_tile, *dp = b.dscores + r * k_tile;
    const float logsumexp = b.logsumexp[r], dot = b.dot[r];
    for_whole_lanes(k_tile, [&](auto d, int64_t c) HWY_ATTR {
      const auto power = hn::Exp(d, hn::Sub(load(d, p + c), hn::Set(d, logsumexp)));
      store(d, power, p + c);
      store(d, hn::Mul(power, hn::Sub(load(d, dp + c), hn::Set(d, dot))), dp + c);
    });
  }
}

// All keys that one tile of queries sees: adds to dkeys and dvalues, fills dqueries.
inline void backward_tile(const AttentionTiles& t, const BackwardBuffers& b, int64_t query_tile) {
  const int64_t rows = t.rows(query_tile), width = t.width;
  std::fill(b.dqueries, b.dqueries + k_tile * width, 0.0f);
  for (int64_t key_tile = t.first_tile(query_tile); key_tile <= query_tile; ++key_tile) {
    const int64_t at = key_tile * k_tile * width;
    score_tile(t, b.queries, b.keys_t, {query_tile, key_tile}, b.scores);
    multiply_tile<false>(
        {b.doutput, width, 1, b.values_t + at, k_tile, b.dscores, k_tile, rows, k_tile, t.shape.head_dim});
    softmax_backward(b, rows);
    multiply_tile<true>({b.scores, 1, k_tile, b.doutput, width, b.dvalues + at, width, k_tile, width, rows});
    multiply_tile<true>({b.dscores, 1, k_tile, b.queries, width, b.dkeys + at, width, k_tile, width, rows});
    multiply_tile<true>({b.dscores, k_tile, 1, b.keys + at, width, b.dqueries, width, rows, width, k_tile});
  }
}

template <class T>
void load_query_tile(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<T>& g,
                     std::pair<int64_t, int64_t> head_and_start, const BackwardBuffers& b) {
  const auto [head, start] = head_and_start;
  const int64_t rows = std::min(k_tile, t.shape.sequence - start);
  const float scale = 1.0f / std::sqrt(static_cast<float>(t.shape.head_dim));
  widen_rows(t, g.qkv + t.query(group, head, start), t.shape.row_width(), rows, scale, b.queries);
  widen_rows(t, g.dy + t.output(group, head, start), t.shape.heads * t.shape.head_dim, rows, 1.0f, b.doutput);
  for (int64_t r = 0; r < rows; ++r) {
    const T* y = g.y + t.output(group, head, start + r);
    b.logsumexp[r] = g.logsumexp[t.statistic(group, head, start + r)];
    b.dot[r] = sum_lanes(0, t.shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      return hn::Mul(load(d, y + c), load(d, b.doutput + r * t.width + c));
    });
  }
}

// Dense float rows back to rows of T, `stride` apart.
template <class T>
void narrow_rows(const AttentionTiles& t, const float* from, int64_t rows, float factor, T* to, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r)
    for_lanes(0, t.shape.head_dim, [&](auto d, int64_t c) HWY_ATTR {
      store(d, hn::Mul(load(d, from + r * t.width + c), hn::Set(d, factor)), to + r * stride + c);
    });
}

template <class T>
void backward_group(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<T>& g) {
  const BackwardBuffers b = prepare_backward(t, group, g.qkv, thread_scratch(t));
  const int64_t stride = t.shape.row_width();
  const float scale = 1.0f / std::sqrt(static_cast<float>(t.shape.head_dim));
  for (int64_t head = group.kv_head * t.heads_per_group(); head < (group.kv_head + 1) * t.heads_per_group(); ++head) {
    for (int64_t tile = 0; tile < t.tiles; ++tile) {
      load_query_tile(t, group, g, {head, tile * k_tile}, b);
      backward_tile(t, b, tile);
      narrow_rows(t, b.dqueries, t.rows(tile), scale, g.dqkv + t.query(group, head, tile * k_tile), stride);
    }
  }
  narrow_rows(t, b.dkeys, t.shape.sequence, 1.0f, g.dqkv + t.key(group, 0), stride);
  narrow_rows(t, b.dvalues, t.shape.sequence, 1.0f, g.dqkv + t.value(group, 0), stride);
}

void forward_group_float(const AttentionTiles& t, const HeadGroup& group, const float* qkv, float* y,
                         float* logsumexp) {
  forward_group(t, group, qkv, y, logsumexp);
}
void forward_group_bf16(const AttentionTiles& t, const HeadGroup& group, const bf16* qkv, bf16* y, float* logsumexp) {
  forward_group(t, group, qkv, y, logsumexp);
}
void backward_group_float(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<float>& g) {
  backward_group(t, group, g);
}
void backward_group_bf16(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<bf16>& g) {
  backward_group(t, group, g);
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat {
namespace {

HWY_EXPORT(forward_group_float);
HWY_EXPORT(forward_group_bf16);
HWY_EXPORT(backward_group_float);
HWY_EXPORT(backward_group_bf16);

template <class GroupWork>
void for_groups(const AttentionShape& shape, const GroupWork& work) {
  CHECK(shape.heads % shape.kv_heads == 0);
  parallel_for_uneven(shape.batch * shape.kv_heads, [&](int64_t index, int) {
    work(HeadGroup{index / shape.kv_heads, index % shape.kv_heads});
  });
}

}  // namespace

template <>
void attention_forward<float>(const AttentionShape& shape, const float* qkv, float* y, float* logsumexp) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(forward_group_float);
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { kernel(tiles, group, qkv, y, logsumexp); });
}
template <>
void attention_forward<bf16>(const AttentionShape& shape, const bf16* qkv, bf16* y, float* logsumexp) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(forward_group_bf16);
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { kernel(tiles, group, qkv, y, logsumexp); });
}
template <>
void attention_forward<double>(const AttentionShape& shape, const double* qkv, double* y, double* logsumexp) {
  reference::attention_forward(shape, qkv, y, logsumexp);
}

template <>
void attention_backward<float>(const AttentionShape& shape, const AttentionGradient<float>& g) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(backward_group_float);
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { kernel(tiles, group, g); });
}
template <>
void attention_backward<bf16>(const AttentionShape& shape, const AttentionGradient<bf16>& g) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(backward_group_bf16);
  const AttentionTiles tiles(shape);
  for_groups(shape, [&](const HeadGroup& group) { kernel(tiles, group, g); });
}
template <>
void attention_backward<double>(const AttentionShape& shape, const AttentionGradient<double>& g) {
  reference::attention_backward(shape, g);
}

}  // namespace tprimat
#endif  // HWY_ONCE
