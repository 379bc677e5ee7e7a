#include <cmath>

#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/rows.h"

namespace tprimat::engine::gpu {
namespace {

template <class T, int n>
__device__ float squares_of(const Chunk<T, n>& chunk) {
  float sum = 0.0f;
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) sum += load(chunk.values[j]) * load(chunk.values[j]);
  return sum;
}

template <class T, int n, bool adds>
__global__ void __launch_bounds__(k_max_row_threads)
    rmsnorm_rows(RmsNormShape shape, ResidualSum<T> in, const T* weight, T* y, float* rstd) {
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t at = row * shape.cols;
    Chunk<T, n> x[k_held / n];
    float squares = 0.0f;
    visit_held<n, k_held>(shape.cols, [&](int k, int64_t c) {
      x[k] = take_chunk<adds, n>(in, at + c);
      squares += squares_of(x[k]);
    });
    visit_beyond<n, k_held>(shape.cols, [&](int64_t c) { squares += squares_of(take_chunk<adds, n>(in, at + c)); });
    const float mean = block_sum(squares) / static_cast<float>(shape.cols);
    const float scale = 1.0f / sqrtf(mean + static_cast<float>(shape.eps));
    const auto put = [&](int64_t c, const Chunk<T, n>& from) {
      const Chunk<T, n> w = read_chunk<n>(weight + c);
      Chunk<T, n> to;
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j) to.values[j] = store<T>(load(from.values[j]) * scale * load(w.values[j]));
      write_chunk<n>(y + at + c, to);
    };
    visit_held<n, k_held>(shape.cols, [&](int k, int64_t c) { put(c, x[k]); });
    visit_beyond<n, k_held>(shape.cols, [&](int64_t c) { put(c, read_chunk<n>((adds ? in.sum : in.a) + at + c)); });
    if (threadIdx.x == 0) rstd[row] = scale;
  }
}

// One chunk of a row on its way back.
template <class T, int n>
struct RmsNormPull {
  float rstd, pull;  // pull = rstd³/cols · Σ dy·w·x

  // dx += dy·w·rstd − x·pull;   dweight += dy·x·rstd
  __device__ void apply(const Chunk<T, n>& x, const Chunk<T, n>& dy, const Chunk<T, n>& weight, Chunk<T, n>& dx,
                        Chunk<float, n>& dweight) const {
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) {
      const float grad = load(dy.values[j]) * rstd, input = load(x.values[j]);
      dx.values[j] = store<T>(load(dx.values[j]) + (grad * load(weight.values[j]) - input * pull));
      dweight.values[j] += grad * input;
    }
  }
};

template <class T, int n>
__device__ float rmsnorm_dot(const Chunk<T, n>& x, const Chunk<T, n>& dy, const Chunk<T, n>& weight) {
  float dot = 0.0f;
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) dot += load(dy.values[j]) * load(weight.values[j]) * load(x.values[j]);
  return dot;
}

// Leaves this block's part of dweight in row blockIdx.x of `partial`.
template <class T, int n, int held>
__global__ void __launch_bounds__(k_max_summing_threads)
    rmsnorm_gradient_rows(RmsNormShape shape, RmsNormGradient<T> g, float* partial) {
  float* own = partial + int64_t{blockIdx.x} * shape.cols;
  Chunk<float, n> dweight[held / n] = {};
  visit_beyond<n, held>(shape.cols, [&](int64_t c) { write_chunk<n>(own + c, Chunk<float, n>{}); });
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t at = row * shape.cols;
    Chunk<T, n> x[held / n], dy[held / n];
    float dot = 0.0f;
    visit_held<n, held>(shape.cols, [&](int k, int64_t c) {
      x[k] = read_chunk<n>(g.x + at + c);
      dy[k] = read_chunk<n>(g.dy + at + c);
      dot += rmsnorm_dot(x[k], dy[k], read_chunk<n>(g.weight + c));
    });
    visit_beyond<n, held>(shape.cols, [&](int64_t c) {
      dot += rmsnorm_dot(read_chunk<n>(g.x + at + c), read_chunk<n>(g.dy + at + c), read_chunk<n>(g.weight + c));
    });
    const float rstd = g.rstd[row];
    const RmsNormPull<T, n> back{rstd, block_sum(dot) * rstd * rstd * rstd / static_cast<float>(shape.cols)};
    visit_held<n, held>(shape.cols, [&](int k, int64_t c) {
      Chunk<T, n> dx = read_chunk<n>(g.dx + at + c);
      back.apply(x[k], dy[k], read_chunk<n>(g.weight + c), dx, dweight[k]);
      write_chunk<n>(g.dx + at + c, dx);
    });
    visit_beyond<n, held>(shape.cols, [&](int64_t c) {
      Chunk<T, n> dx = read_chunk<n>(g.dx + at + c);
      Chunk<float, n> sums = read_chunk<n>(own + c);
      back.apply(read_chunk<n>(g.x + at + c), read_chunk<n>(g.dy + at + c), read_chunk<n>(g.weight + c), dx, sums);
      write_chunk<n>(g.dx + at + c, dx);
      write_chunk<n>(own + c, sums);
    });
  }
  visit_held<n, held>(shape.cols, [&](int k, int64_t c) { write_chunk<n>(own + c, dweight[k]); });
}

template <class T, int n, int held>
void start_rmsnorm_gradient(const RmsNormShape& shape, const RmsNormGradient<T>& g) {
  const KernelLaunch how = summing_row_launch(shape.rows, shape.cols, held, shape.cols);
  float* partial = scratch<float>(how.grid.x * shape.cols);
  launch(how, rmsnorm_gradient_rows<T, n, held>, shape, g, partial);
  add_partial_sums(how.grid.x, shape.cols, partial, shape.cols, g.dweight);
}

template <class T, bool adds>
void start_rmsnorm(const RmsNormShape& shape, const ResidualSum<T>& in, const T* weight, T* y, float* rstd) {
  if (shape.rows == 0) return;
  with_width<T>(fits_packs<T>({in.a, in.b, in.sum, weight, y}, {shape.cols}), [&](auto width) {
    launch(row_launch(shape.rows, shape.cols), rmsnorm_rows<T, decltype(width)::value, adds>, shape, in, weight, y,
           rstd);
  });
}

template <class T>
void rmsnorm_forward(const RmsNormShape& shape, const T* x, const T* weight, T* y, float* rstd) {
  start_rmsnorm<T, false>(shape, {x, nullptr, nullptr}, weight, y, rstd);
}
template <class T>
void add_rmsnorm_forward(const RmsNormShape& shape, const ResidualSum<T>& residual, const T* weight, T* y,
                         float* rstd) {
  start_rmsnorm<T, true>(shape, residual, weight, y, rstd);
}

template <class T>
void rmsnorm_backward(const RmsNormShape& shape, const RmsNormGradient<T>& g) {
  if (shape.rows == 0) return;
  with_width<T>(fits_packs<T>({g.x, g.weight, g.dy, g.dx}, {shape.cols}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    if (shape.cols > int64_t{k_held} * k_max_summing_threads)
      start_rmsnorm_gradient<T, n, k_max_held<T, n>>(shape, g);
    else
      start_rmsnorm_gradient<T, n, k_held>(shape, g);
  });
}

}  // namespace

void set_ops(OpsByFormat<RmsNormOps>& ops) {
  ops.set_fast([]<class T>(RmsNormOps<T>& fast) {
    fast = {rmsnorm_forward<T>, add_rmsnorm_forward<T>, rmsnorm_backward<T>};
  });
}

}  // namespace tprimat::engine::gpu
