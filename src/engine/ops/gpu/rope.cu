#include "ops/gpu/chunk.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {
namespace {

// The table of a token; cosines and sines of half a head.
struct RopeRows {
  RopeShape shape;
  const float *cosine, *sine;
  float direction;
};

// One block for each token: its threads share the pairs of all heads out.
template <class T, int n>
__global__ void __launch_bounds__(k_block) turn_heads(RopeRows rope, T* heads) {
  const int64_t rows = rope.shape.batch * rope.shape.sequence, half = rope.shape.head_dim / 2;
  const auto chunks = static_cast<unsigned>(half / n), all = static_cast<unsigned>(rope.shape.heads) * chunks;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t table = row % rope.shape.sequence * half;
    for (unsigned i = threadIdx.x; i < all; i += blockDim.x) {
      const unsigned head = i / chunks, c = i % chunks * n;
      T* const first = heads + row * rope.shape.row_stride + head * rope.shape.head_dim + c;
      Chunk<T, n> a = read_chunk<n>(first), b = read_chunk<n>(first + half);
      const Chunk<float, n> cosine = read_chunk<n>(rope.cosine + table + c),
                            sine = read_chunk<n>(rope.sine + table + c);
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j) {
        const float x = load(a.values[j]), y = load(b.values[j]), turn = sine.values[j] * rope.direction;
        a.values[j] = store<T>(x * cosine.values[j] - y * turn);
        b.values[j] = store<T>(x * turn + y * cosine.values[j]);
      }
      write_chunk<n>(first, a);
      write_chunk<n>(first + half, b);
    }
  }
}

template <class T>
void rope_in_place(const RopeShape& shape, const RopeTable<float>& table, int direction, T* heads) {
  const int64_t rows = shape.batch * shape.sequence, half = shape.head_dim / 2;
  if (rows == 0 || shape.heads == 0 || half == 0) return;
  CHECK(shape.heads * half < int64_t{1} << 31);
  with_width<T>(fits_packs<T>({heads, table.cosine, table.sine}, {half, shape.row_stride}), [&](auto width) {
    constexpr int n = decltype(width)::value;
    const int64_t threads = std::clamp<int64_t>(parts_of(shape.heads * half / n, 64) * 64, 64, k_block);
    launch({dim3(static_cast<unsigned>(std::min(rows, 4 * most_blocks()))), dim3(static_cast<unsigned>(threads)), 0,
            context().stream},
           turn_heads<T, n>, RopeRows{shape, table.cosine, table.sine, static_cast<float>(direction)}, heads);
  });
}

}  // namespace

void set_ops(OpsByFormat<RopeOps>& ops) {
  ops.set_fast([]<class T>(RopeOps<T>& fast) { fast = {rope_in_place<T>}; });
}

}  // namespace tprimat::engine::gpu
