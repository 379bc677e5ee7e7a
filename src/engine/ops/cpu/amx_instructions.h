#pragma once

#include <cstdint>

#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/avx512_bf16.h"

#if TPRIMAT_HAS_AVX512_BF16
// The instructions of AMX, for functions that hold TileRegisters. Assembly, since the compilers' functions for tiles
// need flags that hold for a whole file, and crash Clang 16.
namespace tprimat::engine::amx {

inline constexpr int64_t k_tile_lines = 16;

template <int Tile>
inline void load_tile(const void* from, int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(Tile) : "memory");
}
template <int Tile>
inline void store_tile(void* to, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_bytes), "i"(Tile) : "memory");
}
template <int Tile>
inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
template <int Sum, int Left, int Right>
inline void add_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(Left), "i"(Right));
}

// Past the first-level cache, which keeps what it holds.
template <int Tile>
inline void stream_tile(const void* from, int64_t row_bytes) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_bytes), "i"(Tile) : "memory");
}
template <int Tile, bool Streams>
inline void load_operand(const bf16* from, int64_t row_bytes) {
  if constexpr (Streams)
    stream_tile<Tile>(from, row_bytes);
  else
    load_tile<Tile>(from, row_bytes);
}

// The operands of one step of 2×2 tiles of sums: each tile that is loaded takes part in two products. All loads come
// first: beside another thread of the same core, which shares the tile unit, that matters (docs/performance.md).
template <bool LeftStreams = false, bool RightStreams = false>
inline void load_step(const LeftPanel& left, const LeftPanel& right) {
  load_operand<4, LeftStreams>(left.first, left.row_bytes);
  load_operand<6, RightStreams>(right.first, right.row_bytes);
  load_operand<7, RightStreams>(right.first + right.to_second, right.row_bytes);
  load_operand<5, LeftStreams>(left.first + left.to_second, left.row_bytes);
}
inline void add_step() {
  add_product<0, 4, 6>(), add_product<1, 4, 7>();
  add_product<2, 5, 6>(), add_product<3, 5, 7>();
}

}  // namespace tprimat::engine::amx
#endif
