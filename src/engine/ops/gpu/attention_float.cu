// Attention in float, without tensor cores: a team of 32 threads for each query (for each key, where dkey and dvalue
// are made). For scores each thread takes another row of a tile of 32, for sums over these rows other columns.
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/attention_view.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

constexpr int k_team = 32, k_teams = 8;  // teams of a block
constexpr int k_columns = k_max_head_dim / k_team;

__device__ int member() { return static_cast<int>(threadIdx.x) % k_team; }
__device__ int team() { return static_cast<int>(threadIdx.x) / k_team; }

// Rows of heads in shared memory, in all k_team of one tile or one for each team.
struct FloatRows {
  float* data;
  int width;

  __device__ float* row(int i) const { return data + i * (width + 1); }  // an odd stride: rows in different banks
  template <int rows>
  __device__ void load(const GlobalRows<const float>& from) const {
    for (int i = static_cast<int>(threadIdx.x); i < rows * width; i += k_team * k_teams) {
      const int r = i / width, c = i % width;
      row(r)[c] = r < from.rows ? from.data[r * from.stride + c] : 0.0f;
    }
  }
};
__device__ float dot(const float* a, const float* b, int width) {
  float sum = 0;
  for (int c = 0; c < width; ++c) sum += a[c] * b[c];
  return sum;
}

// A team's row of a result: member i holds columns i, i + k_team, ...
struct TeamRow {
  float values[k_columns];

  __device__ void clear() {
    TPRIMAT_UNROLL
    for (int i = 0; i < k_columns; ++i) values[i] = 0;
  }
  __device__ void multiply(float factor) {
    TPRIMAT_UNROLL
    for (int i = 0; i < k_columns; ++i) values[i] *= factor;
  }
  // += Σ_r weight_r · tile[r], weight_r being member r's. All threads of the block call it, and a barrier lies between
  // two calls.
  __device__ void add(float weight, const FloatRows& tile) {
    __shared__ float weights[k_teams][k_team];
    weights[team()][member()] = weight;
    sync_warp();
    for (int r = 0; r < k_team; ++r) {
      TPRIMAT_UNROLL
      for (int i = 0; i < k_columns; ++i)
        if (member() + i * k_team < tile.width) values[i] += weights[team()][r] * tile.row(r)[member() + i * k_team];
    }
  }
  __device__ void store(float* to, int width, bool accumulate) const {
    TPRIMAT_UNROLL
    for (int i = 0; i < k_columns; ++i) {
      const int c = member() + i * k_team;
      if (c < width) to[c] = accumulate ? to[c] + values[i] : values[i];
    }
  }
};

struct FloatArgs {
  AttentionView view;
  HeadRows<const float> query, key, value, y, dy;
  HeadRows<float> dquery, dkey, dvalue;
  const float* logsumexp;
  float* mean;  // Σ_c dy·y of each query: batch×heads×queries
  bool accumulate;
};

// A block's place: its teams' rows begin at `first`, of one head of one sequence.
struct FloatPlace {
  int batch, head, first, own;  // own: this team's row
  __device__ FloatPlace()
      : batch(static_cast<int>(blockIdx.z)),
        head(static_cast<int>(blockIdx.y)),
        first(static_cast<int>(blockIdx.x) * k_teams),
        own(first + team()) {}
};

__device__ GlobalRows<const float> float_rows(const HeadRows<const float>& all, const AttentionView& view,
                                              const FloatPlace& place, int head, int first, int count) {
  return rows_of(all, view, place.batch, head, first, count, false);
}

__device__ bool sees(const AttentionView& view, int query, int key) {
  return query < view.queries && key >= view.first_key(query) && key < view.end_key(query);
}

// The keys that the queries of a block see, in whole tiles.
struct KeyRange {
  int begin, end;
  __device__ KeyRange(const AttentionView& view, int first_query)
      : begin(view.first_key(first_query) / k_team * k_team),
        end(view.end_key(view.smaller(first_query + k_teams, view.queries) - 1)) {}
};

