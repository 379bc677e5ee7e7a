#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "telemetry/gpu_library.h"

namespace tprimat {

// AMD System Management Interface, which AMD names the successor of ROCm SMI. Its structs change with its version, so a
// version that we do not know is refused. By default the usual places are tried.
OpenedLibrary open_amd_smi(const char* library = nullptr);

// The kernel's own list of who holds memory of a device, in files "<process>/vram_<device>": the library's list has a
// layout of its own in every version.
std::vector<GpuHolder> read_kfd_holders(const std::filesystem::path& processes, uint64_t device);

}  // namespace tprimat
