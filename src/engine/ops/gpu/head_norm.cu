#include <cmath>

#include "ops/gpu/column_sums.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

// `lanes` neighbours of a warp (a power of two) share a head; each holds the same channels of every head it visits.
struct HeadLanes {
  int lanes;

  __device__ int lane() const { return static_cast<int>(threadIdx.x) % lanes; }
  __device__ int team() const { return static_cast<int>(threadIdx.x) / lanes; }
  __device__ int teams() const { return static_cast<int>(blockDim.x) / lanes; }
  __device__ float sum(float value) const {
    for (int mask = lanes / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
    return value;
  }
};

// All lanes of a warp take part in every turn, those of teams without a head too: visit(head, whether there is one).
template <class Visit>
__device__ void visit_heads(const HeadLanes& lanes, int64_t heads, const Visit& visit) {
  for (int64_t first = int64_t{blockIdx.x} * lanes.teams(); first < heads; first += int64_t{gridDim.x} * lanes.teams())
    visit(first + lanes.team(), first + lanes.team() < heads);
}

template <int n, class Visit>
__device__ void visit_channels(const HeadLanes& lanes, int64_t head_dim, const Visit& visit) {
  for (int64_t c = int64_t{lanes.lane()} * n; c < head_dim; c += int64_t{lanes.lanes} * n) visit(c);
}

__device__ inline int64_t head_at(const HeadNormShape& shape, int64_t head, int64_t row_stride) {
  return head / shape.heads * row_stride + head % shape.heads * shape.head_dim;
}

template <class T, int n>
__global__ void __launch_bounds__(k_block)
    normalise_heads(HeadNormShape shape, HeadLanes lanes, const T* x, const T* weight, T* y, float* rstd) {
  visit_heads(lanes, shape.rows * shape.heads, [&](int64_t head, bool exists) {
    const T* const from = x + (exists ? head_at(shape, head, shape.x_row_stride) : 0);
    float squares = 0.0f;
    if (exists)
      visit_channels<n>(lanes, shape.head_dim, [&](int64_t c) {
        const Chunk<T, n> values = read_chunk<n>(from + c);
        TPRIMAT_UNROLL
        for (int j = 0; j < n; ++j) squares += load(values.values[j]) * load(values.values[j]);
      });
    const float mean = lanes.sum(squares) / static_cast<float>(shape.head_dim);
    if (!exists) return;
    const float scale = 1.0f / sqrtf(mean + static_cast<float>(shape.eps));
    T* const to = y + head_at(shape, head, shape.y_row_stride);
    visit_channels<n>(lanes, shape.head_dim, [&](int64_t c) {
      Chunk<T, n> values = read_chunk<n>(from + c);
      const Chunk<T, n> w = read_chunk<n>(weight + c);
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j) values.values[j] = store<T>(load(values.values[j]) * scale * load(w.values[j]));
      write_chunk<n>(to + c, values);
    });
    if (lanes.lane() == 0) rstd[head] = scale;
  });
}

