#include "ops/gpu/column_sums.h"

#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {
namespace {

// One column for each thread of a row of threads; the rows of threads share the parts out.
__global__ void __launch_bounds__(1024)
    add_parts(int64_t parts, int64_t cols, const float* partial, int64_t stride, float* totals) {
  __shared__ float shared[32][k_sum_lanes];
  const int64_t c = int64_t{blockIdx.x} * k_sum_lanes + threadIdx.x;
  float sum = 0.0f;
  if (c < cols)
    for (int64_t p = threadIdx.y; p < parts; p += blockDim.y) sum += partial[p * stride + c];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= cols) return;
  for (unsigned y = 1; y < blockDim.y; ++y) sum += shared[y][threadIdx.x];
  totals[c] += sum;
}

template <class T, int n>
struct ColumnsOf {
  const T* x;
  int64_t cols;
  __device__ Chunk<float, n> operator()(int64_t r, int64_t c) const {
    const Chunk<T, n> chunk = read_chunk<n>(x + r * cols + c);
    Chunk<float, n> terms;
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) terms.values[j] = load(chunk.values[j]);
    return terms;
  }
};

}  // namespace

void add_partial_sums(int64_t parts, int64_t cols, const float* partial, int64_t stride, float* totals) {
  const unsigned high = parts >= 64 ? 32 : 4;
  launch({dim3(static_cast<unsigned>(parts_of(cols, k_sum_lanes))), dim3(k_sum_lanes, high), 0, context().stream},
         add_parts, parts, cols, partial, stride, totals);
}

template <class T>
void add_column_sums(int64_t rows, int64_t cols, const T* x, float* sums) {
  with_width<T>(fits_packs<T>({x}, {cols}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    add_sums_of_rows<n>(rows, cols, ColumnsOf<T, n>{x, cols}, sums);
  });
}

template void add_column_sums(int64_t, int64_t, const float*, float*);
template void add_column_sums(int64_t, int64_t, const bf16*, float*);
template void add_column_sums(int64_t, int64_t, const f16*, float*);

}  // namespace tprimat::engine::gpu
