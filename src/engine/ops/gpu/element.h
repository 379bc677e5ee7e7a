#pragma once

// Number formats inside kernels, and 16 bytes of them at a time.
#include <initializer_list>

#include "device/element.h"
#include "device/gpu/runtime.h"

#if defined(TPRIMAT_GPU_CUDA)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#elif defined(TPRIMAT_GPU_HIP)
#include <hip/hip_fp16.h>
#endif

namespace tprimat::engine::gpu {

__device__ inline float load(float value) { return value; }
__device__ inline float load(bf16 value) {
#if defined(TPRIMAT_GPU_HOST)
  return to_float(value);
#else
  return __uint_as_float(static_cast<uint32_t>(value.bits) << 16);
#endif
}
__device__ inline float load(f16 value) {
#if defined(TPRIMAT_GPU_HOST)
  return to_float(value);
#else
  return __half2float(__ushort_as_half(value.bits));
#endif
}

// Round to nearest, ties to even.
template <class T>
__device__ inline T store(float value);
template <>
__device__ inline float store<float>(float value) {
  return value;
}
template <>
__device__ inline bf16 store<bf16>(float value) {
#if defined(TPRIMAT_GPU_CUDA)
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#elif defined(TPRIMAT_GPU_HIP)
  const uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
#else
  return to_bf16(value);
#endif
}
template <>
__device__ inline f16 store<f16>(float value) {
#if defined(TPRIMAT_GPU_HOST)
  return to_f16(value);
#else
  return {__half_as_ushort(__float2half_rn(value))};
#endif
}

// What one thread reads or writes at a time: 16 bytes.
template <class T>
struct alignas(16) Pack {
  static constexpr int k_size = 16 / sizeof(T);
  T values[k_size];
};
template <class T>
__device__ inline Pack<T> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <class T>
__device__ inline void store_pack(T* to, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(to) = pack;
}
// Whether every pointer and stride (in elements of T) allows whole packs.
template <class T>
bool fits_packs(std::initializer_list<const void*> pointers, std::initializer_list<int64_t> strides) {
  for (const void* pointer : pointers)
    if (reinterpret_cast<uintptr_t>(pointer) % 16 != 0) return false;
  for (const int64_t stride : strides)
    if (stride % Pack<T>::k_size != 0) return false;
  return true;
}

}  // namespace tprimat::engine::gpu
