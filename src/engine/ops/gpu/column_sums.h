#pragma once

// Sums over the rows of a matrix, added up in two stages in an order that only the shape and the device decide: blocks
// leave sums of their rows in scratch memory, a second kernel adds them up.
#include "ops/gpu/chunk.h"

namespace tprimat::engine::gpu {

// totals[c] += Σ_p partial[p·stride + c]
void add_partial_sums(int64_t parts, int64_t cols, const float* partial, int64_t stride, float* totals);

// As many parts of the work as are wanted and as scratch memory holds, each leaving `cols` sums.
inline int64_t parts_in_scratch(int64_t wanted, int64_t cols) {
  const auto limit = static_cast<int64_t>(context().scratch_bytes / sizeof(float)) / std::max<int64_t>(cols, 1);
  CHECK(limit > 0);
  return std::clamp<int64_t>(wanted, 1, limit);
}

inline constexpr int k_sum_lanes = 32;  // neighbouring threads along a row; k_block / k_sum_lanes rows at a time

// visit(r, c): n terms of the columns c … c+n−1, as Chunk<float, n>. Each block takes its part of the rows.
template <int n, class Visit>
__global__ void __launch_bounds__(k_block) sum_rows(int64_t rows, int64_t cols, Visit visit, float* partial) {
  constexpr int k_high = k_block / k_sum_lanes;
  __shared__ float shared[k_high][n * k_sum_lanes];
  const int64_t part = parts_of(rows, gridDim.y), begin = blockIdx.y * part;
  const int64_t end = begin + part < rows ? begin + part : rows;
  const int64_t first = int64_t{blockIdx.x} * k_sum_lanes * n, c = first + int64_t{threadIdx.x} * n;
  Chunk<float, n> sums{};
  if (c < cols) {
    for (int64_t r = begin + threadIdx.y; r < end; r += k_high) {
      const Chunk<float, n> terms = visit(r, c);
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j) sums.values[j] += terms.values[j];
    }
  }
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) shared[threadIdx.y][j * k_sum_lanes + threadIdx.x] = sums.values[j];
  __syncthreads();
  for (int k = static_cast<int>(threadIdx.y * k_sum_lanes + threadIdx.x); k < n * k_sum_lanes; k += k_block) {
    const int64_t column = first + k % k_sum_lanes * n + k / k_sum_lanes;
    if (column >= cols) continue;
    float sum = 0.0f;
    TPRIMAT_UNROLL
    for (int y = 0; y < k_high; ++y) sum += shared[y][k];
    partial[blockIdx.y * cols + column] = sum;
  }
}

// totals[c] += Σ_r visit(r, c). `cols` is a multiple of n.
template <int n, class Visit>
void add_sums_of_rows(int64_t rows, int64_t cols, const Visit& visit, float* totals) {
  if (rows == 0 || cols == 0) return;
  constexpr int k_high = k_block / k_sum_lanes;
  const int64_t across = parts_of(cols, k_sum_lanes * n);
  const int64_t wanted = std::min(parts_of(rows, 4 * k_high), parts_of(8 * int64_t{context().multiprocessors}, across));
  const int64_t parts = parts_in_scratch(std::min<int64_t>(wanted, 65535), cols);
  float* partial = scratch<float>(parts * cols);
  launch({dim3(static_cast<unsigned>(across), static_cast<unsigned>(parts)), dim3(k_sum_lanes, k_high), 0,
          context().stream},
         sum_rows<n, Visit>, rows, cols, visit, partial);
  add_partial_sums(parts, cols, partial, cols, totals);
}

}  // namespace tprimat::engine::gpu
