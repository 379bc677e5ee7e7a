#pragma once

#include "gpu_module/gpu_module.h"

namespace tprimat::engine {

// Whose GPUs; `host` runs the kernels on the processor, slowly, for tests.
enum class GpuVendor { nvd, amd, host };

// The module where it stands beside the trainer, whether or not this process sees a GPU; nothing where it was not
// built.
const GpuModule* find_gpu_module(GpuVendor vendor);

// Loaded when it is first asked for. Throws Error (missing_component) where the module is not built, lacks a library or
// belongs to another program, and where this process sees no GPU.
const GpuModule& load_gpu_module(GpuVendor vendor);

}  // namespace tprimat::engine
