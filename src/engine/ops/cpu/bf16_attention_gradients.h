#pragma once

#include "ops/cpu/bf16_vectors.h"

// What the backward passes of attention share whose products are of bf16.
#if TPRIMAT_HAS_AVX512_BF16
namespace tprimat::engine {

// What the backward pass needs of one query.
struct QueryStatistics {
  float logsumexp, dot;  // dot: of its output and the output's gradient
};

// power = e^(scale·score − logsumexp) and dscore = power·(dpower − dot) of one query and 16 keys.
struct PowerAndGradient {
  __m512 power, dscore;
};
TPRIMAT_INLINE_AVX512_BF16 inline PowerAndGradient softmax_backward(const float* score, const float* dpower,
                                                                    float scale, const QueryStatistics& query) {
  constexpr int k_to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  // Rounded as in the forward pass, where the largest score has become a part of logsumexp: no compiler may fuse these
  // two.
  const __m512 scaled = _mm512_mul_round_ps(_mm512_load_ps(score), _mm512_set1_ps(scale), k_to_nearest);
  const __m512 less = _mm512_sub_ps(scaled, _mm512_set1_ps(query.logsumexp));
  const __m512 power = power_of_two(_mm512_mul_ps(less, _mm512_set1_ps(k_log2_e)));
  return {power, _mm512_mul_ps(power, _mm512_sub_ps(_mm512_load_ps(dpower), _mm512_set1_ps(query.dot)))};
}
TPRIMAT_INLINE_AVX512_BF16 inline void hide_others(__mmask16 visible, PowerAndGradient& values) {
  values.power = _mm512_maskz_mov_ps(visible, values.power);
  values.dscore = _mm512_maskz_mov_ps(visible, values.dscore);
}

// Each number of the lower half beside that of the upper one.
TPRIMAT_INLINE_AVX512_BF16 inline __m512i interleave_halves(__m512i halves) {
  alignas(64) static constexpr int16_t k_order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(k_order), halves);
}

TPRIMAT_AVX512_BF16 inline float dot_product(const bf16* a, const bf16* b, int64_t count) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t c = 0; c < count; c += k_lanes) {
    const __mmask16 present = lanes_below(count - c);
    sum = _mm512_fmadd_ps(widen(a + c, present), widen(b + c, present), sum);
  }
  return _mm512_reduce_add_ps(sum);
}

}  // namespace tprimat::engine
#endif
