#pragma once

#include "ops/gpu/module.h"

namespace tprimat {

// Whose GPUs; `host` runs the kernels on the processor, slowly, for tests.
enum class GpuVendor { nvd, amd, host };

// Loaded when it is first asked for. Throws Error (missing_component) where the module is not built, lacks a library or
// belongs to another program, and where this process sees no GPU.
const GpuModule& load_gpu_module(GpuVendor vendor);

}  // namespace tprimat
