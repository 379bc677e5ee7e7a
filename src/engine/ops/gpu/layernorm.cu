#include <cmath>

#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/rows.h"

namespace tprimat::engine::gpu {
namespace {

template <class T, int n>
__device__ float sum_of(const Chunk<T, n>& chunk) {
  float sum = 0.0f;
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) sum += load(chunk.values[j]);
  return sum;
}
template <class T, int n>
__device__ float squares_around(float mean, const Chunk<T, n>& chunk) {
  float sum = 0.0f;
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) sum += (load(chunk.values[j]) - mean) * (load(chunk.values[j]) - mean);
  return sum;
}

template <class T, int n, bool adds>
__global__ void __launch_bounds__(k_max_row_threads)
    layernorm_rows(LayerNormShape shape, ResidualSum<T> in, LayerNormWeights<T> weights, LayerNormOutput<T> out) {
  const T* const normalised = adds ? in.sum : in.a;
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    const int64_t at = row * shape.cols;
    Chunk<T, n> x[k_held / n];
    float sum = 0.0f, squares = 0.0f;
    visit_held<n, k_held>(shape.cols, [&](int k, int64_t c) {
      x[k] = take_chunk<adds, n>(in, at + c);
      sum += sum_of(x[k]);
    });
    visit_beyond<n, k_held>(shape.cols, [&](int64_t c) { sum += sum_of(take_chunk<adds, n>(in, at + c)); });
    const float mean = block_sum(sum) / static_cast<float>(shape.cols);
    visit_held<n, k_held>(shape.cols, [&](int k, int64_t) { squares += squares_around(mean, x[k]); });
    visit_beyond<n, k_held>(shape.cols,
                            [&](int64_t c) { squares += squares_around(mean, read_chunk<n>(normalised + at + c)); });
    const float variance = block_sum(squares) / static_cast<float>(shape.cols);
    const float rstd = 1.0f / sqrtf(variance + static_cast<float>(shape.eps));
    const auto put = [&](int64_t c, const Chunk<T, n>& from) {
      const Chunk<T, n> w = read_chunk<n>(weights.weight + c), bias = read_chunk<n>(weights.bias + c);
      Chunk<T, n> to;
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j)
        to.values[j] = store<T>((load(from.values[j]) - mean) * rstd * load(w.values[j]) + load(bias.values[j]));
      write_chunk<n>(out.y + at + c, to);
    };
    visit_held<n, k_held>(shape.cols, [&](int k, int64_t c) { put(c, x[k]); });
    visit_beyond<n, k_held>(shape.cols, [&](int64_t c) { put(c, read_chunk<n>(normalised + at + c)); });
    if (threadIdx.x == 0) {
      out.mean[row] = mean;
      out.rstd[row] = rstd;
    }
  }
}

// A row on its way back, with n = (x − mean)·rstd and g = dy·weight.
struct LayerNormRow {
  float mean, rstd;
  float pushes = 0.0f, pulls = 0.0f;  // first Σ g and Σ g·n, then their means

  template <class T, int n>
  __device__ void take(const Chunk<T, n>& x, const Chunk<T, n>& dy, const Chunk<T, n>& weight) {
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) {
      const float push = load(dy.values[j]) * load(weight.values[j]);
      pushes += push;
      pulls += push * ((load(x.values[j]) - mean) * rstd);
    }
  }
  // dx += rstd·(g − mean g − n·mean(g·n));   dweight += dy·n;   dbias += dy
  template <class T, int n>
  __device__ void apply(const Chunk<T, n>& x, const Chunk<T, n>& dy, const Chunk<T, n>& weight, T* dx,
                        Chunk<float, n>& dweight, Chunk<float, n>& dbias) const {
    Chunk<T, n> sum = read_chunk<n>(dx);
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) {
      const float grad = load(dy.values[j]), normal = (load(x.values[j]) - mean) * rstd;
      sum.values[j] = store<T>(load(sum.values[j]) + rstd * (grad * load(weight.values[j]) - pushes - normal * pulls));
      dweight.values[j] += grad * normal;
      dbias.values[j] += grad;
    }
    write_chunk<n>(dx, sum);
  }
};

