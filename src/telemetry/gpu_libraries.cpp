#include "telemetry/gpu_libraries.h"

#include "telemetry/nvml.h"
#include "telemetry/rocm_smi.h"

namespace tprimat {

std::vector<std::shared_ptr<const GpuLibrary>> open_gpu_libraries() {
  std::vector<std::shared_ptr<const GpuLibrary>> libraries;
  if (auto nvml = open_nvml()) libraries.push_back(std::move(nvml));
  if (auto rocm = open_rocm_smi()) libraries.push_back(std::move(rocm));
  return libraries;
}

}  // namespace tprimat
