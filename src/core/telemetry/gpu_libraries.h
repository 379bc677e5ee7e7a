#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "telemetry/gpu_library.h"

namespace tprimat {

// The vendor libraries that this machine has and that see at least one GPU: NVML; for AMD's GPUs AMD SMI, else ROCm
// SMI.
struct GpuLibraries {
  std::vector<std::shared_ptr<const GpuLibrary>> usable;
  std::vector<std::string> refused;  // installed libraries that cannot be used, and why
};
GpuLibraries find_gpu_libraries();
std::vector<std::shared_ptr<const GpuLibrary>> open_gpu_libraries();  // the usable ones

// NVIDIA Management Library. No library where it is not installed, cannot start or sees no GPU.
OpenedLibrary open_nvml(const char* library = "libnvidia-ml.so.1");

// AMD System Management Interface, which AMD names the successor of ROCm SMI. Its structs change with its version, so a
// version that we do not know is refused. By default the usual places are tried.
OpenedLibrary open_amd_smi(const char* library = nullptr);

// The kernel's list of the processes that hold memory of a device, in files "<process>/vram_<device>": the layout of
// the library's list changes with every version.
std::vector<GpuHolder> read_kfd_holders(const std::filesystem::path& processes, uint64_t device);

// The compute units of a device as the kernel's driver lists them, in "<node>/gpu_id" and "<node>/properties"
// (simd_count / simd_per_cu). In a partitioned GPU a device is a partition.
std::optional<int64_t> read_kfd_compute_units(const std::filesystem::path& nodes, uint64_t device);

// ROCm System Management Interface (AMD), for machines that do not have its successor, AMD SMI. No library where it is
// not installed, cannot start or sees no GPU. By default the usual places are tried.
OpenedLibrary open_rocm_smi(const char* library = nullptr);

// A process that computes on a GPU, or at least keeps memory of it.
struct GpuProcess {
  std::string library;  // "nvml", "amd_smi", "rocm_smi"
  Platform platform = Platform::nvd;
  int64_t device = 0;
  int64_t process = 0;                 // its id; inside a container the driver may report the host's id
  std::string name;                    // as /proc has it; empty where no such process is seen from here
  std::optional<double> memory_bytes;  // of the GPU
  bool operator==(const GpuProcess&) const = default;
};

// The processes that hold each GPU now, by library, device and process. None where the driver does not list them.
// `proc` is the folder that names are read from, for tests.
std::vector<GpuProcess> gpu_processes(const std::vector<std::shared_ptr<const GpuLibrary>>& libraries,
                                      const std::filesystem::path& proc = "/proc");

// "process 4711 (python3) on GPU 0, 12.3 GB"
std::string describe(const GpuProcess& process);

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
