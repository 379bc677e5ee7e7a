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

// 2^x for x below 128, to 2 units in the last place: x = n + r, and the polynomial of degree 5 in r whose largest
// relative error in [-1/2, 1/2] is least (Remez). NaN stays NaN.
TPRIMAT_AVX512_BF16 inline __m512 power_of_two(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-151.0f), x);  // 2^-151 is 0 in float; the second operand passes NaN on
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), r = _mm512_sub_ps(x, n);
  __m512 power = _mm512_set1_ps(1.3276472e-3f);
  for (const float coefficient : {9.675541e-3f, 5.550713e-2f, 0.2402212f, 0.69314694f, 1.0000001f})
    power = _mm512_fmadd_ps(power, r, _mm512_set1_ps(coefficient));
  return _mm512_scalef_ps(power, n);
}
inline constexpr float k_log2_e = 1.44269504f;

}  // namespace tprimat::engine
#endif
