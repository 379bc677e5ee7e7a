#pragma once

#include <algorithm>
#include <cstdint>

#include "device/element.h"
#include "ops/cpu/avx512_bf16.h"

// Vectors of 16 floats from and to bf16, and powers of them.
#if TPRIMAT_HAS_AVX512_BF16
namespace tprimat::engine {

inline constexpr int64_t k_lanes = 16;

inline __mmask16 lanes_below(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, k_lanes)) - 1u);
}

__attribute__((always_inline)) TPRIMAT_AVX512_BF16 inline __m512 widen(__m256i values) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}
TPRIMAT_AVX512_BF16 inline __m512 widen(const bf16* from, __mmask16 present) {
  return widen(_mm256_maskz_loadu_epi16(present, from));
}
TPRIMAT_AVX512_BF16 inline __m256i narrow(__m512 values) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values));
}

// 2^x for x below 128, with a relative error of 3e-6: 2^⌊x⌋ times the polynomial of degree 4 in x − ⌊x⌋ whose largest
// relative error in [0, 1) is least (Remez). −∞ gives 0, NaN stays NaN.
TPRIMAT_AVX512_BF16 inline __m512 power_of_two(__m512 x) {
  constexpr int k_above_floor = 0x09;  // round down, no exceptions; `scalef` takes the floor of x itself
  const __m512 r = _mm512_reduce_ps(x, k_above_floor);
  __m512 power = _mm512_set1_ps(1.3534168e-2f);
  for (const float coefficient : {5.201146e-2f, 0.24144275f, 0.69300383f, 1.0000026f})
    power = _mm512_fmadd_ps(power, r, _mm512_set1_ps(coefficient));
  return _mm512_scalef_ps(power, x);
}
inline constexpr float k_log2_e = 1.44269504f;

}  // namespace tprimat::engine
#endif
