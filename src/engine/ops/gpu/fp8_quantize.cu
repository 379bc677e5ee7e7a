#include <algorithm>

#include "base/check.h"
#include "ops/gpu/chunk.h"
#include "ops/gpu/fp8_bits.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {
namespace {

constexpr int k_tile = 64;         // rows and columns that a block quantises and turns around
constexpr int k_chunk = 8;         // values of one thread, neighbours in a row
constexpr int k_threads = 256;     // a block's; each has two chunks of the tile
constexpr int k_tile_stride = 68;  // bytes from one row of the tile to the next: neighbours in a column lie in
                                   // different banks of shared memory

using Floats = Chunk<float, k_chunk>;

// NaN is greater than nothing.
__device__ float greatest_magnitude(const Floats& chunk) {
  float greatest = 0;
  TPRIMAT_UNROLL
  for (int i = 0; i < k_chunk; ++i) {
    const float magnitude = chunk.values[i] < 0 ? -chunk.values[i] : chunk.values[i];
    if (magnitude > greatest) greatest = magnitude;
  }
  return greatest;
}

// *target = max(*target, value); both are at least 0, so that their bits are in the order of their values.
__device__ void note_greatest(float* target, float value) {
#if defined(TPRIMAT_GPU_HOST)
  if (value > *target) *target = value;
#else
  atomicMax(reinterpret_cast<int*>(target), __float_as_int(value));
#endif
}

template <class T>
__global__ void find_greatest(int64_t chunks, const T* x, float* amax) {
  float greatest = 0;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < chunks; i += step) {
    const float here = greatest_magnitude(read_floats<k_chunk>(x + i * k_chunk));
    if (here > greatest) greatest = here;
  }
  greatest = block_max(greatest);
  if (threadIdx.x == 0) note_greatest(amax, greatest);
}

template <class T>
struct QuantizeKernel {
  int64_t rows, cols;
  const T* x;
  uint8_t *y, *y_transposed;
  Fp8Scale scale;
  Fp8Format format;
  bool current;  // scaling
  bool fnuz;     // the GPU's 8-bit numbers
};

// With current scaling every thread finds the same scale from amax, and one of all blocks writes it down.
template <class T>
__device__ float scale_of(const QuantizeKernel<T>& q) {
  if (!q.current) return *q.scale.scale;
  const float scale = fp8_scale_of(*q.scale.amax, q.format);
  if (threadIdx.x == 0 && blockIdx.x == 0 && blockIdx.y == 0) {
    *q.scale.scale = scale;
    *q.scale.back = (q.fnuz ? 2.0f : 1.0f) / scale;
  }
  return scale;
}

struct alignas(8) ByteChunk {
  uint8_t bytes[k_chunk];
};

