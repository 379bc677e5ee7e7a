#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/gpu_library.h"

namespace tprimat {

// A process that computes on a GPU, or at least keeps memory of it.
struct GpuProcess {
  std::string library;  // "nvml", "amd_smi", "rocm_smi"
  Platform platform = Platform::nvd;
  int64_t device = 0;
  int64_t process = 0;                 // its number; inside a container the driver may give the number outside of it
  std::string name;                    // as /proc has it; empty where no such process is seen from here
  std::optional<double> memory_bytes;  // of the GPU
  bool operator==(const GpuProcess&) const = default;
};

// Which processes hold which GPU now, by library, device and process. Where a driver does not tell, there are none.
// `proc` is the folder that names are read from, for tests.
std::vector<GpuProcess> gpu_processes(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries,
                                      const std::filesystem::path& proc = "/proc");

// "process 4711 (python3) on GPU 0, 12.3 GB"
std::string describe(const GpuProcess& process);

}  // namespace tprimat
