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

}  // namespace tprimat::engine::gpu
