#pragma once

#include <memory>

#include "telemetry/gpu_library.h"

namespace tprimat {

// NVIDIA Management Library. Null when the library is not there, cannot start or sees no GPU.
std::unique_ptr<GpuLibrary> open_nvml(const char* library = "libnvidia-ml.so.1");

}  // namespace tprimat
