// Attention backward on tensor cores, after FlashAttention-2 (Dao, arXiv 2307.08691): p is computed again from the
// scores and their logsumexp. One pass over the keys of each tile of queries makes dquery, one over the queries of each
// tile of keys (of all heads that share them, in order) makes dkey and dvalue: nothing is added up by several blocks,
// so the same inputs give the same bits. With p = softmax, dp = dy·vᵀ and mean = Σ_c dy·y:
//   dvalue = pᵀ·dy,   ds = p·(dp − mean),   dquery = ds·k/√d,   dkey = dsᵀ·q/√d
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/attention_parts.h"

namespace tprimat::engine::gpu {
namespace {

template <class T>
struct BackwardArgs {
  AttentionView view;
  HeadRows<const T> query, key, value, y, dy;
  const float* logsumexp;
  HeadRows<T> dquery, dkey, dvalue;
  bool accumulate, packs;
  // For each head a row of `padded` queries: logsumexp·log2(e), +∞ where no key is seen or no query is there, and mean.
  float *exponent, *mean;
  int padded;
};

// One warp for each query.
template <class T>
__global__ void statistics_kernel(BackwardArgs<T> args) {
  const AttentionView& view = args.view;
  const int query = static_cast<int>(blockIdx.x * (blockDim.x / k_warp)) + warp_of_thread();
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  if (query >= args.padded) return;
  float sum = 0, exponent = k_infinity;
  if (query < view.queries) {
    const T* y = rows_of(args.y, view, batch, head, query, view.queries, false).data;
    const T* dy = rows_of(args.dy, view, batch, head, query, view.queries, false).data;
    if (args.packs) {
      for (int c = lane_of_thread() * Pack<T>::k_size; c < view.head_dim; c += k_warp * Pack<T>::k_size) {
        const Pack<T> a = load_pack(y + c), b = load_pack(dy + c);
        TPRIMAT_UNROLL
        for (int i = 0; i < Pack<T>::k_size; ++i) sum += load(a.values[i]) * load(b.values[i]);
      }
    } else {
      for (int c = lane_of_thread(); c < view.head_dim; c += k_warp) sum += load(y[c]) * load(dy[c]);
    }
    const float logsumexp = args.logsumexp[(static_cast<int64_t>(batch) * view.heads + head) * view.queries + query];
    if (logsumexp != -k_infinity) exponent = logsumexp * k_log2_e;
  }
  sum = warp_sum(sum);
  if (lane_of_thread() != 0) return;
  const int64_t at = (static_cast<int64_t>(batch) * view.heads + head) * args.padded + query;
  args.exponent[at] = exponent;
  args.mean[at] = sum;
}

template <int width>
struct QueryTiles {                                                    // of the pass over keys
  static constexpr int k_warps = width > 128 && k_wave_of_64 ? 2 : 4;  // AMD's blocks have 64 KiB of shared memory
  static constexpr int k_threads = k_warps * k_warp;
  static constexpr int k_parts = width > 128 || k_wave_of_64 ? 1 : 2;
  static constexpr int k_queries = k_warps * k_parts * 16;
  static constexpr int k_keys = width == 64 ? 64 : 32;
};

// Of the queries of a warp's tile, in registers.
template <int parts>
struct RowStatistics {
  float exponent[parts][Accumulator::k_slots], mean[parts][Accumulator::k_slots];

