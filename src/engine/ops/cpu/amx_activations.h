#pragma once

#include "ops/cpu/bf16_vectors.h"

// Activations of lines of 32 numbers of bf16, and their slopes, as rounded for a product's gradient to be multiplied
// by.
#if TPRIMAT_HAS_AVX512_BF16
namespace tprimat::engine::amx {

TPRIMAT_INLINE_AVX512_BF16 inline __m512i narrow_both(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
TPRIMAT_INLINE_AVX512_BF16 inline __m512 widen_low(__m512i values) { return widen(_mm512_castsi512_si256(values)); }
TPRIMAT_INLINE_AVX512_BF16 inline __m512 widen_high(__m512i values) {
  return widen(_mm512_extracti64x4_epi64(values, 1));
}

// s = 1/(1 + e^−z) and 1 − s, which loses nothing where s is close to 1, with a relative error of 7e-5, a thirtieth of
// bf16's: 2^x = 2^⌊x⌋·p(x − ⌊x⌋), and p of degree 4 interpolates 2^r at Chebyshev's nodes in [0, 1].
struct SigmoidParts {
  TPRIMAT_INLINE_AVX512_BF16 explicit SigmoidParts(__m512 z) {
    constexpr int k_above_floor = 0x09;
    const __m512 x = _mm512_min_ps(_mm512_set1_ps(126.0f), _mm512_mul_ps(z, _mm512_set1_ps(-k_log2_e)));
    const __m512 r = _mm512_reduce_ps(x, k_above_floor);
    __m512 power = _mm512_set1_ps(1.3670309e-2f);
    for (const float coefficient : {5.1744998e-2f, 0.24160436f, 0.69297292f, 1.0000035f})
      power = _mm512_fmadd_ps(power, r, _mm512_set1_ps(coefficient));
    power = _mm512_scalef_ps(power, x);
    value = _mm512_rcp14_ps(_mm512_add_ps(power, _mm512_set1_ps(1.0f)));
    rest = _mm512_mul_ps(power, value);
  }
  __m512 value, rest;
};

// silu(gate)·up and its slopes, by which its gradient is multiplied to give those of gate and up; s is the sigmoid:
//   d silu/dz = s·(1 + z·(1 − s))
struct Swiglu {
  TPRIMAT_INLINE_AVX512_BF16 Swiglu(__m512 z, __m512 up) {
    const SigmoidParts s(z);
    up_slope = _mm512_mul_ps(z, s.value), value = _mm512_mul_ps(up_slope, up);
    const __m512 rise = _mm512_fmadd_ps(z, s.rest, _mm512_set1_ps(1.0f));
    gate_slope = _mm512_mul_ps(_mm512_mul_ps(s.value, rise), up);
  }
  __m512 value, gate_slope, up_slope;
};
// gelu(z) = z·s(2u), 2u = 2√(2/π)·(z + 0.044715·z³), and its slope:
//   d gelu/dz = s + z·s·(1 − s)·2u', 2u' = 2√(2/π)·(1 + 3·0.044715·z²)
struct Gelu {
  TPRIMAT_INLINE_AVX512_BF16 explicit Gelu(__m512 z) {
    const __m512 root = _mm512_set1_ps(1.5957691216f), square = _mm512_mul_ps(z, z);
    const __m512 inner = _mm512_fmadd_ps(square, _mm512_set1_ps(0.044715f), _mm512_set1_ps(1.0f));
    const SigmoidParts s(_mm512_mul_ps(_mm512_mul_ps(z, root), inner));
    const __m512 twice_u = _mm512_fmadd_ps(square, _mm512_set1_ps(3 * 0.044715f * 1.5957691216f), root);
    value = _mm512_mul_ps(z, s.value);
    slope = _mm512_mul_ps(s.value, _mm512_fmadd_ps(_mm512_mul_ps(z, s.rest), twice_u, _mm512_set1_ps(1.0f)));
  }
  __m512 value, slope;
};
// The same of 32 numbers. Slopes are rounded whether they are kept or made again, which so gives the same bits.
struct SwigluLine {
  TPRIMAT_INLINE_AVX512_BF16 SwigluLine(__m512i gate, __m512i up)
      : low(widen_low(gate), widen_low(up)), high(widen_high(gate), widen_high(up)) {}
  TPRIMAT_INLINE_AVX512_BF16 __m512i value() const { return narrow_both(low.value, high.value); }
  TPRIMAT_INLINE_AVX512_BF16 __m512i gate_slope() const { return narrow_both(low.gate_slope, high.gate_slope); }
  TPRIMAT_INLINE_AVX512_BF16 __m512i up_slope() const { return narrow_both(low.up_slope, high.up_slope); }
  Swiglu low, high;
};
struct GeluLine {
  TPRIMAT_INLINE_AVX512_BF16 explicit GeluLine(__m512i z) : low(widen_low(z)), high(widen_high(z)) {}
  TPRIMAT_INLINE_AVX512_BF16 __m512i value() const { return narrow_both(low.value, high.value); }
  TPRIMAT_INLINE_AVX512_BF16 __m512i slope() const { return narrow_both(low.slope, high.slope); }
  Gelu low, high;
};

// 32 numbers of bf16 times as many of float.
TPRIMAT_INLINE_AVX512_BF16 inline __m512i scaled_line(__m512i line, __m512 low, __m512 high) {
  return narrow_both(_mm512_mul_ps(low, widen_low(line)), _mm512_mul_ps(high, widen_high(line)));
}

}  // namespace tprimat::engine::amx
#endif
