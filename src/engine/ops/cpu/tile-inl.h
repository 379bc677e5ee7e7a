// Per-target include (no #pragma once): small dense products on float tiles that lie in the cache.
#if defined(TPRIMAT_OPS_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TPRIMAT_OPS_CPU_TILE_INL_H_
#undef TPRIMAT_OPS_CPU_TILE_INL_H_
#else
#define TPRIMAT_OPS_CPU_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "ops/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {

// c (m×n, row-major) = or += a (m×k, any strides) · b (k×n, row-major). n is a multiple of 16.
struct TileProduct {
  const float* a;
  int64_t a_row, a_col;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  int64_t m, n, k;
};

// GCC 12 takes the loop over k for one of 2^62 rounds where it inlines this beside another tile's size.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#endif
// Rows×Vectors accumulators stay in registers over the whole of k.
template <int Rows, int Vectors, bool Accumulate>
HWY_INLINE void multiply_block(const TileProduct& t, int64_t i, int64_t j) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Floats> sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v)
      sum[r][v] = Accumulate ? hn::LoadU(d, t.c + (i + r) * t.c_row + j + v * lanes) : hn::Zero(d);
  const float* a = t.a + i * t.a_row;
  const float* b = t.b + j;
  for (int64_t k = 0; k < t.k; ++k, a += t.a_col, b += t.b_row) {
    hn::Vec<Floats> right[Vectors];
    for (int v = 0; v < Vectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
    for (int r = 0; r < Rows; ++r) {
      const auto left = hn::Set(d, a[r * t.a_row]);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) hn::StoreU(sum[r][v], d, t.c + (i + r) * t.c_row + j + v * lanes);
}

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

template <int Vectors, bool Accumulate>
HWY_INLINE void multiply_columns(const TileProduct& t, int64_t j) {
  constexpr int k_rows = 6;
  int64_t i = 0;
  for (; i + k_rows <= t.m; i += k_rows) multiply_block<k_rows, Vectors, Accumulate>(t, i, j);
  for (; i + 4 <= t.m; i += 4) multiply_block<4, Vectors, Accumulate>(t, i, j);
  for (; i < t.m; ++i) multiply_block<1, Vectors, Accumulate>(t, i, j);
}

constexpr int k_tile_vectors = HWY_MAX_BYTES >= 64 ? 4 : 2;  // 24 accumulators with 32 registers, 12 with 16
constexpr int64_t k_tile_columns = k_tile_vectors * HWY_MAX_BYTES / sizeof(float);  // multiplied together

template <bool Accumulate>
HWY_INLINE void multiply_tile(const TileProduct& t) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t j = 0;
  for (; j + k_tile_vectors * lanes <= t.n; j += k_tile_vectors * lanes)
    multiply_columns<k_tile_vectors, Accumulate>(t, j);
  for (; j < t.n; j += lanes) multiply_columns<1, Accumulate>(t, j);
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#endif
