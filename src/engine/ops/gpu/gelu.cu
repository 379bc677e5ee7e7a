#include "ops/gpu/column_sums.h"
#include "ops/gpu/fast_math.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {
namespace {

constexpr float k_twice_root_two_over_pi = 1.5957691216057308f;  // 2·√(2/π)
constexpr float k_cubic = 0.044715f;

// (1 + tanh u)/2 is the sigmoid of 2u.
__device__ inline float gelu_share(float z) { return sigmoid(k_twice_root_two_over_pi * z * (1.0f + k_cubic * z * z)); }

// d/dz of z·s(z), s' = s·(1 − s)·(2u)'
__device__ inline float gelu_slope_of(float z) {
  const float share = gelu_share(z), rise = k_twice_root_two_over_pi * (1.0f + 3.0f * k_cubic * z * z);
  const float change = share * (1.0f - share);
  return share + (change == 0.0f ? 0.0f : z * change * rise);  // rise may be infinite where nothing changes any more
}

template <class T, int n>
__device__ Chunk<float, n> add_bias_chunk(const T* x, const T* bias, int64_t c) {
  Chunk<float, n> z = read_floats<n>(x);
  if (bias == nullptr) return z;
  const Chunk<float, n> added = read_floats<n>(bias + c);
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) z.values[j] += added.values[j];
  return z;
}

template <class T, int n>
__global__ void __launch_bounds__(k_block) bias_gelu_rows(GeluShape shape, const T* x, const T* bias, T* y) {
  visit_matrix(shape.rows, shape.width / n, [&](int64_t row, int64_t chunk) {
    const int64_t at = row * shape.width + chunk * n;
    const Chunk<float, n> z = add_bias_chunk<T, n>(x + at, bias, chunk * n);
    Chunk<T, n> to;
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) to.values[j] = store<T>(z.values[j] * gelu_share(z.values[j]));
    write_chunk<n>(y + at, to);
  });
}

// Writes dx and returns it before its rounding, for dbias.
template <class T, int n>
struct BiasGeluPull {
  BiasGeluGradient<T> g;
  int64_t width;
  __device__ Chunk<float, n> operator()(int64_t r, int64_t c) const {
    const int64_t at = r * width + c;
    const Chunk<float, n> z = add_bias_chunk<T, n>(g.x + at, g.bias, c);
    const Chunk<T, n> dy = read_chunk<n>(g.dy + at);
    Chunk<float, n> gradient;
    Chunk<T, n> dx;
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) {
      gradient.values[j] = load(dy.values[j]) * gelu_slope_of(z.values[j]);
      dx.values[j] = store<T>(gradient.values[j]);
    }
    write_chunk<n>(g.dx + at, dx);
    return gradient;
  }
};

template <class T, int n>
__global__ void __launch_bounds__(k_block) gelu_gradient_rows(int64_t rows, BiasGeluPull<T, n> pull) {
  visit_matrix(rows, pull.width / n, [&](int64_t row, int64_t chunk) { pull(row, chunk * n); });
}

template <class T>
void bias_gelu_forward(const GeluShape& shape, const T* x, const T* bias, T* y) {
  if (shape.rows == 0 || shape.width == 0) return;
  with_width<T>(fits_packs<T>({x, bias, y}, {shape.width}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(matrix_launch(shape.rows, shape.width / n), bias_gelu_rows<T, n>, shape, x, bias, y);
  });
}

template <class T>
void bias_gelu_backward(const GeluShape& shape, const BiasGeluGradient<T>& g) {
  if (shape.rows == 0 || shape.width == 0) return;
  with_width<T>(fits_packs<T>({g.x, g.bias, g.dy, g.dx}, {shape.width}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    const BiasGeluPull<T, n> pull{g, shape.width};
    if (g.dbias != nullptr)
      add_sums_of_rows<n>(shape.rows, shape.width, pull, g.dbias);
    else
      launch(matrix_launch(shape.rows, shape.width / n), gelu_gradient_rows<T, n>, shape.rows, pull);
  });
}

}  // namespace

void set_ops(OpsByFormat<GeluOps>& ops) {
  ops.set_fast([]<class T>(GeluOps<T>& fast) { fast = {bias_gelu_forward<T>, bias_gelu_backward<T>}; });
}

}  // namespace tprimat::engine::gpu
