#pragma once

// What the attention kernels know of their work: the shape in the numbers a GPU counts with, which keys a query sees,
// and which block does which part.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "device/gpu/context.h"
#include "ops/attention.h"
#include "ops/gpu/shared_tile.h"

namespace tprimat::engine::gpu {

inline constexpr float k_log2_e = 1.4426950408889634f, k_ln_2 = 0.6931471805599453f;
inline constexpr int k_max_head_dim = 256;  // of our own kernels

// AttentionShape on the device. Scores are kept as powers of 2: e^(s·scale) = 2^(s·scale_log2).
struct AttentionView {
  int queries, keys, first_query, heads, kv_heads, head_dim, window;
  float scale, scale_log2;

  explicit AttentionView(const AttentionShape& s)
      : queries(static_cast<int>(s.queries)),
        keys(static_cast<int>(s.keys)),
        first_query(static_cast<int>(s.first_query)),
        heads(static_cast<int>(s.heads)),
        kv_heads(static_cast<int>(s.kv_heads)),
        head_dim(static_cast<int>(s.head_dim)),
        window(static_cast<int>(s.window)),
        scale(1.0f / std::sqrt(static_cast<float>(s.head_dim))),
        scale_log2(scale * k_log2_e) {
    CHECK(s.heads % s.kv_heads == 0 && s.head_dim <= k_max_head_dim);
    CHECK(std::max(s.keys, s.first_query + s.queries) + s.window < int64_t{1} << 31);
  }

  __host__ __device__ int group() const { return heads / kv_heads; }
  // Keys that query t sees: first_key(t) ≤ key < end_key(t).
  __host__ __device__ int first_key(int t) const {
    return window > 0 && first_query + t >= window ? first_query + t - window + 1 : 0;
  }
  __host__ __device__ int end_key(int t) const { return smaller(keys, first_query + t + 1); }
  // Queries that see key s, were all keys there: first_query_of(s) ≤ query < end_query_of(s).
  __host__ __device__ int first_query_of(int s) const { return s > first_query ? s - first_query : 0; }
  __host__ __device__ int end_query_of(int s) const {
    return window > 0 ? smaller(queries, s - first_query + window) : queries;
  }
  __host__ __device__ static int smaller(int a, int b) { return a < b ? a : b; }
};

// Head `head` of sequence `batch`, from row `first` on.
template <class T>
__device__ __forceinline__ GlobalRows<T> rows_of(const HeadRows<T>& all, const AttentionView& view, int batch, int head,
                                                 int first, int count, bool packs) {
  return {all.data + batch * all.sequence_stride + first * all.row_stride + head * view.head_dim, all.row_stride,
          count - first, view.head_dim, packs};
}

// Which head and tile a block works on. Tiles with the most work come first, and blocks that run at the same time read
// the keys and values (or queries) of few heads, so that these stay in the device's cache.
struct BlockOrder {
  int heads, tiles, together;

  struct Work {
    int head, tile;  // tile: in order of work
  };
  __device__ Work work(int block) const {
    const int first = block / (together * tiles) * together, within = block % (together * tiles);
    const int here = AttentionView::smaller(together, heads - first);
    return {first + within % here, within / here};
  }
};

inline BlockOrder order_blocks(int heads, int tiles, int group, size_t bytes_of_group) {
  constexpr size_t k_cache_bytes = size_t{24} << 20;  // half of an H100's
  const auto groups =
      static_cast<int>(std::clamp<size_t>(k_cache_bytes / std::max<size_t>(bytes_of_group, 1), 1, 1024));
  return {heads, tiles, std::min(heads, groups * group)};
}

// The gradient of some sequences and key/value heads.
template <class T>
AttentionGradient<T> part_of(const AttentionShape& shape, const AttentionGradient<T>& g, int64_t batch,
                             int64_t kv_head) {
  const int64_t head = kv_head * (shape.heads / shape.kv_heads);
  const auto from = [&](auto rows, int64_t first_head) {
    rows.data += batch * rows.sequence_stride + first_head * shape.head_dim;
    return rows;
  };
  return {{from(g.inputs.query, head), from(g.inputs.key, kv_head), from(g.inputs.value, kv_head)},
          from(g.y, head),
          g.logsumexp + (batch * shape.heads + head) * shape.queries,
          from(g.dy, head),
          from(g.dquery, head),
          from(g.dkey, kv_head),
          from(g.dvalue, kv_head),
          g.accumulate};
}

// work(shape, gradient) for as many sequences at a time, or as many heads of one, as fit into the scratch memory with
// `floats` for each head.
template <class T, class Work>
void in_parts(const AttentionShape& shape, const AttentionGradient<T>& g, int64_t floats, const Work& work) {
  const int64_t group = shape.heads / shape.kv_heads;
  const auto fitting = static_cast<int64_t>(context().scratch_bytes / sizeof(float)) / std::max<int64_t>(floats, 1);
  const int64_t sequences = std::clamp<int64_t>(fitting / shape.heads, 1, shape.batch);
  const int64_t kv_heads = std::clamp<int64_t>(fitting / group, 1, shape.kv_heads);
  AttentionShape part = shape;
  for (int64_t batch = 0; batch < shape.batch; batch += part.batch) {
    part.batch = std::min(sequences, shape.batch - batch);
    for (int64_t kv_head = 0; kv_head < shape.kv_heads; kv_head += part.kv_heads) {
      part.kv_heads = std::min(kv_heads, shape.kv_heads - kv_head);
      part.heads = part.kv_heads * group;
      work(part, part_of(shape, g, batch, kv_head));
    }
  }
}

}  // namespace tprimat::engine::gpu