__global__ void __launch_bounds__(k_team* k_teams)
    float_forward_kernel(FloatArgs args, HeadRows<float> y, float* logsumexp) {
  TPRIMAT_DYNAMIC_SHARED(float, memory);
  const AttentionView& view = args.view;
  const FloatPlace place;
  const FloatRows tile{memory, view.head_dim}, queries{tile.row(k_team), view.head_dim};
  const int kv_head = place.head / view.group();
  queries.load<k_teams>(float_rows(args.query, view, place, place.head, place.first, view.queries));
  TeamRow output;
  output.clear();
  float largest = -__builtin_huge_valf(), sum = 0;
  const KeyRange range(view, place.first);
  for (int key = range.begin; key < range.end; key += k_team) {
    __syncthreads();
    tile.load<k_team>(float_rows(args.key, view, place, kv_head, key, view.keys));
    __syncthreads();
    const float score = sees(view, place.own, key + member())
                            ? dot(queries.row(team()), tile.row(member()), view.head_dim) * view.scale
                            : -__builtin_huge_valf();
    __syncthreads();
    tile.load<k_team>(float_rows(args.value, view, place, kv_head, key, view.keys));
    __syncthreads();
    const float now = greater_or_nan(largest, warp_max<k_team>(score));
    const float taken = now == -__builtin_huge_valf() ? 0.0f : now, p = expf(score - taken);
    const float shrink = expf(largest - taken);
    sum = sum * shrink + warp_sum<k_team>(p);
    largest = now;
    output.multiply(shrink);
    output.add(p, tile);
  }
  if (place.own >= view.queries) return;
  const bool sees_nothing = view.first_key(place.own) >= view.end_key(place.own);
  output.multiply(sees_nothing ? 0.0f : 1.0f / sum);
  output.store(rows_of(y, view, place.batch, place.head, place.own, view.queries, false).data, view.head_dim, false);
  if (member() == 0)
    logsumexp[(static_cast<int64_t>(place.batch) * view.heads + place.head) * view.queries + place.own] =
        largest + logf(sum);
}

__global__ void __launch_bounds__(k_team* k_teams) float_dquery_kernel(FloatArgs args) {
  TPRIMAT_DYNAMIC_SHARED(float, memory);
  const AttentionView& view = args.view;
  const FloatPlace place;
  const int width = view.head_dim, kv_head = place.head / view.group();
  const FloatRows tile{memory, width}, queries{tile.row(k_team), width}, dys{queries.row(k_teams), width};
  queries.load<k_teams>(float_rows(args.query, view, place, place.head, place.first, view.queries));
  dys.load<k_teams>(float_rows(args.dy, view, place, place.head, place.first, view.queries));
  __syncthreads();
  const bool exists = place.own < view.queries;
  const int64_t statistic = (static_cast<int64_t>(place.batch) * view.heads + place.head) * view.queries + place.own;
  const float logsumexp = exists ? args.logsumexp[statistic] : 0.0f;
  float mean = 0;
  if (exists) {
    const float* y = float_rows(args.y, view, place, place.head, place.own, view.queries).data;
    for (int c = member(); c < width; c += k_team) mean += y[c] * dys.row(team())[c];
  }
  mean = warp_sum<k_team>(mean);
  if (exists && member() == 0) args.mean[statistic] = mean;

  TeamRow dquery;
  dquery.clear();
  const KeyRange range(view, place.first);
  for (int key = range.begin; key < range.end; key += k_team) {
    __syncthreads();
    tile.load<k_team>(float_rows(args.value, view, place, kv_head, key, view.keys));
    __syncthreads();
    const float dp = dot(dys.row(team()), tile.row(member()), width);
    __syncthreads();
    tile.load<k_team>(float_rows(args.key, view, place, kv_head, key, view.keys));
    __syncthreads();
    float ds = 0;
    if (sees(view, place.own, key + member()))
      ds = expf(dot(queries.row(team()), tile.row(member()), width) * view.scale - logsumexp) * (dp - mean);
    dquery.add(ds, tile);
  }
  if (!exists) return;
  dquery.multiply(view.scale);
  dquery.store(rows_of(args.dquery, view, place.batch, place.head, place.own, view.queries, false).data, width, false);
}

