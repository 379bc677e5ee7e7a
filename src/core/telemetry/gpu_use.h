#pragma once

#include <limits>
#include <vector>

#include "base/environment.h"
#include "telemetry/gpu_library.h"

namespace tprimat {

// Which GPUs of a machine a program works on.
struct GpuUse {
  Platform platform = Platform::nvd;
  EnvironmentReader variable;                           // of the program
  int64_t count = std::numeric_limits<int64_t>::max();  // the first so many of those that it sees
};

// Those of a library's devices, in the program's own order. CUDA_VISIBLE_DEVICES says which of NVIDIA's a program sees
// (CUDA C++ Programming Guide, "CUDA Environment Variables"); ROCR_VISIBLE_DEVICES which of AMD's, and of these again
// HIP_VISIBLE_DEVICES or else CUDA_VISIBLE_DEVICES (ROCm documentation, "GPU isolation techniques"). Numbers count the
// devices that answer in the library's order, which is the program's where all are of one kind or CUDA_DEVICE_ORDER is
// PCI_BUS_ID; from the first that no device has on nothing is seen. A list that names devices otherwise ("GPU-8932f9")
// is overlooked.
std::vector<GpuFacts> used_gpus(std::vector<GpuFacts> devices, const GpuUse& use);

}  // namespace tprimat
