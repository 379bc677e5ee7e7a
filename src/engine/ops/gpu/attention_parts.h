#pragma once

// What the tensor core kernels of attention share: how large their tiles are, sums of products over a head's width,
// masks, and the way of a result to global memory.
#include "ops/gpu/attention_view.h"
#include "ops/gpu/fast_math.h"
#include "ops/gpu/mma.h"

namespace tprimat::engine::gpu {

inline constexpr float k_infinity = __builtin_huge_valf();
inline constexpr int k_statistics_padding = 64;  // queries of a head, in what the backward kernels hand on

// A warp's part of a result: parts × 16 rows, width columns.
template <int parts, int width>
struct WarpTile {
  Accumulator at[parts][width / 16];

  __device__ void clear() {
    TPRIMAT_UNROLL
    for (int r = 0; r < parts; ++r) {
      TPRIMAT_UNROLL
      for (int c = 0; c < width / 16; ++c) at[r][c].clear();
    }
  }
};

// to[m][n] = Σ_k left[first_row + m][k] · right[n][k]
template <class T, int parts, int width, int columns>
__device__ __forceinline__ void multiply_rows(WarpTile<parts, width>& to, const SharedTile<T, columns>& left,
                                              int first_row, const SharedTile<T, columns>& right) {
  to.clear();
  const OperandPlaces at_left = left_places(first_row), at_right = right_transposed_places();
  TPRIMAT_UNROLL
  for (int k = 0; k < columns; k += 16) {
    LeftOperand<T> a[parts];
    TPRIMAT_UNROLL
    for (int r = 0; r < parts; ++r) a[r] = load_left(left, 16 * r, k, at_left);
    TPRIMAT_UNROLL
    for (int n = 0; n < width / 16; ++n) {
      const RightOperand<T> b = load_right_transposed(right, 16 * n, k, at_right);
      TPRIMAT_UNROLL
      for (int r = 0; r < parts; ++r) multiply_add(to.at[r][n], a[r], b);
    }
  }
}

// to[m][n] += Σ_k left[m][k] · right[k][n], the left rounded to T
template <class T, int parts, int width, int columns>
__device__ __forceinline__ void add_product(WarpTile<parts, columns>& to, const WarpTile<parts, width>& left,
                                            const SharedTile<T, columns>& right) {
  const OperandPlaces at_right = right_places();
  TPRIMAT_UNROLL
  for (int k = 0; k < width / 16; ++k) {
    LeftOperand<T> a[parts];
    TPRIMAT_UNROLL
    for (int r = 0; r < parts; ++r) a[r] = left_operand<T>(left.at[r][k]);
    TPRIMAT_UNROLL
    for (int n = 0; n < columns / 16; ++n) {
      const RightOperand<T> b = load_right(right, 16 * k, 16 * n, at_right);
      TPRIMAT_UNROLL
      for (int r = 0; r < parts; ++r) multiply_add(to.at[r][n], a[r], b);
    }
  }
}

// −∞ where the row must not see the column: it sees [first(row), end(row)).
template <int parts, int width, class Bounds>
__device__ __forceinline__ void hide(WarpTile<parts, width>& scores, int first_row, int first_column,
                                     const Bounds& bounds) {
  TPRIMAT_UNROLL
  for (int r = 0; r < parts; ++r) {
    int first[Accumulator::k_slots], end[Accumulator::k_slots];
    TPRIMAT_UNROLL
    for (int slot = 0; slot < Accumulator::k_slots; ++slot)
      bounds(first_row + 16 * r + Accumulator::row_of_slot(slot), first[slot], end[slot]);
    TPRIMAT_UNROLL
    for (int c = 0; c < width / 16; ++c) {
      TPRIMAT_UNROLL
      for (int i = 0; i < Accumulator::k_size; ++i) {
        const int column = first_column + 16 * c + Accumulator::col(i);
        if (column < first[Accumulator::slot(i)] || column >= end[Accumulator::slot(i)])
          scores.at[r][c].values[i] = -k_infinity;
      }
    }
  }
}

// This warp's rows into its own rows of a tile in shared memory, rounded to T.
template <class T, int parts, int columns>
__device__ __forceinline__ void keep_rounded(const WarpTile<parts, columns>& values, const SharedTile<T, columns>& to,
                                             int first_row) {
  TPRIMAT_UNROLL
  for (int r = 0; r < parts; ++r) {
    TPRIMAT_UNROLL
    for (int c = 0; c < columns / 16; ++c) {
      const Accumulator& from = values.at[r][c];
      TPRIMAT_UNROLL
      for (int i = 0; i < Accumulator::k_size; i += 2)
        *reinterpret_cast<uint32_t*>(to.at(first_row + 16 * r + Accumulator::row(i), 16 * c + Accumulator::col(i))) =
            pair_of<T>(from.values[i], from.values[i + 1]);
    }
  }
}

// Rounded rows by way of the tile's own rows of this warp, which nobody else touches, to global memory.
template <class T, int parts, int columns>
__device__ __forceinline__ void store_rows(const WarpTile<parts, columns>& values,
                                           const SharedTile<T, columns>& by_way_of, int first_row, GlobalRows<T> to) {
  sync_warp();
  keep_rounded(values, by_way_of, first_row);
  sync_warp();
  to.data += first_row * to.stride;
  to.rows -= first_row;
  store_tile<16 * parts>(by_way_of, first_row, to);
}

template <int parts, int columns>
__device__ __forceinline__ void multiply(WarpTile<parts, columns>& values, float factor) {
  TPRIMAT_UNROLL
  for (int r = 0; r < parts; ++r) {
    TPRIMAT_UNROLL
    for (int c = 0; c < columns / 16; ++c) {
      TPRIMAT_UNROLL
      for (int i = 0; i < Accumulator::k_size; ++i) values.at[r][c].values[i] *= factor;
    }
  }
}

// values += what the rows hold in global memory
template <class T, int parts, int columns>
__device__ __forceinline__ void add_rows(WarpTile<parts, columns>& values, int first_row, const GlobalRows<T>& from) {
  TPRIMAT_UNROLL
  for (int r = 0; r < parts; ++r) {
    TPRIMAT_UNROLL
    for (int c = 0; c < columns / 16; ++c) {
      TPRIMAT_UNROLL
      for (int i = 0; i < Accumulator::k_size; ++i) {
        const int row = first_row + 16 * r + Accumulator::row(i), column = 16 * c + Accumulator::col(i);
        if (row < from.rows && column < from.width)
          values.at[r][c].values[i] += load(from.data[row * from.stride + column]);
      }
    }
  }
}

}  // namespace tprimat::engine::gpu
