#pragma once

// Neighbouring values that one thread reads or writes at once, and how kernels share arrays and matrices out to
// threads.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "device/gpu/context.h"
#include "ops/gpu/element.h"

namespace tprimat::engine::gpu {

// n values, a power of two; read and written in pieces of up to 16 bytes.
template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Chunk {
  T values[n];
};
template <int n, class T>
__device__ inline Chunk<T, n> read_chunk(const T* from) {
  return *reinterpret_cast<const Chunk<T, n>*>(from);
}
template <int n, class T>
__device__ inline void write_chunk(T* to, const Chunk<T, n>& chunk) {
  *reinterpret_cast<Chunk<T, n>*>(to) = chunk;
}
template <int n, class T>
__device__ inline Chunk<float, n> read_floats(const T* from) {
  const Chunk<T, n> chunk = read_chunk<n>(from);
  Chunk<float, n> floats;
  TPRIMAT_UNROLL
  for (int j = 0; j < n; ++j) floats.values[j] = load(chunk.values[j]);
  return floats;
}

template <int n>
using Width = std::integral_constant<int, n>;

// use(Width<n>) with as many values as make 16 bytes of T where that is allowed, one by one else.
template <class T, class Use>
void with_width(bool packed, const Use& use) {
  if (packed)
    use(Width<Pack<T>::k_size>{});
  else
    use(Width<1>{});
}
// Whether chunks of `n` values may begin at every address that is a multiple of n from `pointer`.
template <class V>
bool fits_chunks(const V* pointer, int n) {
  return reinterpret_cast<uintptr_t>(pointer) % std::min<size_t>(16, static_cast<size_t>(n) * sizeof(V)) == 0;
}

inline constexpr int k_block = 256;  // threads
inline constexpr int64_t k_max_blocks_per_multiprocessor = 64;

__host__ __device__ inline int64_t parts_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

inline int64_t most_blocks() { return context().multiprocessors * k_max_blocks_per_multiprocessor; }

// One thread for n values of `count`; where there are more, each thread takes several, in visit_array.
inline KernelLaunch array_launch(int64_t count, int n) {
  const int64_t blocks = std::clamp<int64_t>(parts_of(count, int64_t{k_block} * n), 1, most_blocks());
  return {dim3(static_cast<unsigned>(blocks)), dim3(k_block), 0, context().stream};
}
// visit(Width<n>, i) for each whole chunk, visit(Width<1>, i) for what is left of the last.
template <int n, class Visit>
__device__ inline void visit_array(int64_t count, const Visit& visit) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * n;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * n; i < count; i += step) {
    if (i + n <= count)
      visit(Width<n>{}, i);
    else
      for (int64_t rest = i; rest < count; ++rest) visit(Width<1>{}, rest);
  }
}

// Threads for a matrix of rows×chunks: neighbours along a row, and several rows to a block where rows are short.
inline KernelLaunch matrix_launch(int64_t rows, int64_t chunks) {
  unsigned wide = 1;
  while (wide < k_block && wide < chunks) wide *= 2;
  const unsigned high = k_block / wide;
  const int64_t across = std::clamp<int64_t>(parts_of(chunks, wide), 1, most_blocks());
  const int64_t down = std::clamp<int64_t>(parts_of(rows, high), 1, std::max<int64_t>(1, most_blocks() / across));
  return {dim3(static_cast<unsigned>(across), static_cast<unsigned>(std::min<int64_t>(down, 65535))), dim3(wide, high),
          0, context().stream};
}
// visit(row, chunk)
template <class Visit>
__device__ inline void visit_matrix(int64_t rows, int64_t chunks, const Visit& visit) {
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows; row += int64_t{gridDim.y} * blockDim.y)
    for (int64_t chunk = first; chunk < chunks; chunk += step) visit(row, chunk);
}

inline constexpr float k_infinity = std::numeric_limits<float>::infinity();

}  // namespace tprimat::engine::gpu
