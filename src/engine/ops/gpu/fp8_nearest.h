#pragma once

// The nearest value of an 8-bit format: by the GPU's own conversion where it has one, by float arithmetic else.
#include <cmath>

#include "ops/gpu/element.h"
#include "ops/gpu/fp8_bits.h"

namespace tprimat::engine::gpu {

__device__ inline float float_of_bits(uint32_t bits) {
#if defined(TPRIMAT_GPU_HOST)
  return std::bit_cast<float>(bits);
#else
  return __uint_as_float(bits);
#endif
}

// Adding and taking away 1.5·2^(23−m)·2^e leaves a value of [2^e, 2^(e+1)) rounded to m bits after the leading one, as
// the float unit rounds; below the least exponent the spacing stays.
template <Fp8Format format>
__device__ inline float fp8_nearest_by_arithmetic(float value) {
  constexpr int mantissa_bits = format == Fp8Format::e4m3 ? 3 : 2,
                least_exponent = format == Fp8Format::e4m3 ? -6 : -14;
  constexpr float largest = static_cast<float>(fp8_largest(format));
  constexpr uint32_t least = static_cast<uint32_t>(127 + least_exponent) << 23;
  const float magnitude = fabsf(value), size = magnitude > largest ? largest : magnitude;  // keeps NaN
  uint32_t exponent = bits_of_float(size) & 0x7F800000u;
  exponent = exponent > least ? exponent : least;
  const float magic = 1.5f * float_of_bits(exponent + (static_cast<uint32_t>(23 - mantissa_bits) << 23));
  return copysignf(size + magic - magic, value);
}

template <Fp8Format format>
__device__ inline float fp8_nearest(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  constexpr __nv_fp8_interpretation_t kind = format == Fp8Format::e4m3 ? __NV_E4M3 : __NV_E5M2;
  const __half_raw half = __nv_cvt_fp8_to_halfraw(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, kind), kind);
  return __half2float(__half(half));
#else
  return fp8_nearest_by_arithmetic<format>(value);
#endif
}

}  // namespace tprimat::engine::gpu
