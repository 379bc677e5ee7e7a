#pragma once

#include <memory>
#include <string>
#include <vector>

#include "telemetry/gpu_library.h"

namespace tprimat {

// The vendor libraries that this machine has and that see at least one GPU: NVML; for AMD's GPUs AMD SMI, else ROCm
// SMI.
struct GpuLibraries {
  std::vector<std::shared_ptr<const GpuLibrary>> usable;
  std::vector<std::string> refused;  // those that are there and could not be used, and why
};
GpuLibraries find_gpu_libraries();
std::vector<std::shared_ptr<const GpuLibrary>> open_gpu_libraries();  // the usable ones

}  // namespace tprimat
