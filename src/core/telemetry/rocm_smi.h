#pragma once

#include "telemetry/gpu_library.h"

namespace tprimat {

// ROCm System Management Interface (AMD), for machines that do not have its successor, AMD SMI. No library where it is
// not installed, cannot start or sees no GPU. By default the usual places are tried.
OpenedLibrary open_rocm_smi(const char* library = nullptr);

}  // namespace tprimat
