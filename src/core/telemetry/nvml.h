#pragma once

#include "telemetry/gpu_library.h"

namespace tprimat {

// NVIDIA Management Library. No library where it is not installed, cannot start or sees no GPU.
OpenedLibrary open_nvml(const char* library = "libnvidia-ml.so.1");

}  // namespace tprimat
