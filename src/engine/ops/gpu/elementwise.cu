#include "ops/elementwise.h"

#include "ops/gpu/chunk.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {
namespace {

template <class T, int n>
__global__ void __launch_bounds__(k_block) add_arrays(int64_t count, const T* a, const T* b, T* y) {
  visit_array<n>(count, [&](auto width, int64_t i) {
    constexpr int size = decltype(width)::value;
    Chunk<T, size> sum = read_chunk<size>(a + i);
    const Chunk<T, size> other = read_chunk<size>(b + i);
    TPRIMAT_UNROLL
    for (int j = 0; j < size; ++j) sum.values[j] = store<T>(load(sum.values[j]) + load(other.values[j]));
    write_chunk<size>(y + i, sum);
  });
}

template <class T, int n>
__global__ void __launch_bounds__(k_block) convert_array(int64_t count, const float* from, T* to) {
  visit_array<n>(count, [&](auto width, int64_t i) {
    constexpr int size = decltype(width)::value;
    const Chunk<float, size> values = read_chunk<size>(from + i);
    Chunk<T, size> converted;
    TPRIMAT_UNROLL
    for (int j = 0; j < size; ++j) converted.values[j] = store<T>(values.values[j]);
    write_chunk<size>(to + i, converted);
  });
}

template <class T, int n>
__global__ void __launch_bounds__(k_block) add_bias_to_rows(int64_t rows, int64_t cols, const T* bias, T* x) {
  visit_matrix(rows, cols / n, [&](int64_t row, int64_t chunk) {
    const Chunk<T, n> added = read_chunk<n>(bias + chunk * n);
    T* at = x + row * cols + chunk * n;
    Chunk<T, n> sum = read_chunk<n>(at);
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) sum.values[j] = store<T>(load(sum.values[j]) + load(added.values[j]));
    write_chunk<n>(at, sum);
  });
}

}  // namespace

template <class T>
void add(int64_t count, const T* a, const T* b, T* y) {
  if (count == 0) return;
  with_width<T>(fits_packs<T>({a, b, y}, {}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(array_launch(count, n), add_arrays<T, n>, count, a, b, y);
  });
}

template <class T>
void add_bias(int64_t rows, int64_t cols, const T* bias, T* x) {
  if (rows == 0 || cols == 0) return;
  with_width<T>(fits_packs<T>({bias, x}, {cols}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(matrix_launch(rows, cols / n), add_bias_to_rows<T, n>, rows, cols, bias, x);
  });
}

template <class T>
void convert(int64_t count, const float* from, T* to) {
  if (count == 0) return;
  with_width<T>(fits_packs<T>({from, to}, {}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    launch(array_launch(count, n), convert_array<T, n>, count, from, to);
  });
}

#define TPRIMAT_GPU_ELEMENTWISE(T)                        \
  template void add(int64_t, const T*, const T*, T*);     \
  template void add_bias(int64_t, int64_t, const T*, T*); \
  template void convert(int64_t, const float*, T*);
TPRIMAT_GPU_ELEMENTWISE(float)
TPRIMAT_GPU_ELEMENTWISE(bf16)
TPRIMAT_GPU_ELEMENTWISE(f16)
#undef TPRIMAT_GPU_ELEMENTWISE

}  // namespace tprimat::engine::gpu
