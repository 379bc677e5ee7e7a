#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tprimat {

// The few declarations we need of nvml.h, as the NVML API reference gives them. Zero means success everywhere.

namespace nvml {

using Device = void*;
using Status = int;
struct Memory {
  unsigned long long total, free, used;  // bytes
};
struct Utilization {
  unsigned int gpu, memory;  // percent
};
struct Process {
  unsigned int process;
  unsigned long long memory;  // bytes; k_unknown_memory where the driver does not say
  unsigned int gpu_instance, compute_instance;
};
constexpr unsigned long long k_unknown_memory = ~0ULL;
constexpr int k_insufficient_size = 7;
constexpr int k_temperature_gpu = 0, k_threshold_slowdown = 1;
constexpr int k_clock_sm = 1, k_clock_memory = 2;
constexpr int k_error_uncorrected = 1, k_counter_volatile = 0;

// Calls of a `Library`, which finds them by their symbols; null for a symbol that it lacks.
template <class Library>
struct Functions {
  const Library& library;
  Status (*init)() = library.find("nvmlInit_v2");
  Status (*shutdown)() = library.find("nvmlShutdown");
  Status (*driver_version)(char*, unsigned int) = library.find("nvmlSystemGetDriverVersion");
  Status (*cuda_version)(int*) = library.find("nvmlSystemGetCudaDriverVersion_v2");
  Status (*count)(unsigned int*) = library.find("nvmlDeviceGetCount_v2");
  Status (*handle)(unsigned int, Device*) = library.find("nvmlDeviceGetHandleByIndex_v2");
  Status (*name)(Device, char*, unsigned int) = library.find("nvmlDeviceGetName");
  Status (*memory)(Device, Memory*) = library.find("nvmlDeviceGetMemoryInfo");
  Status (*power)(Device, unsigned int*) = library.find("nvmlDeviceGetPowerUsage");                // mW
  Status (*power_limit)(Device, unsigned int*) = library.find("nvmlDeviceGetEnforcedPowerLimit");  // mW
  // mJ since the driver was loaded.
  Status (*energy)(Device, unsigned long long*) = library.find("nvmlDeviceGetTotalEnergyConsumption");
  Status (*temperature)(Device, int, unsigned int*) = library.find("nvmlDeviceGetTemperature");  // degrees Celsius
  // Degrees Celsius.
  Status (*threshold)(Device, int, unsigned int*) = library.find("nvmlDeviceGetTemperatureThreshold");
  Status (*clock)(Device, int, unsigned int*) = library.find("nvmlDeviceGetClockInfo");         // MHz
  Status (*max_clock)(Device, int, unsigned int*) = library.find("nvmlDeviceGetMaxClockInfo");  // MHz
  Status (*utilization)(Device, Utilization*) = library.find("nvmlDeviceGetUtilizationRates");
  // The second is its name since driver 535.
  Status (*throttle_reasons)(Device, unsigned long long*) = library.find("nvmlDeviceGetCurrentClocksThrottleReasons",
                                                                         "nvmlDeviceGetCurrentClocksEventReasons");
  Status (*cores)(Device, unsigned int*) = library.find("nvmlDeviceGetNumGpuCores");
  Status (*capability)(Device, int* major, int* minor) = library.find("nvmlDeviceGetCudaComputeCapability");
  Status (*ecc_mode)(Device, int* current, int* pending) = library.find("nvmlDeviceGetEccMode");
  Status (*ecc_errors)(Device, int kind, int counter,
                       unsigned long long*) = library.find("nvmlDeviceGetTotalEccErrors");
  Status (*persistence)(Device, int*) = library.find("nvmlDeviceGetPersistenceMode");
  Status (*mig_mode)(Device, unsigned int* current, unsigned int* pending) = library.find("nvmlDeviceGetMigMode");
  Status (*pcie_lanes)(Device, unsigned int*) = library.find("nvmlDeviceGetCurrPcieLinkWidth");
  Status (*max_pcie_lanes)(Device, unsigned int*) = library.find("nvmlDeviceGetMaxPcieLinkWidth");
  // Since CUDA 12, or of CUDA 11; count: capacity, then how many there are.
  Status (*processes)(Device, unsigned int*, Process*) = library.find("nvmlDeviceGetComputeRunningProcesses_v3",
                                                                      "nvmlDeviceGetComputeRunningProcesses_v2");
};

// "not supported by this device"
std::string_view describe_status(Status status);

// CUDA cores of one SM of a compute capability, as Common/helper_cuda.h of NVIDIA's CUDA samples lists them. Nothing
// for a capability that is not in that list.
std::optional<int64_t> cores_per_sm(int major, int minor);

// ThrottleReason bits of the mask that throttle_reasons gives.
uint32_t to_throttle(unsigned long long reasons);

}  // namespace nvml

}  // namespace tprimat