  // From `count` queries, the warp's own from `own` on.
  __device__ __forceinline__ void load(const float* from_exponent, const float* from_mean, int own, int count) {
    TPRIMAT_UNROLL
    for (int r = 0; r < parts; ++r) {
      TPRIMAT_UNROLL
      for (int slot = 0; slot < Accumulator::k_slots; ++slot) {
        const int row = own + 16 * r + Accumulator::row_of_slot(slot);
        exponent[r][slot] = row < count ? from_exponent[row] : k_infinity;
        mean[r][slot] = row < count ? from_mean[row] : 0;
      }
    }
  }
};

// scores ← p, dp ← ds
template <int parts, int width>
__device__ __forceinline__ void softmax_backward(const WarpTile<parts, width>& scores, WarpTile<parts, width>& dp,
                                                 float scale_log2, const RowStatistics<parts>& statistics) {
  TPRIMAT_UNROLL
  for (int r = 0; r < parts; ++r) {
    TPRIMAT_UNROLL
    for (int c = 0; c < width / 16; ++c) {
      TPRIMAT_UNROLL
      for (int i = 0; i < Accumulator::k_size; ++i) {
        const int slot = Accumulator::slot(i);
        const float p = fast_exp2(scores.at[r][c].values[i] * scale_log2 - statistics.exponent[r][slot]);
        dp.at[r][c].values[i] = p * (dp.at[r][c].values[i] - statistics.mean[r][slot]);
      }
    }
  }
}

template <class T, int width>
__global__ void __launch_bounds__(QueryTiles<width>::k_threads) dquery_kernel(BackwardArgs<T> args, BlockOrder order) {
  using Tiles = QueryTiles<width>;
  constexpr int k_keys = Tiles::k_keys, k_threads = Tiles::k_threads, k_queries = Tiles::k_queries;
  TPRIMAT_DYNAMIC_SHARED(T, memory);
  const SharedTile<T, width> queries{memory}, dys{memory + k_queries * width}, keys{dys.data + k_queries * width},
      values{keys.data + k_keys * width};
  const AttentionView& view = args.view;
  const BlockOrder::Work work = order.work(static_cast<int>(blockIdx.x));
  const int batch = static_cast<int>(blockIdx.y), kv_head = work.head / view.group();
  const int first = (order.tiles - 1 - work.tile) * k_queries;
  const int last = view.smaller(first + k_queries, view.queries) - 1;
  const int end_key = view.end_key(last), begin = view.first_key(first) / k_keys * k_keys;

  const auto load_keys = [&](const SharedTile<T, width>& to, const HeadRows<const T>& from, int key) {
    load_tile<k_keys, k_threads>(to, rows_of(from, view, hidden(batch), hidden(kv_head), key, view.keys, args.packs));
  };
  const auto load_queries = [&](const SharedTile<T, width>& to, const HeadRows<const T>& from) {
    load_tile<k_queries, k_threads>(to, rows_of(from, view, batch, work.head, first, view.queries, args.packs));
  };
  load_queries(queries, args.query);
  load_queries(dys, args.dy);
  if (begin < end_key) load_keys(values, args.value, begin);

  const int own = warp_of_thread() * Tiles::k_parts * 16;
  const int64_t at = (static_cast<int64_t>(batch) * view.heads + work.head) * args.padded + first;
  RowStatistics<Tiles::k_parts> statistics;
  statistics.load(args.exponent + at, args.mean + at, own, args.padded - first);

  WarpTile<Tiles::k_parts, width> dquery;
  dquery.clear();
  for (int key = begin; key < end_key; key += k_keys) {
    wait_for_copies();
    __syncthreads();  // values are there, keys of the round before are done with
    load_keys(keys, args.key, key);
    WarpTile<Tiles::k_parts, k_keys> dp, scores;
    multiply_rows(dp, dys, own, values);
    wait_for_copies();
    __syncthreads();  // keys are there, values are done with
    if (key + k_keys < end_key) load_keys(values, args.value, key + k_keys);
    multiply_rows(scores, queries, own, keys);
    if (key + k_keys > view.end_key(first) || key < view.first_key(last))
      hide(scores, first + own, key,
           [&](int query, int& from, int& to) { from = view.first_key(query), to = view.end_key(query); });
    softmax_backward(scores, dp, view.scale_log2, statistics);
    add_product(dquery, dp, keys);
  }
  wait_for_copies();
  __syncthreads();
  multiply(dquery, view.scale);
  store_rows(dquery, queries, own, rows_of(args.dquery, view, batch, work.head, first, view.queries, args.packs));
}

// Of the pass over queries. Where the sums of dkey and dvalue do not fit into the registers together, it runs twice.
enum class KeyPart { both, key, value };
template <int width>
struct KeyTiles {
  static constexpr bool k_whole = width <= 128;
  static constexpr int k_warps = !k_whole && k_wave_of_64 ? 2 : 4;
  static constexpr int k_threads = k_warps * k_warp;
  static constexpr int k_keys = k_warps * 16;
  static constexpr int k_queries = k_wave_of_64 ? (k_whole ? 32 : 16) : (k_whole ? 64 : 32);
  static_assert(k_statistics_padding % k_queries == 0);
};

// The statistics of one tile of queries, in shared memory.
template <int queries>
struct TileStatistics {
  float *exponent, *mean;