__global__ void __launch_bounds__(k_team* k_teams) float_dkey_kernel(FloatArgs args) {
  TPRIMAT_DYNAMIC_SHARED(float, memory);
  const AttentionView& view = args.view;
  const FloatPlace place;  // of keys
  const int width = view.head_dim;
  const FloatRows tile{memory, width}, keys{tile.row(k_team), width}, values{keys.row(k_teams), width};
  keys.load<k_teams>(float_rows(args.key, view, place, place.head, place.first, view.keys));
  values.load<k_teams>(float_rows(args.value, view, place, place.head, place.first, view.keys));
  TeamRow dkey, dvalue;
  dkey.clear();
  dvalue.clear();
  const int last = view.smaller(place.first + k_teams, view.keys) - 1;
  const int begin = view.first_query_of(place.first) / k_team * k_team, end = view.end_query_of(last);
  for (int head = place.head * view.group(); head < (place.head + 1) * view.group(); ++head) {
    const int64_t statistics = (static_cast<int64_t>(place.batch) * view.heads + head) * view.queries;
    for (int first = begin; first < end; first += k_team) {
      const int query = first + member();
      const bool seen = place.own < view.keys && sees(view, query, place.own);
      const GlobalRows<const float> dys = float_rows(args.dy, view, place, head, first, view.queries);
      __syncthreads();
      tile.load<k_team>(dys);
      __syncthreads();
      const float dp = dot(values.row(team()), tile.row(member()), width);
      __syncthreads();
      tile.load<k_team>(float_rows(args.query, view, place, head, first, view.queries));
      __syncthreads();
      float p = 0, ds = 0;
      if (seen) {
        p = expf(dot(keys.row(team()), tile.row(member()), width) * view.scale - args.logsumexp[statistics + query]);
        ds = p * (dp - args.mean[statistics + query]);
      }
      dkey.add(ds, tile);
      __syncthreads();
      tile.load<k_team>(dys);
      __syncthreads();
      dvalue.add(p, tile);
    }
  }
  if (place.own >= view.keys) return;
  dkey.multiply(view.scale);
  const auto own = [&](const HeadRows<float>& all) {
    return rows_of(all, view, place.batch, place.head, place.own, view.keys, false).data;
  };
  dkey.store(own(args.dkey), width, args.accumulate);
  dvalue.store(own(args.dvalue), width, args.accumulate);
}

// A team for each of `rows` rows of each head.
KernelLaunch float_launch(const AttentionShape& shape, int64_t rows, int64_t heads, int rows_of_teams) {
  const auto blocks = static_cast<unsigned>((rows + k_teams - 1) / k_teams);
  const auto floats = static_cast<size_t>((k_team + rows_of_teams * k_teams) * (shape.head_dim + 1));
  return {dim3(blocks, static_cast<unsigned>(heads), static_cast<unsigned>(shape.batch)), dim3(k_team * k_teams),
          floats * sizeof(float), context().stream};
}

void float_backward_of_part(const AttentionShape& shape, const AttentionGradient<float>& g) {
  const AttentionInputs<float>& in = g.inputs;
  const FloatArgs args{AttentionView(shape),
                       in.query,
                       in.key,
                       in.value,
                       g.y,
                       g.dy,
                       g.dquery,
                       g.dkey,
                       g.dvalue,
                       g.logsumexp,
                       scratch<float>(shape.batch * shape.heads * shape.queries),
                       g.accumulate};
  if (shape.queries > 0) launch(float_launch(shape, shape.queries, shape.heads, 2), float_dquery_kernel, args);
  if (shape.keys > 0) launch(float_launch(shape, shape.keys, shape.kv_heads, 2), float_dkey_kernel, args);
}

}  // namespace

void float_attention_forward(const AttentionShape& shape, const AttentionInputs<float>& in, const HeadRows<float>& y,
                             float* logsumexp) {
  const FloatArgs args{AttentionView(shape), in.query, in.key, in.value, {}, {}, {}, {}, {}, nullptr, nullptr, false};
  launch(float_launch(shape, shape.queries, shape.heads, 1), float_forward_kernel, args, y, logsumexp);
}

void float_attention_backward(const AttentionShape& shape, const AttentionGradient<float>& gradient) {
  in_parts(shape, gradient, shape.queries, float_backward_of_part);
}

}  // namespace tprimat::engine::gpu
