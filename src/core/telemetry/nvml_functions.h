#pragma once

#include <string_view>

#include "telemetry/gpu_library.h"

// The few declarations we need of nvml.h, as the NVML API reference gives them. Zero means success everywhere.
namespace tprimat {
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

struct Functions {
  Status (*init)();
  Status (*shutdown)();
  Status (*driver_version)(char*, unsigned int);
  Status (*cuda_version)(int*);
  Status (*count)(unsigned int*);
  Status (*handle)(unsigned int, Device*);
  Status (*name)(Device, char*, unsigned int);
  Status (*memory)(Device, Memory*);
  Status (*power)(Device, unsigned int*);             // mW
  Status (*power_limit)(Device, unsigned int*);       // mW
  Status (*energy)(Device, unsigned long long*);      // mJ since the driver was loaded
  Status (*temperature)(Device, int, unsigned int*);  // degrees Celsius
  Status (*threshold)(Device, int, unsigned int*);    // degrees Celsius
  Status (*clock)(Device, int, unsigned int*);        // MHz
  Status (*max_clock)(Device, int, unsigned int*);    // MHz
  Status (*utilization)(Device, Utilization*);
  Status (*throttle_reasons)(Device, unsigned long long*);
  Status (*cores)(Device, unsigned int*);
  Status (*ecc_mode)(Device, int* current, int* pending);
  Status (*ecc_errors)(Device, int kind, int counter, unsigned long long*);
  Status (*persistence)(Device, int*);
  Status (*mig_mode)(Device, unsigned int* current, unsigned int* pending);
  Status (*pcie_lanes)(Device, unsigned int*);
  Status (*max_pcie_lanes)(Device, unsigned int*);
  Status (*processes)(Device, unsigned int*, Process*);  // count: capacity, then how many there are
};

// Calls visit(function, symbol) for each of them; a function of several symbols is the first that the library has.
template <class Visit>
void for_each_function(Functions& call, Visit&& visit) {
  visit(call.init, "nvmlInit_v2");
  visit(call.shutdown, "nvmlShutdown");
  visit(call.driver_version, "nvmlSystemGetDriverVersion");
  visit(call.cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
  visit(call.count, "nvmlDeviceGetCount_v2");
  visit(call.handle, "nvmlDeviceGetHandleByIndex_v2");
  visit(call.name, "nvmlDeviceGetName");
  visit(call.memory, "nvmlDeviceGetMemoryInfo");
  visit(call.power, "nvmlDeviceGetPowerUsage");
  visit(call.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  visit(call.energy, "nvmlDeviceGetTotalEnergyConsumption");
  visit(call.temperature, "nvmlDeviceGetTemperature");
  visit(call.threshold, "nvmlDeviceGetTemperatureThreshold");
  visit(call.clock, "nvmlDeviceGetClockInfo");
  visit(call.max_clock, "nvmlDeviceGetMaxClockInfo");
  visit(call.utilization, "nvmlDeviceGetUtilizationRates");
  visit(call.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  visit(call.throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons");  // its name since driver 535
  visit(call.cores, "nvmlDeviceGetNumGpuCores");
  visit(call.ecc_mode, "nvmlDeviceGetEccMode");
  visit(call.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  visit(call.persistence, "nvmlDeviceGetPersistenceMode");
  visit(call.mig_mode, "nvmlDeviceGetMigMode");
  visit(call.pcie_lanes, "nvmlDeviceGetCurrPcieLinkWidth");
  visit(call.max_pcie_lanes, "nvmlDeviceGetMaxPcieLinkWidth");
  visit(call.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  visit(call.processes, "nvmlDeviceGetComputeRunningProcesses_v2");  // CUDA 11
}

// Null for what the library lacks.
Functions find_functions(const SharedLibrary& library);

// "not supported by this device"
std::string_view describe_status(Status status);

// ThrottleReason bits of the mask that throttle_reasons gives.
uint32_t to_throttle(unsigned long long reasons);

}  // namespace nvml
}  // namespace tprimat
