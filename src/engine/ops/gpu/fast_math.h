#pragma once

#include <cmath>

#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu {

// 2^x to about two units in the last place; numbers too small for a normal float become 0.
__device__ inline float fast_exp2(float x) {
#if defined(TPRIMAT_GPU_CUDA)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#elif defined(__HIP_DEVICE_COMPILE__) && __has_builtin(__builtin_amdgcn_exp2f)
  return __builtin_amdgcn_exp2f(x);
#else
  return exp2f(x);
#endif
}

// 1/x to one unit in the last place; 0 beyond 2^126.
__device__ inline float fast_reciprocal(float x) {
#if defined(TPRIMAT_GPU_CUDA)
  return __fdividef(1.0f, x);
#else
  return 1.0f / x;
#endif
}

__device__ inline float sigmoid(float z) { return fast_reciprocal(1.0f + expf(-z)); }

}  // namespace tprimat::engine::gpu
