#include "telemetry/gpu_libraries.h"

#include <utility>

#include "telemetry/amd_smi.h"
#include "telemetry/nvml.h"
#include "telemetry/rocm_smi.h"

namespace tprimat {
namespace {

// Whether it can be used.
bool keep_library(OpenedLibrary opened, GpuLibraries& found) {
  if (!opened.refusal.empty()) found.refused.push_back(std::move(opened.refusal));
  if (!opened.library) return false;
  found.usable.push_back(std::move(opened.library));
  return true;
}

}  // namespace

GpuLibraries find_gpu_libraries() {
  GpuLibraries found;
  keep_library(open_nvml(), found);
  if (!keep_library(open_amd_smi(), found)) keep_library(open_rocm_smi(), found);
  return found;
}

std::vector<std::shared_ptr<const GpuLibrary>> open_gpu_libraries() { return find_gpu_libraries().usable; }

}  // namespace tprimat
