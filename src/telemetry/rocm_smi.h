#pragma once

#include <memory>

#include "telemetry/gpu_library.h"

namespace tprimat {

// ROCm System Management Interface. Of AMD's two libraries the one whose calls pass plain numbers, so that it does not
// depend on the layout of structs that changes between releases. Null when the library is not there, cannot start or
// sees no GPU.
std::unique_ptr<GpuLibrary> open_rocm_smi(const char* library = nullptr);  // null: the usual names and places

}  // namespace tprimat
