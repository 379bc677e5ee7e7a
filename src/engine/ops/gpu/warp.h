#pragma once

// Threads of a warp (NVIDIA: 32, AMD: a wave of 64) and of a block together. Vendors' intrinsics stay in this file.
#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu {

#if defined(TPRIMAT_GPU_HOST)
inline constexpr int k_warp = TPRIMAT_GPU_HOST_WARP;
#elif defined(TPRIMAT_GPU_HIP)
inline constexpr int k_warp = 64;  // gfx9: CDNA
#else
inline constexpr int k_warp = 32;
#endif

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % k_warp; }
__device__ inline int warp_of_thread() { return static_cast<int>(threadIdx.x) / k_warp; }

__device__ inline void sync_warp() {
#if defined(TPRIMAT_GPU_HOST)
  host::sync_warp();
#elif defined(TPRIMAT_GPU_CUDA)
  __syncwarp();
#else  // a wave runs in step; the compiler, too, shall keep what is written before and read after in their order
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
#endif
}

// The value of the thread whose lane differs in the bits of `mask`.
template <class V>
__device__ inline V shuffle_xor(V value, int mask) {
#if defined(TPRIMAT_GPU_HOST)
  V taken;
  host::exchange(&value, sizeof value, host::lane() ^ mask, &taken);
  return taken;
#elif defined(TPRIMAT_GPU_CUDA)
  return __shfl_xor_sync(0xffffffffu, value, mask);
#else
  return __shfl_xor(value, mask);
#endif
}

// The value of the thread at `lane`.
template <class V>
__device__ inline V shuffle_from(V value, int lane) {
#if defined(TPRIMAT_GPU_HOST)
  V taken;
  host::exchange(&value, sizeof value, lane, &taken);
  return taken;
#elif defined(TPRIMAT_GPU_CUDA)
  return __shfl_sync(0xffffffffu, value, lane);
#else
  return __shfl(value, lane);
#endif
}

// Over `width` neighbouring lanes (a power of two up to k_warp); every lane gets it, in an order that never changes.
template <int width = k_warp, class V>
__device__ inline V warp_sum(V value) {
  TPRIMAT_UNROLL
  for (int mask = width / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

// The greater of the two; NaN where one is NaN.
__device__ inline float greater_or_nan(float a, float b) { return a > b || a != a ? a : b; }

template <int width = k_warp>
__device__ inline float warp_max(float value) {
  TPRIMAT_UNROLL
  for (int mask = width / 2; mask > 0; mask /= 2) value = greater_or_nan(value, shuffle_xor(value, mask));
  return value;
}

// Over all threads of a block of one dimension, a multiple of k_warp and at most k_warp warps of them; every thread
// gets it. All threads call it.
template <class V>
__device__ inline V block_sum(V value) {
  __shared__ V parts[k_warp];
  const int warps = static_cast<int>(blockDim.x) / k_warp;
  value = warp_sum(value);
  if (warps == 1) return value;
  __syncthreads();  // a sum before this one may still be read
  if (lane_of_thread() == 0) parts[warp_of_thread()] = value;
  __syncthreads();
  return warp_sum(lane_of_thread() < warps ? parts[lane_of_thread()] : V(0));
}

__device__ inline float block_max(float value) {
  __shared__ float parts[k_warp];
  const int warps = static_cast<int>(blockDim.x) / k_warp;
  value = warp_max(value);
  if (warps == 1) return value;
  __syncthreads();
  if (lane_of_thread() == 0) parts[warp_of_thread()] = value;
  __syncthreads();
  return warp_max(parts[lane_of_thread() < warps ? lane_of_thread() : 0]);
}

template <class V>
__device__ inline void atomic_add(V* target, V value) {
#if defined(TPRIMAT_GPU_HOST)
  *target += value;
#else
  atomicAdd(target, value);
#endif
}

}  // namespace tprimat::engine::gpu