// One tile, row by row into y and into shared memory, from there column by column into y_transposed.
template <class T>
__global__ void __launch_bounds__(k_threads) quantize_tile(QuantizeKernel<T> q) {
  __shared__ uint8_t tile[k_tile * k_tile_stride];
  constexpr int chunks = k_tile / k_chunk;
  const float scale = scale_of(q);
  const int64_t first_row = int64_t{blockIdx.y} * k_tile, first_col = int64_t{blockIdx.x} * k_tile;
  const int chunk = static_cast<int>(threadIdx.x) % chunks, line = static_cast<int>(threadIdx.x) / chunks;
  float greatest = 0;
  for (int row = line; row < k_tile; row += k_threads / chunks) {
    const int64_t r = first_row + row, c = first_col + chunk * k_chunk;
    if (r >= q.rows || c >= q.cols) continue;
    const Floats values = read_floats<k_chunk>(q.x + r * q.cols + c);
    const float here = greatest_magnitude(values);
    if (here > greatest) greatest = here;
    ByteChunk bytes;
    TPRIMAT_UNROLL
    for (int i = 0; i < k_chunk; i += 2)
      store_fp8_pair(values.values[i] * scale, values.values[i + 1] * scale, q.format, q.fnuz, bytes.bytes + i);
    if (q.y != nullptr) *reinterpret_cast<ByteChunk*>(q.y + r * q.cols + c) = bytes;
    TPRIMAT_UNROLL
    for (int i = 0; i < k_chunk; ++i) tile[row * k_tile_stride + chunk * k_chunk + i] = bytes.bytes[i];
  }
  if (!q.current) {
    greatest = block_max(greatest);
    if (threadIdx.x == 0) note_greatest(q.scale.amax, greatest);
  }
  if (q.y_transposed == nullptr) return;
  __syncthreads();
  for (int col = line; col < k_tile; col += k_threads / chunks) {
    const int64_t c = first_col + col, r = first_row + chunk * k_chunk;
    if (c >= q.cols || r >= q.rows) continue;
    ByteChunk bytes;
    TPRIMAT_UNROLL
    for (int i = 0; i < k_chunk; ++i) bytes.bytes[i] = tile[(chunk * k_chunk + i) * k_tile_stride + col];
    *reinterpret_cast<ByteChunk*>(q.y_transposed + c * q.rows + r) = bytes;
  }
}

__global__ void next_scales(Fp8History h, bool fnuz) {
  const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= h.tensors) return;
  float* const amaxes = h.history + t * h.length;
  amaxes[h.step % h.length] = h.amax[t];
  h.amax[t] = 0;
  float largest = 0;
  for (int64_t i = 0; i < h.length; ++i)
    if (amaxes[i] > largest) largest = amaxes[i];
  if (largest > 0 && largest <= k_greatest_float) {
    const float scale = h.largest[t] / largest;
    h.scale[t] = scale <= k_greatest_float ? scale : k_greatest_float;
  }
  h.back[t] = (fnuz ? 2.0f : 1.0f) / h.scale[t];
}

unsigned blocks_for(int64_t count, int64_t each) { return static_cast<unsigned>(parts_of(count, each)); }

template <class T>
void find_amax(const Fp8Quantize<T>& q) {
  const Context& here = context();
  check(driver::fill(q.scale.amax, 0, sizeof(float), here.stream));
  const int64_t chunks = q.rows * q.cols / k_chunk;
  const unsigned blocks = std::min(blocks_for(chunks, k_threads), static_cast<unsigned>(here.multiprocessors) * 8);
  launch({dim3(blocks), dim3(k_threads), 0, here.stream}, find_greatest<T>, chunks, q.x, q.scale.amax);
}

template <class T>
void fp8_quantize(const Fp8Quantize<T>& q) {
  CHECK(q.rows % 16 == 0 && q.cols % 16 == 0 && fits_packs<T>({q.x}, {}));
  if (q.rows == 0 || q.cols == 0) return;
  const bool current = q.scaling == Fp8Scaling::current;
  if (current) find_amax(q);
  const QuantizeKernel<T> kernel{q.rows, q.cols, q.x, q.y, q.y_transposed, q.scale, q.format, current, fp8_is_fnuz()};
  launch({dim3(blocks_for(q.cols, k_tile), blocks_for(q.rows, k_tile)), dim3(k_threads), 0, context().stream},
         quantize_tile<T>, kernel);
}

void fp8_next_scales(const Fp8History& history) {
  CHECK(history.length > 0);
  if (history.tensors == 0) return;
  launch({dim3(blocks_for(history.tensors, k_threads)), dim3(k_threads), 0, context().stream}, next_scales, history,
         fp8_is_fnuz());
}

}  // namespace

void set_ops(OpsByFormat<Fp8ProductOps>& ops) {
  ops.set_fast([]<class T>(Fp8ProductOps<T>& fast) {
    fast = {fp8_quantize<T>, fp8_next_scales, fp8_matmul<T>, fp8_matmul<float>};
  });
}

}  // namespace tprimat::engine::gpu
