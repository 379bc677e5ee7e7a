#pragma once

#include "telemetry/gpu_library.h"

namespace tprimat {

// AMD System Management Interface, which AMD names the successor of ROCm SMI. Its structs change with its version, so a
// version that we do not know is refused. By default the usual places are tried.
OpenedLibrary open_amd_smi(const char* library = nullptr);

}  // namespace tprimat
