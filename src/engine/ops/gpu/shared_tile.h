#pragma once

// A tile of rows in shared memory whose 16-byte chunks are swizzled, so that the same columns of eight rows in
// succession lie in different banks: ldmatrix, and copies of whole rows, meet no conflict.
#include "ops/gpu/async_copy.h"
#include "ops/gpu/element.h"
#include "ops/gpu/warp.h"

// For loops off the fast path, which shall take few registers.
#if defined(TPRIMAT_GPU_HOST)
#define TPRIMAT_KEEP_LOOP
#else
#define TPRIMAT_KEEP_LOOP _Pragma("unroll 1")
#endif

namespace tprimat::engine::gpu {

// A thread's share of an address in a tile.
struct TilePlace {
  unsigned row, column;
};

template <class T, int columns>
struct SharedTile {
  static_assert(sizeof(T) == 2 && columns % 32 == 0);
  static constexpr int k_chunks = columns / 8;  // of a row
  static constexpr int k_turns = k_chunks % 8 == 0 ? 8 : 4;
  T* data;

  __device__ T* at(int row, int column) const {
    return data + row * columns + ((column / 8) ^ turn(row)) * 8 + column % 8;
  }
  // at(row + place.row, column + place.column) with the thread's share of the address apart from what is known when the
  // program is compiled: row and column are multiples of 16, place.column is less than that.
  __device__ T* at(int row, int column, TilePlace place) const {
    const unsigned chunk = (place.column / 8) ^ turn(place.row), turns = static_cast<unsigned>(column / 8 % k_turns);
    return data + (place.row * columns + (chunk ^ turns) * 8 + place.column % 8) +
           (row * columns + column / 8 / k_turns * k_turns * 8);
  }

 private:
  template <class Row>
  __device__ static Row turn(Row row) {
    return k_turns == 8 ? row % 8 : row / 2 % 4;
  }
};

// Rows in global memory that a tile is read from or written to.
template <class T>
struct GlobalRows {
  T* data;
  int64_t stride;
  int rows, width;  // that exist; width in elements
  bool packs;       // 16 bytes at a time
};

// One value after the other, where the rows are not made of whole packs.
template <int rows, int threads, class T, int columns>
__device__ __forceinline__ void load_tile_by_elements(const SharedTile<T, columns>& to,
                                                      const GlobalRows<const T>& from) {
  TPRIMAT_KEEP_LOOP
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += threads) {
    const int row = i / columns, column = i % columns;
    *to.at(row, column) = row < from.rows && column < from.width ? from.data[row * from.stride + column] : T{};
  }
}

// Starts copying `rows` rows into the tile by all threads; what does not exist becomes zero.
template <int rows, int threads, class T, int columns>
__device__ __forceinline__ void load_tile(const SharedTile<T, columns>& to, const GlobalRows<const T>& from) {
  if (!from.packs) return load_tile_by_elements<rows, threads>(to, from);
  // Each thread takes the same columns of every k_step-th row; the last threads of a block may be left over.
  constexpr int k_chunks = columns / 8, k_step = threads / k_chunks, k_busy = k_step * k_chunks;
  int thread = static_cast<int>(threadIdx.x);
  if constexpr (k_step % 8 != 0) thread = hidden(thread);  // each row has another swizzle
  const int first = thread / k_chunks, column = thread % k_chunks * 8;
  if (k_busy < threads && thread >= k_busy) return;
  const T* source = hidden(from.data + first * from.stride + column);
  const int left = column < from.width ? from.rows - first : 0;
  TPRIMAT_UNROLL
  for (int row = 0; row < rows; row += k_step) {
    const bool exists = row < left;
    if (rows % k_step == 0 || first + row < rows)
      copy_pack_async(to.at(first + row, column), exists ? source : from.data, exists);
    source += k_step * from.stride;
  }
}

// Copies rows [first, first + rows) of the tile to row 0 and on of `to`, by one warp.
template <int rows, class T, int columns>
__device__ __forceinline__ void store_tile(const SharedTile<T, columns>& from, int first, const GlobalRows<T>& to) {
  constexpr int k_chunks = columns / 8;
  if (!to.packs) {
    TPRIMAT_KEEP_LOOP
    for (int i = lane_of_thread(); i < rows * columns; i += k_warp) {
      const int row = i / columns, column = i % columns;
      if (row < to.rows && column < to.width) to.data[row * to.stride + column] = *from.at(first + row, column);
    }
    return;
  }
  for (int chunk = lane_of_thread(); chunk < rows * k_chunks; chunk += k_warp) {
    const int row = chunk / k_chunks, column = chunk % k_chunks * 8;
    if (row < to.rows && column < to.width)
      store_pack(to.data + row * to.stride + column, load_pack(static_cast<const T*>(from.at(first + row, column))));
  }
}

}  // namespace tprimat::engine::gpu
