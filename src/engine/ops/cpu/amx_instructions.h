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

// The operands of 2×2 tiles of sums over one step. Those of one side come past the first-level cache.
template <Side Streaming>
inline void load_streaming_step(const LeftPanel& left, const LeftPanel& right) {
  if constexpr (Streaming == Side::left) {
    stream_tile<4>(left.first, left.row_bytes), load_tile<6>(right.first, right.row_bytes);
    load_tile<7>(right.first + right.to_second, right.row_bytes);
    stream_tile<5>(left.first + left.to_second, left.row_bytes);
  } else {
    load_tile<4>(left.first, left.row_bytes), stream_tile<6>(right.first, right.row_bytes);
    stream_tile<7>(right.first + right.to_second, right.row_bytes);
    load_tile<5>(left.first + left.to_second, left.row_bytes);
  }
}

inline void load_step(const LeftPanel& left, const LeftPanel& right) {
  load_tile<4>(left.first, left.row_bytes), load_tile<6>(right.first, right.row_bytes);
  load_tile<7>(right.first + right.to_second, right.row_bytes);
  load_tile<5>(left.first + left.to_second, left.row_bytes);
}

// A quarter of a step's 32 lines to the first-level cache.
template <int Quarter>
inline void prefetch_lines(const LeftPanel& panel) {
  const char* line = reinterpret_cast<const char*>(panel.first + Quarter / 2 * panel.to_second) +
                     Quarter % 2 * k_tile_lines / 2 * panel.row_bytes;
  for (int64_t i = 0; i < k_tile_lines / 2; ++i, line += panel.row_bytes) asm volatile("prefetcht0 (%0)" ::"r"(line));
}

// One step of 2×2 tiles of sums: each tile that is loaded takes part in two products. All loads come first, and what a
// later step loads is prefetched between the products: beside another thread of the same core, a step takes two thirds
// of the time that it takes with each load just before its product; alone, 7 % more (docs/performance.md).
inline void add_step(const LeftPanel& left, const LeftPanel& right, const LeftPanel& later) {
  load_step(left, right);
  add_product<0, 4, 6>(), prefetch_lines<0>(later);
  add_product<1, 4, 7>(), prefetch_lines<1>(later);
  add_product<2, 5, 6>(), prefetch_lines<2>(later);
  add_product<3, 5, 7>(), prefetch_lines<3>(later);
}

}  // namespace tprimat::engine::amx
#endif
