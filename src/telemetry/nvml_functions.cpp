#include "telemetry/nvml_functions.h"

#include "telemetry/throttle.h"

namespace tprimat {
namespace nvml {

Functions find_functions(const SharedLibrary& library) {
  const auto bind = [&]<class Result, class... Arguments>(Result (*&function)(Arguments...), const char* symbol) {
    function = library.find<Result(Arguments...)>(symbol);
  };
  Functions found{};
  bind(found.init, "nvmlInit_v2");
  bind(found.shutdown, "nvmlShutdown");
  bind(found.driver_version, "nvmlSystemGetDriverVersion");
  bind(found.cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
  bind(found.count, "nvmlDeviceGetCount_v2");
  bind(found.handle, "nvmlDeviceGetHandleByIndex_v2");
  bind(found.name, "nvmlDeviceGetName");
  bind(found.memory, "nvmlDeviceGetMemoryInfo");
  bind(found.power, "nvmlDeviceGetPowerUsage");
  bind(found.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  bind(found.energy, "nvmlDeviceGetTotalEnergyConsumption");
  bind(found.temperature, "nvmlDeviceGetTemperature");
  bind(found.threshold, "nvmlDeviceGetTemperatureThreshold");
  bind(found.clock, "nvmlDeviceGetClockInfo");
  bind(found.max_clock, "nvmlDeviceGetMaxClockInfo");
  bind(found.utilization, "nvmlDeviceGetUtilizationRates");
  bind(found.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  if (found.throttle_reasons == nullptr)  // its name since driver 535
    bind(found.throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  bind(found.cores, "nvmlDeviceGetNumGpuCores");
  bind(found.ecc_mode, "nvmlDeviceGetEccMode");
  bind(found.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  bind(found.persistence, "nvmlDeviceGetPersistenceMode");
  bind(found.mig_mode, "nvmlDeviceGetMigMode");
  bind(found.pcie_lanes, "nvmlDeviceGetCurrPcieLinkWidth");
  bind(found.max_pcie_lanes, "nvmlDeviceGetMaxPcieLinkWidth");
  bind(found.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (found.processes == nullptr) bind(found.processes, "nvmlDeviceGetComputeRunningProcesses_v2");  // CUDA 11
  return found;
}

std::string_view describe_status(Status status) {
  switch (status) {
    case 2: return "the library refuses the question";
    case 3: return "not supported by this device";
    case 4: return "no permission";
    case 6: return "the device is not found";
    case 9: return "the driver is not loaded";
    case 10: return "the driver did not answer in time";
    case 12: return "the library is incomplete";
    case 15: return "the GPU is lost";
    case 16: return "the GPU needs a reset";
    case 17: return "the operating system blocks the GPU";
    case 18: return "the driver and its library are of different versions";
    case 20: return "not enough memory";
    default: return "the library reports an error";
  }
}

uint32_t to_throttle(unsigned long long reasons) {
  // Bit 0 is an idle GPU: nothing is held down.
  constexpr unsigned long long k_clock_set = 0x2 | 0x10 | 0x100;  // application clocks, sync boost, display clock
  constexpr unsigned long long k_power_cap = 0x4, k_thermal = 0x20 | 0x40, k_hardware = 0x8 | 0x80;
  uint32_t throttle = 0;
  if ((reasons & k_power_cap) != 0) throttle |= k_throttle_power;
  if ((reasons & k_thermal) != 0) throttle |= k_throttle_thermal;
  if ((reasons & k_hardware) != 0) throttle |= k_throttle_hardware;
  if ((reasons & k_clock_set) != 0) throttle |= k_throttle_set;
  return throttle;
}

}  // namespace nvml
}  // namespace tprimat