// Leaves this block's part of dweight in row blockIdx.x of `partial`. Shared memory: a row of head_dim sums for each
// team.
template <class T, int n>
__global__ void __launch_bounds__(k_block)
    head_norm_gradient(HeadNormShape shape, HeadLanes lanes, RmsNormGradient<T> g, float* partial) {
  TPRIMAT_DYNAMIC_SHARED(float, sums);
  float* const own = sums + lanes.team() * shape.head_dim;
  visit_channels<n>(lanes, shape.head_dim, [&](int64_t c) { write_chunk<n>(own + c, Chunk<float, n>{}); });
  visit_heads(lanes, shape.rows * shape.heads, [&](int64_t head, bool exists) {
    const int64_t at_x = exists ? head_at(shape, head, shape.x_row_stride) : 0;
    const int64_t at_y = exists ? head_at(shape, head, shape.y_row_stride) : 0;
    float dot = 0.0f;
    if (exists)
      visit_channels<n>(lanes, shape.head_dim, [&](int64_t c) {
        const Chunk<T, n> x = read_chunk<n>(g.x + at_x + c), dy = read_chunk<n>(g.dy + at_y + c);
        const Chunk<T, n> w = read_chunk<n>(g.weight + c);
        TPRIMAT_UNROLL
        for (int j = 0; j < n; ++j) dot += load(dy.values[j]) * load(w.values[j]) * load(x.values[j]);
      });
    dot = lanes.sum(dot);
    if (!exists) return;
    const float rstd = g.rstd[head], pull = rstd * rstd * rstd * dot / static_cast<float>(shape.head_dim);
    visit_channels<n>(lanes, shape.head_dim, [&](int64_t c) {
      const Chunk<T, n> x = read_chunk<n>(g.x + at_x + c), dy = read_chunk<n>(g.dy + at_y + c);
      const Chunk<T, n> w = read_chunk<n>(g.weight + c);
      Chunk<float, n> dweight = read_chunk<n>(own + c);
      Chunk<T, n> dx;
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j) {
        const float grad = load(dy.values[j]) * rstd, input = load(x.values[j]);
        dx.values[j] = store<T>(grad * load(w.values[j]) - input * pull);
        dweight.values[j] += grad * input;
      }
      write_chunk<n>(g.dx + at_x + c, dx);
      write_chunk<n>(own + c, dweight);
    });
  });
  __syncthreads();
  for (int64_t c = threadIdx.x; c < shape.head_dim; c += blockDim.x) {
    float sum = 0.0f;
    for (int team = 0; team < lanes.teams(); ++team) sum += sums[team * shape.head_dim + c];
    partial[blockIdx.x * shape.head_dim + c] = sum;
  }
}

HeadLanes lanes_for(int64_t head_dim, int n) {
  int lanes = 1;
  while (lanes < k_warp && int64_t{lanes} * n < head_dim) lanes *= 2;
  return {lanes};
}

constexpr int64_t k_max_shared_sums = (48 << 10) / sizeof(float);

// As many warps as fit the sums of their teams.
int64_t head_warps(const HeadLanes& lanes, int64_t head_dim) {
  const int64_t sums_of_warp = k_warp / lanes.lanes * head_dim;
  CHECK(sums_of_warp <= k_max_shared_sums);
  return std::min<int64_t>(k_block / k_warp, k_max_shared_sums / sums_of_warp);
}

template <class T>
void head_norm_forward(const HeadNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {
  const int64_t heads = shape.rows * shape.heads;
  if (heads == 0 || shape.head_dim == 0) return;
  const bool packed = fits_packs<T>({x, weight, y}, {shape.head_dim, shape.x_row_stride, shape.y_row_stride});
  with_width<T>(packed, [&](auto width) {
    constexpr int n = decltype(width)::value;
    const HeadLanes lanes = lanes_for(shape.head_dim, n);
    const int64_t blocks = std::min(parts_of(heads, k_block / lanes.lanes), most_blocks());
    launch({dim3(static_cast<unsigned>(blocks)), dim3(k_block), 0, context().stream}, normalise_heads<T, n>, shape,
           lanes, x, weight, y, rstd);
  });
}

template <class T>
void head_norm_backward(const HeadNormShape& shape, const RmsNormGradient<T>& g) {
  const int64_t heads = shape.rows * shape.heads;
  if (heads == 0 || shape.head_dim == 0) return;
  const bool packed =
      fits_packs<T>({g.x, g.weight, g.dy, g.dx}, {shape.head_dim, shape.x_row_stride, shape.y_row_stride});
  with_width<T>(packed, [&](auto width) {
    constexpr int n = decltype(width)::value;
    const HeadLanes lanes = lanes_for(shape.head_dim, n);
    const int64_t threads = head_warps(lanes, shape.head_dim) * k_warp, teams = threads / lanes.lanes;
    const int64_t wanted = std::min(parts_of(heads, teams), 8 * int64_t{context().multiprocessors});
    const int64_t blocks = parts_in_scratch(wanted, shape.head_dim);
    float* partial = scratch<float>(blocks * shape.head_dim);
    launch({dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
            static_cast<size_t>(teams * shape.head_dim) * sizeof(float), context().stream},
           head_norm_gradient<T, n>, shape, lanes, g, partial);
    add_partial_sums(blocks, shape.head_dim, partial, shape.head_dim, g.dweight);
  });
}

}  // namespace

void set_ops(OpsByFormat<HeadNormOps>& ops) {
  ops.set_fast([]<class T>(HeadNormOps<T>& fast) { fast = {head_norm_forward<T>, head_norm_backward<T>}; });
}

}  // namespace tprimat::engine::gpu
