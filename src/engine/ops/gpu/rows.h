#pragma once

// One block for each row of a matrix: its threads hold the row in registers between two visits of it, what is beyond
// these is read again.
#include "ops/gpu/column_sums.h"
#include "ops/gpu/warp.h"
#include "ops/residual.h"

namespace tprimat::engine::gpu {

inline constexpr int k_held = 16;  // values of a row by each thread
inline constexpr int k_max_row_threads = 1024;
inline constexpr int k_max_summing_threads = 512;  // which need more registers
// Of a wide row whose sums are held too: as many as fit in registers.
template <class T, int n>
inline constexpr int k_max_held = sizeof(T) == 2 && n > 1 ? 2 * k_held : k_held;

inline unsigned row_threads(int64_t cols, int held, int most) {
  return static_cast<unsigned>(std::clamp<int64_t>(parts_of(cols, int64_t{held} * k_warp), 1, most / k_warp) * k_warp);
}
// Each block visits every gridDim.x-th row.
inline KernelLaunch row_launch(int64_t rows, int64_t cols) {
  const int64_t blocks = std::min(rows, most_blocks());
  return {dim3(static_cast<unsigned>(blocks)), dim3(row_threads(cols, k_held, k_max_row_threads)), 0, context().stream};
}
// About as many blocks as the device runs at once, each of which leaves `sums` sums of its rows in scratch memory.
inline KernelLaunch summing_row_launch(int64_t rows, int64_t cols, int held, int64_t sums) {
  const unsigned threads = row_threads(cols, held, k_max_summing_threads);
  const int64_t at_once = context().multiprocessors * std::clamp<int64_t>(1024 / threads, 1, 16);
  return {dim3(static_cast<unsigned>(parts_in_scratch(std::min(rows, at_once), sums))), dim3(threads), 0,
          context().stream};
}

// visit(k, c) for the chunks of a row that a thread holds: number k, known to the compiler, begins at column c.
template <int n, int held, class Visit>
__device__ inline void visit_held(int64_t cols, const Visit& visit) {
  TPRIMAT_UNROLL
  for (int k = 0; k < held / n; ++k) {
    const int64_t c = (int64_t{k} * blockDim.x + threadIdx.x) * n;
    if (c < cols) visit(k, c);
  }
}
// visit(c) for its chunks beyond those.
template <int n, int held, class Visit>
__device__ inline void visit_beyond(int64_t cols, const Visit& visit) {
  const int64_t step = int64_t{blockDim.x} * n;
  for (int64_t c = (int64_t{held / n} * blockDim.x + threadIdx.x) * n; c < cols; c += step) visit(c);
}

// What is normalised: a, or the residual stream a + b, which is written to `sum`.
template <bool adds, int n, class T>
__device__ inline Chunk<T, n> take_chunk(const ResidualSum<T>& residual, int64_t at) {
  Chunk<T, n> chunk = read_chunk<n>(residual.a + at);
  if constexpr (adds) {
    const Chunk<T, n> other = read_chunk<n>(residual.b + at);
    TPRIMAT_UNROLL
    for (int j = 0; j < n; ++j) chunk.values[j] = store<T>(load(chunk.values[j]) + load(other.values[j]));
    write_chunk<n>(residual.sum + at, chunk);
  }
  return chunk;
}

}  // namespace tprimat::engine::gpu
