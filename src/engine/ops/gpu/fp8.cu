#include <cmath>

#include "ops/gpu/chunk.h"
#include "ops/gpu/fp8_bits.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

__device__ inline float greater_but_no_nan(float a, float b) { return a > b ? a : b; }

// The greatest magnitude that each block saw.
template <class T, int n>
__global__ void __launch_bounds__(k_block) find_largest(int64_t count, const T* x, float* largest) {
  float own = 0.0f;
  visit_array<n>(count, [&](auto width, int64_t i) {
    constexpr int size = decltype(width)::value;
    const Chunk<T, size> values = read_chunk<size>(x + i);
    TPRIMAT_UNROLL
    for (int j = 0; j < size; ++j) own = greater_but_no_nan(fabsf(load(values.values[j])), own);
  });
  own = block_max(own);
  if (threadIdx.x == 0) largest[blockIdx.x] = own;
}

template <class T, int n, Fp8Format format>
__global__ void __launch_bounds__(k_block)
    round_array_to_fp8(int64_t count, const T* x, const float* largest, int blocks, T* y) {
  float own = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += k_block) own = greater_but_no_nan(largest[i], own);
  const float amax = block_max(own);
  const float scale = fp8_scale_of(amax, format);
  const float back = 1.0f / scale;
  visit_array<n>(count, [&](auto width, int64_t i) {
    constexpr int size = decltype(width)::value;
    Chunk<T, size> values = read_chunk<size>(x + i);
    TPRIMAT_UNROLL
    for (int j = 0; j < size; ++j)
      values.values[j] = store<T>(fp8_nearest<format>(load(values.values[j]) * scale) * back);
    write_chunk<size>(y + i, values);
  });
}

template <class T>
void fp8_round(int64_t count, const T* x, Fp8Format format, T* y) {
  if (count == 0) return;
  with_width<T>(fits_packs<T>({x, y}, {}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    KernelLaunch how = array_launch(count, n);
    how.grid.x = std::min(how.grid.x, static_cast<unsigned>(8 * context().multiprocessors));
    float* largest = scratch<float>(how.grid.x);
    launch(how, find_largest<T, n>, count, x, largest);
    launch(how,
           format == Fp8Format::e4m3 ? round_array_to_fp8<T, n, Fp8Format::e4m3>
                                     : round_array_to_fp8<T, n, Fp8Format::e5m2>,
           count, x, largest, static_cast<int>(how.grid.x), y);
  });
}

}  // namespace

void set_ops(OpsByFormat<Fp8Ops>& ops) {
  ops.set_fast([]<class T>(Fp8Ops<T>& fast) { fast = {fp8_round<T>}; });
}

}  // namespace tprimat::engine::gpu