  __device__ __forceinline__ void load(const float* from_exponent, const float* from_mean) const {
    constexpr int k_packs = queries / 4;
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < k_packs)
      copy_pack_async(exponent + 4 * thread, from_exponent + 4 * thread, true);
    else if (thread < 2 * k_packs)
      copy_pack_async(mean + 4 * (thread - k_packs), from_mean + 4 * (thread - k_packs), true);
  }
};

// What a block of the pass over queries holds.
template <class T, int width>
struct KeyMemory {
  using Tiles = KeyTiles<width>;
  SharedTile<T, width> keys, values, queries, dys;
  TileStatistics<Tiles::k_queries> statistics;

  __device__ __forceinline__ explicit KeyMemory(T* memory)
      : keys{memory},
        values{memory + Tiles::k_keys * width},
        queries{values.data + Tiles::k_keys * width},
        dys{queries.data + Tiles::k_queries * width} {
    auto* const floats = reinterpret_cast<float*>(dys.data + Tiles::k_queries * width);
    statistics = {floats, floats + Tiles::k_queries};
  }
};

// Scores of keys from `first_key` on, the warp's own from `own` on, and of queries from `query` on.
template <int keys, int queries>
__device__ __forceinline__ void hide_unseen(WarpTile<1, queries>& scores, const AttentionView& view, int first_key,
                                            int own, int query) {
  if (first_key + keys - 1 > view.first_query + query ||
      (view.window > 0 && first_key < view.first_key(query + queries - 1)))
    hide(scores, first_key + own, query,
         [&](int key, int& from, int& to) { from = view.first_query_of(key), to = view.end_query_of(key); });
}

// scores (keys×queries) ← p, dp ← ds
template <bool wants_ds, int queries>
__device__ __forceinline__ void softmax_backward(WarpTile<1, queries>& scores, WarpTile<1, queries>& dp,
                                                 float scale_log2, const TileStatistics<queries>& statistics) {
  TPRIMAT_UNROLL
  for (int c = 0; c < queries / 16; ++c) {
    TPRIMAT_UNROLL
    for (int i = 0; i < Accumulator::k_size; ++i) {
      const int query = 16 * c + Accumulator::col(i);
      float& p = scores.at[0][c].values[i];
      p = fast_exp2(p * scale_log2 - statistics.exponent[query]);
      if constexpr (wants_ds) dp.at[0][c].values[i] = p * (dp.at[0][c].values[i] - statistics.mean[query]);
    }
  }
}

template <class T, int width>
__device__ __forceinline__ void store_sums(WarpTile<1, width>& sums, const SharedTile<T, width>& by_way_of,
                                           int first_row, const GlobalRows<T>& to, bool accumulate) {
  if (accumulate) add_rows(sums, first_row, to);
  store_rows(sums, by_way_of, first_row, to);
}

template <class T, int width, KeyPart part>
__global__ void __launch_bounds__(KeyTiles<width>::k_threads) dkey_kernel(BackwardArgs<T> args, BlockOrder order) {
  using Tiles = KeyTiles<width>;
  constexpr int k_keys = Tiles::k_keys, k_threads = Tiles::k_threads, k_queries = Tiles::k_queries;
  constexpr bool k_makes_key = part != KeyPart::value, k_makes_value = part != KeyPart::key;
  TPRIMAT_DYNAMIC_SHARED(T, memory);
  const KeyMemory<T, width> tiles(memory);
  const AttentionView& view = args.view;
  const BlockOrder::Work work = order.work(static_cast<int>(blockIdx.x));
  const int batch = static_cast<int>(blockIdx.y), first = work.tile * k_keys;
  const int last = view.smaller(first + k_keys, view.keys) - 1;
  // The rounds: tiles of queries of the first head, then of the second, ...
  const int begin = view.first_query_of(first) / k_queries, end = (view.end_query_of(last) + k_queries - 1) / k_queries;
  const int rounds = begin < end ? (end - begin) * view.group() : 0;

  const auto load_queries = [&](const SharedTile<T, width>& to, const HeadRows<const T>& from, int head, int query) {
    load_tile<k_queries, k_threads>(to, rows_of(from, view, batch, head, query, view.queries, args.packs));
  };
  const auto load_dys = [&](int head, int query) {
    load_queries(tiles.dys, args.dy, head, query);
    const int64_t at = (static_cast<int64_t>(batch) * view.heads + head) * args.padded + query;
    tiles.statistics.load(args.exponent + at, args.mean + at);
  };
  load_tile<k_keys, k_threads>(tiles.keys, rows_of(args.key, view, batch, work.head, first, view.keys, args.packs));
  load_tile<k_keys, k_threads>(tiles.values, rows_of(args.value, view, batch, work.head, first, view.keys, args.packs));
  int head = work.head * view.group(), tile = begin;
  if (rounds > 0) load_dys(head, tile * k_queries);

  const int own = warp_of_thread() * 16;
  WarpTile<1, width> dkey, dvalue;
  dkey.clear();
  dvalue.clear();
  for (int round = 0; round < rounds; ++round) {
    const int query = tile * k_queries;
    wait_for_copies();
    __syncthreads();  // dys are there, queries of the round before are done with
    load_queries(tiles.queries, args.query, head, query);
    WarpTile<1, k_queries> dp, scores;
    if constexpr (k_makes_key) multiply_rows(dp, tiles.values, own, tiles.dys);
    wait_for_copies();
    __syncthreads();  // queries are there
    multiply_rows(scores, tiles.keys, own, tiles.queries);
    hide_unseen<k_keys>(scores, view, first, own, query);
    softmax_backward<k_makes_key>(scores, dp, view.scale_log2, tiles.statistics);
    if constexpr (k_makes_value) add_product(dvalue, scores, tiles.dys);
    __syncthreads();  // dys are done with
    if (++tile == end) tile = begin, ++head;
    if (round + 1 < rounds) load_dys(head, tile * k_queries);
    if constexpr (k_makes_key) add_product(dkey, dp, tiles.queries);
  }
  wait_for_copies();
  __syncthreads();

  const auto rows = [&](const HeadRows<T>& all) {
    return rows_of(all, view, batch, work.head, first, view.keys, args.packs);
  };
  multiply(dkey, view.scale);
  if constexpr (k_makes_key) store_sums(dkey, tiles.keys, own, rows(args.dkey), args.accumulate);
  if constexpr (k_makes_value) store_sums(dvalue, tiles.values, own, rows(args.dvalue), args.accumulate);
}

template <class T>
void launch_statistics(const AttentionShape& shape, const BackwardArgs<T>& args) {
  constexpr int k_warps = 256 / k_warp;
  launch({dim3(static_cast<unsigned>((args.padded + k_warps - 1) / k_warps), static_cast<unsigned>(shape.heads),
               static_cast<unsigned>(shape.batch)),
          dim3(256), 0, context().stream},
         statistics_kernel<T>, args);
}

template <class T, int width>
void launch_dquery(const AttentionShape& shape, const BackwardArgs<T>& args) {
  using Tiles = QueryTiles<width>;
  const int tiles = (args.view.queries + Tiles::k_queries - 1) / Tiles::k_queries;
  const size_t bytes_of_group = static_cast<size_t>(shape.keys * shape.head_dim) * 2 * sizeof(T);
  constexpr size_t k_bytes = sizeof(T) * width * 2 * (Tiles::k_queries + Tiles::k_keys);
  launch({dim3(static_cast<unsigned>(args.view.heads * tiles), static_cast<unsigned>(shape.batch)),
          dim3(Tiles::k_threads), k_bytes, context().stream},
         dquery_kernel<T, width>, args, order_blocks(args.view.heads, tiles, args.view.group(), bytes_of_group));
}

template <class T, int width, KeyPart part>
void launch_dkey(const AttentionShape& shape, const BackwardArgs<T>& args) {
  using Tiles = KeyTiles<width>;
  const int tiles = (args.view.keys + Tiles::k_keys - 1) / Tiles::k_keys;
  const size_t bytes_of_group =
      static_cast<size_t>(shape.queries * shape.head_dim) * 2 * sizeof(T) * static_cast<size_t>(args.view.group());
  constexpr size_t k_bytes =
      sizeof(T) * width * 2 * (Tiles::k_queries + Tiles::k_keys) + 2 * sizeof(float) * Tiles::k_queries;
  launch({dim3(static_cast<unsigned>(args.view.kv_heads * tiles), static_cast<unsigned>(shape.batch)),
          dim3(Tiles::k_threads), k_bytes, context().stream},
         dkey_kernel<T, width, part>, args, order_blocks(args.view.kv_heads, tiles, 1, bytes_of_group));
}

template <class T, int width>
void launch_backward(const AttentionShape& shape, const BackwardArgs<T>& args) {
  if (shape.queries > 0) {
    launch_statistics(shape, args);
    launch_dquery<T, width>(shape, args);
  }
  if (shape.keys == 0) return;
  if constexpr (KeyTiles<width>::k_whole) {
    launch_dkey<T, width, KeyPart::both>(shape, args);
  } else {
    launch_dkey<T, width, KeyPart::key>(shape, args);
    launch_dkey<T, width, KeyPart::value>(shape, args);
  }
}

template <class T>
void backward_of_part(const AttentionShape& shape, const AttentionGradient<T>& g, int padded) {
  const int64_t statistics = shape.batch * shape.heads * padded;
  auto* const floats = scratch<float>(2 * statistics);
  const AttentionInputs<T>& in = g.inputs;
  const bool packs = heads_fit_packs<T>(
      shape, {in.query, in.key, in.value, g.y, g.dy, g.dquery.read_only(), g.dkey.read_only(), g.dvalue.read_only()});
  const BackwardArgs<T> args{AttentionView(shape),
                             in.query,
                             in.key,
                             in.value,
                             g.y,
                             g.dy,
                             g.logsumexp,
                             g.dquery,
                             g.dkey,
                             g.dvalue,
                             g.accumulate,
                             packs,
                             floats,
                             floats + statistics,
                             padded};
  if (shape.head_dim <= 64) return launch_backward<T, 64>(shape, args);
  if (shape.head_dim <= 96) return launch_backward<T, 96>(shape, args);
  if (shape.head_dim <= 128) return launch_backward<T, 128>(shape, args);
  launch_backward<T, 256>(shape, args);
}

}  // namespace

template <class T>
void tiled_attention_backward(const AttentionShape& shape, const AttentionGradient<T>& gradient) {
  const int64_t tiles = (shape.queries + k_statistics_padding - 1) / k_statistics_padding;
  const auto padded = static_cast<int>(tiles * k_statistics_padding);
  in_parts(shape, gradient, 2 * int64_t{padded},
           [&](const AttentionShape& part, const AttentionGradient<T>& g) { backward_of_part(part, g, padded); });
}
template void tiled_attention_backward(const AttentionShape&, const AttentionGradient<bf16>&);
template void tiled_attention_backward(const AttentionShape&, const AttentionGradient<f16>&);

}  // namespace tprimat::engine::gpu
