#pragma once

#include <cmath>

#include "ops/gpu/chunk.h"

namespace tprimat::engine::gpu {

__device__ inline float sigmoid(float z) { return fast_reciprocal(1.0f + expf(-z)); }

}  // namespace tprimat::engine::gpu
