#pragma once

#include <memory>
#include <vector>

#include "telemetry/gpu_library.h"

namespace tprimat {

// Every vendor library that this machine has and that sees at least one GPU.
std::vector<std::shared_ptr<const GpuLibrary>> open_gpu_libraries();

}  // namespace tprimat
