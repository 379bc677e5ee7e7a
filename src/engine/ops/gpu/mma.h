#pragma once

// Products of 16×16 tiles in bf16 or f16 on tensor cores, added up in float: c += a·b by all threads of a warp. What
// each thread holds of a tile is hidden behind row(), col() and slot(). Two layouts:
//   warps of 32  mma.sync.m16n8k16 (NVIDIA, sm_80 and later), two side by side
//   waves of 64  v_mfma_f32_16x16x16 (AMD, CDNA 2 and later), fed bᵀ·aᵀ, so that there too a result becomes the left
//                operand of the next product without leaving its thread
// On the host the warp's threads put their parts together and take them apart again, in either layout.
#include <cstring>

#include "ops/gpu/element.h"
#include "ops/gpu/shared_tile.h"
#include "ops/gpu/warp.h"

namespace tprimat::engine::gpu {

inline constexpr bool k_wave_of_64 = k_warp == 64;
static_assert(k_warp == 32 || k_wave_of_64);

// A thread's part of the 16×16 result.
struct Accumulator {
  static constexpr int k_size = 256 / k_warp;
  static constexpr int k_slots = k_wave_of_64 ? 1 : 2;  // rows in which a thread holds something
  float values[k_size];

  __device__ static constexpr int slot(int i) { return k_wave_of_64 ? 0 : i / 2 % 2; }
  __device__ static int row_of_slot(int slot) {
    return k_wave_of_64 ? lane_of_thread() % 16 : lane_of_thread() / 4 + 8 * slot;
  }
  __device__ static int row(int i) { return row_of_slot(slot(i)); }
  // Columns of i and i + 1 are neighbours for even i.
  __device__ static int col(int i) {
    return k_wave_of_64 ? lane_of_thread() / 16 * 4 + i : lane_of_thread() % 4 * 2 + i % 2 + i / 4 * 8;
  }
  __device__ void clear() {
    TPRIMAT_UNROLL
    for (int i = 0; i < k_size; ++i) values[i] = 0;
  }
};

// Over the threads that hold parts of the same row.
template <class Combine>
__device__ inline float combine_row(float value, const Combine& combine) {
  constexpr int k_first = k_wave_of_64 ? 16 : 1;
  value = combine(value, shuffle_xor(value, k_first));
  return combine(value, shuffle_xor(value, 2 * k_first));
}
__device__ inline float row_sum(float value) {
  return combine_row(value, [](float a, float b) { return a + b; });
}
__device__ inline float row_max(float value) {
  return combine_row(value, [](float a, float b) { return fmaxf(a, b); });
}

// A thread's part of an operand: pairs of neighbours along the dimension that is summed over.
inline constexpr int k_operand_registers = 128 / k_warp;
template <class T>
struct LeftOperand {
  uint32_t pairs[k_operand_registers];
};
template <class T>
struct RightOperand {
  uint32_t pairs[k_operand_registers];
};

// Two values in the low and the high half of a register.
template <class T>
__device__ inline uint32_t pair_of(float low, float high) {
#if defined(TPRIMAT_GPU_CUDA)
  uint32_t pair;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return store<T>(low).bits | static_cast<uint32_t>(store<T>(high).bits) << 16;
#endif
}

template <class T>
__device__ __forceinline__ LeftOperand<T> left_operand(const Accumulator& c) {
  LeftOperand<T> a;
  TPRIMAT_UNROLL
  for (int i = 0; i < k_operand_registers; ++i) a.pairs[i] = pair_of<T>(c.values[2 * i], c.values[2 * i + 1]);
  return a;
}

#if defined(TPRIMAT_GPU_HOST)
namespace host {

// Where a warp's threads lay down what the others need.
struct Board {
  const void* rows[64];
  float left[16][16], right[16][16];
};
inline Board& board() {
  static thread_local Board boards[32];
  return boards[warp_of_thread()];
}

// ldmatrix.x4: lane l names row l % 8 of 8×8 matrix l / 8; register r receives a pair of matrix r.
inline void load_matrices(const void* row, bool transposed, uint32_t* registers) {
  board().rows[lane_of_thread()] = row;
  sync_warp();
  const int group = lane_of_thread() / 4, pair = lane_of_thread() % 4 * 2;
  for (int r = 0; r < 4; ++r) {
    const auto at = [&](int line, int column) -> uint32_t {
      return static_cast<const uint16_t*>(board().rows[r * 8 + line])[column];
    };
    registers[r] =
        transposed ? at(pair, group) | at(pair + 1, group) << 16 : at(group, pair) | at(group, pair + 1) << 16;
  }
  sync_warp();
}

template <class T>
float half_of(const uint32_t* pairs, int element) {
  return to_float(T{static_cast<uint16_t>(pairs[element / 2] >> (element % 2 * 16))});
}

template <class T>
void multiply_add(Accumulator& c, const LeftOperand<T>& a, const RightOperand<T>& b) {
  Board& shared = board();
  const int lane = lane_of_thread();
  for (int e = 0; e < 2 * k_operand_registers; ++e) {
    const int r = e / 2;
    const int row = k_wave_of_64 ? lane % 16 : lane / 4 + 8 * (r % 2);
    const int row_k = k_wave_of_64 ? lane / 16 * 4 + e : lane % 4 * 2 + e % 2 + 8 * (r / 2);
    const int column = k_wave_of_64 ? lane % 16 : lane / 4 + 8 * (r / 2);
    const int column_k = k_wave_of_64 ? lane / 16 * 4 + e : lane % 4 * 2 + e % 2 + 8 * (r % 2);
    shared.left[row][row_k] = half_of<T>(a.pairs, e);
    shared.right[column][column_k] = half_of<T>(b.pairs, e);
  }
  sync_warp();
  for (int i = 0; i < Accumulator::k_size; ++i)
    for (int k = 0; k < 16; ++k)
      c.values[i] += shared.left[Accumulator::row(i)][k] * shared.right[Accumulator::col(i)][k];
  sync_warp();
}

}  // namespace host
#endif

#if defined(TPRIMAT_GPU_CUDA)
template <bool transposed>
__device__ __forceinline__ void load_matrices(const void* row, uint32_t* r) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

template <class T>
__device__ __forceinline__ void multiply_half(float* c, const uint32_t* a, const uint32_t* b) {
  if constexpr (std::is_same_v<T, bf16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#elif defined(TPRIMAT_GPU_HIP)
using MfmaSum = __attribute__((ext_vector_type(4))) float;
using MfmaBf16 = __attribute__((ext_vector_type(4))) short;
using MfmaF16 = __attribute__((ext_vector_type(4))) _Float16;

template <class Vector>
__device__ inline Vector mfma_vector(const void* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof vector);
  return vector;
}
#endif

// c += a·b
template <class T>
__device__ __forceinline__ void multiply_add(Accumulator& c, const LeftOperand<T>& a, const RightOperand<T>& b) {
#if defined(TPRIMAT_GPU_HOST)
  host::multiply_add(c, a, b);
#elif defined(TPRIMAT_GPU_CUDA)
  multiply_half<T>(c.values, a.pairs, b.pairs);
  multiply_half<T>(c.values + 4, a.pairs, b.pairs + 2);
#elif defined(__HIP_DEVICE_COMPILE__)
  MfmaSum sum = mfma_vector<MfmaSum>(c.values);
  if constexpr (std::is_same_v<T, bf16>)
    sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(mfma_vector<MfmaBf16>(b.pairs), mfma_vector<MfmaBf16>(a.pairs), sum,
                                                    0, 0, 0);
  else
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(mfma_vector<MfmaF16>(b.pairs), mfma_vector<MfmaF16>(a.pairs), sum, 0, 0,
                                                0);
  __builtin_memcpy(c.values, &sum, sizeof sum);
#endif
}

// Operands out of shared memory: the 16×16 part of the tile that begins at `row` and `column`, multiples of 16, of
// which those are best known when the program is compiled; rows of this warp come on top.
template <bool transposed, class T, int columns>
__device__ __forceinline__ void load_parts(const SharedTile<T, columns>& tile, int row, int column, TilePlace place,
                                           uint32_t* pairs) {
  if constexpr (!k_wave_of_64) {
#if defined(TPRIMAT_GPU_HOST)
    host::load_matrices(tile.at(row, column, place), transposed, pairs);
#elif defined(TPRIMAT_GPU_CUDA)
    load_matrices<transposed>(tile.at(row, column, place), pairs);
#endif
  } else if constexpr (transposed) {
    for (int i = 0; i < 2; ++i) {
      const auto bits = [&](int k) -> uint32_t { return tile.at(row + place.row + k, column + place.column)->bits; };
      pairs[i] = bits(2 * i) | bits(2 * i + 1) << 16;
    }
  } else {
    std::memcpy(pairs, tile.at(row, column, place), 8);
  }
}

// Where in such a part this thread begins to read; taken once for a product.
struct OperandPlaces {
  TilePlace at;
};
__device__ inline unsigned hidden_lane() { return hidden(static_cast<unsigned>(lane_of_thread())); }

// a[m][k] = tile[row + m][column + k]
__device__ inline OperandPlaces left_places(int first_row) {
  const unsigned lane = hidden_lane();
  return {{static_cast<unsigned>(first_row) + lane % 16, k_wave_of_64 ? lane / 16 * 4 : lane / 16 * 8}};
}
template <class T, int columns>
__device__ __forceinline__ LeftOperand<T> load_left(const SharedTile<T, columns>& tile, int row, int column,
                                                    OperandPlaces p) {
  LeftOperand<T> a;
  load_parts<false>(tile, row, column, p.at, a.pairs);
  return a;
}

// b[k][n] = tile[row + n][column + k]
__device__ inline OperandPlaces right_transposed_places() {
  const unsigned lane = hidden_lane();
  if constexpr (k_wave_of_64) return {{lane % 16, lane / 16 * 4}};
  return {{lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8}};
}
template <class T, int columns>
__device__ __forceinline__ RightOperand<T> load_right_transposed(const SharedTile<T, columns>& tile, int row,
                                                                 int column, OperandPlaces p) {
  RightOperand<T> b;
  load_parts<false>(tile, row, column, p.at, b.pairs);
  return b;
}

// b[k][n] = tile[row + k][column + n]
__device__ inline OperandPlaces right_places() {
  const unsigned lane = hidden_lane();
  if constexpr (k_wave_of_64) return {{lane / 16 * 4, lane % 16}};
  return {{lane % 16, lane / 16 * 8}};
}
template <class T, int columns>
__device__ __forceinline__ RightOperand<T> load_right(const SharedTile<T, columns>& tile, int row, int column,
                                                      OperandPlaces p) {
  RightOperand<T> b;
  load_parts<true>(tile, row, column, p.at, b.pairs);
  return b;
}

}  // namespace tprimat::engine::gpu
