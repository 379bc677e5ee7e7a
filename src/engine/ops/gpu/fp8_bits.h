#pragma once

// Numbers of 8 bits, and inside kernels how they are made.
#include <cmath>

#include "device/gpu/runtime.h"
#include "ops/fp8.h"

#if defined(TPRIMAT_GPU_CUDA) && defined(__CUDACC__)
#include <cuda_fp8.h>
#endif
#if defined(TPRIMAT_GPU_HOST)
#include <bit>
#endif

namespace tprimat::engine::gpu {

// Whether the GPU's units multiply AMD's FNUZ formats (CDNA3) in place of those that everybody has agreed on since. One
// more exponent is left in them, so the same bits mean half the value, except for −0 (there NaN) and NaN.
bool fp8_is_fnuz();

#if defined(TPRIMAT_GPU_HOST) || defined(__CUDACC__) || defined(__HIPCC__)

inline constexpr float k_greatest_float = 3.4028234663852886e38f;

// As fp8_round in ops/fp8.h has it.
__device__ inline float fp8_scale_of(float amax, Fp8Format format) {
  if (!(amax > 0) || amax > k_greatest_float) return 1;
  const float scale = (format == Fp8Format::e4m3 ? 448.0f : 57344.0f) / amax;
  return scale <= k_greatest_float ? scale : k_greatest_float;
}

__device__ inline uint32_t bits_of_float(float value) {
#if defined(TPRIMAT_GPU_HOST)
  return std::bit_cast<uint32_t>(value);
#else
  return __float_as_uint(value);
#endif
}

// To nearest, ties to even, saturated; NaN is 0x7F. In whole numbers, for GPUs without an instruction for it.
__device__ inline uint8_t fp8_byte_of(float value, Fp8Format format) {
  const int mantissa_bits = format == Fp8Format::e4m3 ? 3 : 2;
  const uint32_t bits = bits_of_float(value), sign = (bits >> 24) & 0x80u, size = bits & 0x7FFFFFFFu;
  if (size > 0x7F800000u) return 0x7F;
  const uint32_t greatest = format == Fp8Format::e4m3 ? 0x43E00000u : 0x47600000u;  // 448, 57344
  const int least_exponent = format == Fp8Format::e4m3 ? -6 : -14;                  // of a number with a leading 1
  if (size >= greatest) return static_cast<uint8_t>(sign | (format == Fp8Format::e4m3 ? 0x7Eu : 0x7Bu));
  const int exponent = static_cast<int>(size >> 23) - 127;
  const int lost = 23 - mantissa_bits + (exponent < least_exponent ? least_exponent - exponent : 0);
  if (lost > 24) return static_cast<uint8_t>(sign);
  const uint32_t mantissa = (size & 0x7FFFFFu) | (exponent > -127 ? 0x800000u : 0u);
  const uint32_t kept = mantissa >> lost, rest = mantissa & ((1u << lost) - 1), half = 1u << (lost - 1);
  const uint32_t rounded = kept + (rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u);
  // The leading 1 of `rounded` adds one to the exponent field, so that a carry of rounding goes where it should.
  const uint32_t field = exponent < least_exponent ? 0u : static_cast<uint32_t>(exponent - least_exponent);
  return static_cast<uint8_t>(sign | ((field << mantissa_bits) + rounded));
}

__device__ inline uint8_t fnuz_byte(uint8_t byte) {
  if ((byte & 0x7Fu) == 0) return 0;
  return (byte & 0x7Fu) == 0x7F ? 0x80 : byte;
}

// Two neighbours, to an even address.
__device__ inline void store_fp8_pair(float first, float second, Fp8Format format, bool fnuz, uint8_t* to) {
#if defined(TPRIMAT_GPU_CUDA) && defined(__CUDACC__)
  const __nv_fp8x2_storage_t pair = __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE,
                                                             format == Fp8Format::e4m3 ? __NV_E4M3 : __NV_E5M2);
  to[0] = static_cast<uint8_t>(pair & 0xFFu);
  to[1] = static_cast<uint8_t>(pair >> 8);
#else
  to[0] = fp8_byte_of(first, format);
  to[1] = fp8_byte_of(second, format);
#endif
  if (!fnuz) return;
  to[0] = fnuz_byte(to[0]);
  to[1] = fnuz_byte(to[1]);
}

// The nearest value of an 8-bit format: by the GPU's own conversion where it has one, by float arithmetic else.
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

#endif

}  // namespace tprimat::engine::gpu