// Leaves this block's parts of dweight and dbias in row blockIdx.x of `partial`.
template <class T, int n, int held>
__global__ void __launch_bounds__(k_max_summing_threads)
    layernorm_gradient_rows(LayerNormShape shape, LayerNormGradient<T> g, float* partial) {
  float* const own = partial + int64_t{blockIdx.x} * 2 * shape.cols;
  float* const own_bias = own + shape.cols;
  Chunk<float, n> dweight[held / n] = {}, dbias[held / n] = {};
  visit_beyond<n, held>(shape.cols, [&](int64_t c) {
    write_chunk<n>(own + c, Chunk<float, n>{});
    write_chunk<n>(own_bias + c, Chunk<float, n>{});
  });
  for (int64_t r = blockIdx.x; r < shape.rows; r += gridDim.x) {
    const int64_t at = r * shape.cols;
    LayerNormRow row{g.mean[r], g.rstd[r]};
    Chunk<T, n> x[held / n], dy[held / n];
    visit_held<n, held>(shape.cols, [&](int k, int64_t c) {
      x[k] = read_chunk<n>(g.x + at + c);
      dy[k] = read_chunk<n>(g.dy + at + c);
      row.take(x[k], dy[k], read_chunk<n>(g.weight + c));
    });
    visit_beyond<n, held>(shape.cols, [&](int64_t c) {
      row.take(read_chunk<n>(g.x + at + c), read_chunk<n>(g.dy + at + c), read_chunk<n>(g.weight + c));
    });
    row.pushes = block_sum(row.pushes) / static_cast<float>(shape.cols);
    row.pulls = block_sum(row.pulls) / static_cast<float>(shape.cols);
    visit_held<n, held>(shape.cols, [&](int k, int64_t c) {
      row.apply(x[k], dy[k], read_chunk<n>(g.weight + c), g.dx + at + c, dweight[k], dbias[k]);
    });
    visit_beyond<n, held>(shape.cols, [&](int64_t c) {
      Chunk<float, n> sums = read_chunk<n>(own + c), bias_sums = read_chunk<n>(own_bias + c);
      row.apply(read_chunk<n>(g.x + at + c), read_chunk<n>(g.dy + at + c), read_chunk<n>(g.weight + c), g.dx + at + c,
                sums, bias_sums);
      write_chunk<n>(own + c, sums);
      write_chunk<n>(own_bias + c, bias_sums);
    });
  }
  visit_held<n, held>(shape.cols, [&](int k, int64_t c) {
    write_chunk<n>(own + c, dweight[k]);
    write_chunk<n>(own_bias + c, dbias[k]);
  });
}

template <class T, int n, int held>
void start_layernorm_gradient(const LayerNormShape& shape, const LayerNormGradient<T>& g) {
  const KernelLaunch how = summing_row_launch(shape.rows, shape.cols, held, 2 * shape.cols);
  float* partial = scratch<float>(how.grid.x * 2 * shape.cols);
  launch(how, layernorm_gradient_rows<T, n, held>, shape, g, partial);
  add_partial_sums(how.grid.x, shape.cols, partial, 2 * shape.cols, g.dweight);
  add_partial_sums(how.grid.x, shape.cols, partial + shape.cols, 2 * shape.cols, g.dbias);
}

template <class T, bool adds>
void start_layernorm(const LayerNormShape& shape, const ResidualSum<T>& in, const LayerNormWeights<T>& weights,
                     const LayerNormOutput<T>& out) {
  if (shape.rows == 0) return;
  with_width<T>(fits_packs<T>({in.a, in.b, in.sum, weights.weight, weights.bias, out.y}, {shape.cols}),
                [&](auto width) {
                  launch(row_launch(shape.rows, shape.cols), layernorm_rows<T, decltype(width)::value, adds>, shape, in,
                         weights, out);
                });
}

template <class T>
void layernorm_forward(const LayerNormShape& shape, const T* x, const LayerNormWeights<T>& weights,
                       const LayerNormOutput<T>& output) {
  start_layernorm<T, false>(shape, {x, nullptr, nullptr}, weights, output);
}
template <class T>
void add_layernorm_forward(const LayerNormShape& shape, const ResidualSum<T>& residual,
                           const LayerNormWeights<T>& weights, const LayerNormOutput<T>& output) {
  start_layernorm<T, true>(shape, residual, weights, output);
}

template <class T>
void layernorm_backward(const LayerNormShape& shape, const LayerNormGradient<T>& g) {
  if (shape.rows == 0) return;
  with_width<T>(fits_packs<T>({g.x, g.weight, g.dy, g.dx}, {shape.cols}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    if (shape.cols > int64_t{k_held} * k_max_summing_threads)
      start_layernorm_gradient<T, n, k_max_held<T, n>>(shape, g);
    else
      start_layernorm_gradient<T, n, k_held>(shape, g);
  });
}

}  // namespace

void set_ops(OpsByFormat<LayerNormOps>& ops) {
  ops.set_fast([]<class T>(LayerNormOps<T>& fast) {
    fast = {layernorm_forward<T>, add_layernorm_forward<T>, layernorm_backward<T>};
  });
}

}  // namespace tprimat::engine::gpu
