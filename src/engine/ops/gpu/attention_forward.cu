// Attention forward on tensor cores, after FlashAttention-2 (Dao, arXiv 2307.08691): a block holds a tile of queries
// and walks over the keys that they see; the tile of values arrives while scores are computed, the next tile of keys
// while the values are added up.
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/attention_parts.h"

namespace tprimat::engine::gpu {
namespace {

template <int width>
struct ForwardTiles {
  static constexpr int k_warps = 4;
  static constexpr int k_threads = k_warps * k_warp;
  static constexpr int k_parts = width > 128 || k_wave_of_64 ? 1 : 2;  // of 16 queries, for each warp
  static constexpr int k_queries = k_warps * k_parts * 16;
  static constexpr int k_keys = width > 128 && k_wave_of_64 ? 32 : 64;
};

template <class T>
struct ForwardArgs {
  AttentionView view;
  BlockOrder order;
  HeadRows<const T> query, key, value;
  HeadRows<T> y;
  float* logsumexp;
  bool packs;
};

// The running softmax of a warp's rows: the largest score so far and this thread's part of Σ 2^(score − largest).
template <int parts>
struct RunningSoftmax {
  float largest[parts][Accumulator::k_slots], sum[parts][Accumulator::k_slots];

  __device__ void start() {
    TPRIMAT_UNROLL
    for (int r = 0; r < parts; ++r) {
      TPRIMAT_UNROLL
      for (int slot = 0; slot < Accumulator::k_slots; ++slot) largest[r][slot] = -k_infinity, sum[r][slot] = 0;
    }
  }

  // scores ← 2^(score − largest); what was added up so far shrinks to the new largest.
  template <int keys, int width>
  __device__ __forceinline__ void fold(WarpTile<parts, keys>& scores, WarpTile<parts, width>& output,
                                       float scale_log2) {
    TPRIMAT_UNROLL
    for (int r = 0; r < parts; ++r) {
      float taken[Accumulator::k_slots], shrink[Accumulator::k_slots];
      TPRIMAT_UNROLL
      for (int slot = 0; slot < Accumulator::k_slots; ++slot) {
        const float before = largest[r][slot], now = row_max(largest_of(scores.at[r], keys / 16, slot, before));
        largest[r][slot] = now;
        taken[slot] = now == -k_infinity ? 0.0f : now * scale_log2;
        shrink[slot] = fast_exp2(before * scale_log2 - taken[slot]);
        sum[r][slot] *= shrink[slot];
      }
      TPRIMAT_UNROLL
      for (int c = 0; c < keys / 16; ++c) {
        TPRIMAT_UNROLL
        for (int i = 0; i < Accumulator::k_size; ++i) {
          float& score = scores.at[r][c].values[i];
          score = fast_exp2(score * scale_log2 - taken[Accumulator::slot(i)]);
          sum[r][Accumulator::slot(i)] += score;
        }
      }
      TPRIMAT_UNROLL
      for (int c = 0; c < width / 16; ++c) {
        TPRIMAT_UNROLL
        for (int i = 0; i < Accumulator::k_size; ++i) output.at[r][c].values[i] *= shrink[Accumulator::slot(i)];
      }
    }
  }

 private:
  __device__ __forceinline__ static float largest_of(const Accumulator* scores, int count, int slot, float largest) {
    TPRIMAT_UNROLL
    for (int c = 0; c < count; ++c) {
      TPRIMAT_UNROLL
      for (int i = 0; i < Accumulator::k_size; ++i)
        if (Accumulator::slot(i) == slot) largest = fmaxf(largest, scores[c].values[i]);
    }
    return largest;
  }
};

// Divides by the rows' sums and stores their logsumexp; rows that see no key become zero.
template <int parts, int width>
__device__ __forceinline__ void finish_rows(RunningSoftmax<parts>& softmax, WarpTile<parts, width>& output, float scale,
                                            int rows, int first_row, float* logsumexp) {
  TPRIMAT_UNROLL
  for (int r = 0; r < parts; ++r) {
    float share[Accumulator::k_slots];
    TPRIMAT_UNROLL
    for (int slot = 0; slot < Accumulator::k_slots; ++slot) {
      const float sum = row_sum(softmax.sum[r][slot]), largest = softmax.largest[r][slot];
      share[slot] = largest == -k_infinity && sum == 0 ? 0.0f : 1.0f / sum;
      const int row = first_row + 16 * r + Accumulator::row_of_slot(slot);
      if (Accumulator::col(0) == 0 && row < rows) logsumexp[row] = largest * scale + logf(sum);
    }
    TPRIMAT_UNROLL
    for (int c = 0; c < width / 16; ++c) {
      TPRIMAT_UNROLL
      for (int i = 0; i < Accumulator::k_size; ++i) output.at[r][c].values[i] *= share[Accumulator::slot(i)];
    }
  }
}

template <class T, int width>
__global__ void __launch_bounds__(ForwardTiles<width>::k_threads) forward_kernel(ForwardArgs<T> args) {
  using Tiles = ForwardTiles<width>;
  constexpr int k_keys = Tiles::k_keys, k_threads = Tiles::k_threads;
  TPRIMAT_DYNAMIC_SHARED(T, memory);
  const SharedTile<T, width> queries{memory}, keys{memory + Tiles::k_queries * width},
      values{keys.data + k_keys * width};
  const AttentionView& view = args.view;
  const BlockOrder::Work work = args.order.work(static_cast<int>(blockIdx.x));
  const int batch = static_cast<int>(blockIdx.y), kv_head = work.head / view.group();
  const int first = (args.order.tiles - 1 - work.tile) * Tiles::k_queries;  // query
  const int last = view.smaller(first + Tiles::k_queries, view.queries) - 1;
  const int end_key = view.end_key(last), begin = view.first_key(first) / k_keys * k_keys;

  const auto load_keys = [&](const SharedTile<T, width>& to, const HeadRows<const T>& from, int key) {
    load_tile<k_keys, k_threads>(to, rows_of(from, view, hidden(batch), hidden(kv_head), key, view.keys, args.packs));
  };
  load_tile<Tiles::k_queries, k_threads>(queries,
                                         rows_of(args.query, view, batch, work.head, first, view.queries, args.packs));
  if (begin < end_key) load_keys(keys, args.key, begin);

  const int own = warp_of_thread() * Tiles::k_parts * 16;
  WarpTile<Tiles::k_parts, width> output;
  RunningSoftmax<Tiles::k_parts> softmax;
  output.clear();
  softmax.start();
  for (int key = begin; key < end_key; key += k_keys) {
    wait_for_copies();
    __syncthreads();  // keys are there, values of the round before are done with
    load_keys(values, args.value, key);
    WarpTile<Tiles::k_parts, k_keys> scores;
    multiply_rows(scores, queries, own, keys);
    wait_for_copies();
    __syncthreads();  // values are there, keys are done with
    if (key + k_keys < end_key) load_keys(keys, args.key, key + k_keys);
    if (key + k_keys > view.end_key(first) || key < view.first_key(last))
      hide(scores, first + own, key,
           [&](int query, int& from, int& to) { from = view.first_key(query), to = view.end_key(query); });
    softmax.fold(scores, output, view.scale_log2);
    add_product(output, scores, values);
  }
  wait_for_copies();
  __syncthreads();  // the queries, where there was no key

  const int64_t statistic = (static_cast<int64_t>(batch) * view.heads + work.head) * view.queries + first;
  finish_rows(softmax, output, view.scale, view.queries - first, own, args.logsumexp + statistic);
  store_rows(output, queries, own, rows_of(args.y, view, batch, work.head, first, view.queries, args.packs));
}

template <class T, int width>
void launch_forward(const AttentionShape& shape, const AttentionInputs<T>& in, const HeadRows<T>& y, float* logsumexp) {
  using Tiles = ForwardTiles<width>;
  const AttentionView view(shape);
  const int tiles = (view.queries + Tiles::k_queries - 1) / Tiles::k_queries;
  const size_t bytes_of_group = static_cast<size_t>(shape.keys * shape.head_dim) * 2 * sizeof(T);
  const ForwardArgs<T> args{
      view,      order_blocks(view.heads, tiles, view.group(), bytes_of_group),         in.query, in.key, in.value, y,
      logsumexp, heads_fit_packs<T>(shape, {in.query, in.key, in.value, y.read_only()})};
  constexpr size_t k_bytes = sizeof(T) * width * (Tiles::k_queries + 2 * Tiles::k_keys);
  launch({dim3(static_cast<unsigned>(view.heads * tiles), static_cast<unsigned>(shape.batch)), dim3(Tiles::k_threads),
          k_bytes, context().stream},
         forward_kernel<T, width>, args);
}

}  // namespace

template <class T>
void tiled_attention_forward(const AttentionShape& shape, const AttentionInputs<T>& inputs, const HeadRows<T>& y,
                             float* logsumexp) {
  if (shape.head_dim <= 64) return launch_forward<T, 64>(shape, inputs, y, logsumexp);
  if (shape.head_dim <= 96) return launch_forward<T, 96>(shape, inputs, y, logsumexp);
  if (shape.head_dim <= 128) return launch_forward<T, 128>(shape, inputs, y, logsumexp);
  launch_forward<T, 256>(shape, inputs, y, logsumexp);
}
template void tiled_attention_forward(const AttentionShape&, const AttentionInputs<bf16>&, const HeadRows<bf16>&,
                                      float*);
template void tiled_attention_forward(const AttentionShape&, const AttentionInputs<f16>&, const HeadRows<f16>&, float*);

}  // namespace tprimat::engine::gpu
