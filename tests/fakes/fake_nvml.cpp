// Two GPUs that answer as NVML would. The second lacks the energy counter and fails to give its power, as older boards
// do.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
constexpr int k_success = 0, k_not_supported = 3;
int device_number(const void* device) { return static_cast<int>(reinterpret_cast<intptr_t>(device)); }
}  // namespace

extern "C" {

int nvmlInit_v2() { return k_success; }
int nvmlShutdown() { return k_success; }
int nvmlSystemGetDriverVersion(char* text, unsigned int size) {
  std::snprintf(text, size, "550.54.15");
  return k_success;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 12040;
  return k_success;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return k_success;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<intptr_t>(index + 1));
  return k_success;
}
int nvmlDeviceGetName(void* device, char* text, unsigned int size) {
  std::snprintf(text, size, device_number(device) == 1 ? "NVIDIA H100 80GB HBM3" : "NVIDIA L4");
  return k_success;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  const unsigned long long total_free_used[] = {80'000'000'000ULL, 60'000'000'000ULL, 20'000'000'000ULL};
  std::memcpy(memory, total_free_used, sizeof total_free_used);
  return k_success;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  *milliwatts = 412'500;
  return device_number(device) == 1 ? k_success : k_not_supported;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned int* milliwatts) {
  *milliwatts = 700'000;
  return k_success;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  *millijoules = 123'456'000ULL;
  return device_number(device) == 1 ? k_success : k_not_supported;
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned int* celsius) {
  *celsius = 61;
  return sensor == 0 ? k_success : k_not_supported;
}
int nvmlDeviceGetClockInfo(void*, int kind, unsigned int* megahertz) {
  *megahertz = kind == 1 ? 1980 : 0;
  return k_success;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned int* gpu_memory) {
  gpu_memory[0] = 97;
  gpu_memory[1] = 40;
  return k_success;
}
// Processes in $FAKE_GPU_PROCESSES, numbers with spaces between them: each holds 3 GB of the first GPU. The second one
// does not know how much process 4711 holds, and has more processes than a caller may have room for.
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, void* list) {
  struct Process {
    unsigned int process;
    unsigned long long memory;
    unsigned int gpu_instance, compute_instance;
  };
  constexpr int k_insufficient_size = 7;
  const unsigned int room = *count;
  auto* processes = static_cast<Process*>(list);
  if (device_number(device) == 2) {
    constexpr unsigned int k_many = 100;
    *count = k_many;
    if (room < k_many) return k_insufficient_size;
    for (unsigned int i = 0; i < k_many; ++i) processes[i] = {4711 + i, i == 0 ? ~0ULL : 1'000'000ULL, ~0U, ~0U};
    return k_success;
  }
  const char* text = std::getenv("FAKE_GPU_PROCESSES");
  *count = 0;
  while (text != nullptr && *text != '\0' && *count < room) {
    char* end = nullptr;
    processes[*count] = {static_cast<unsigned int>(std::strtoul(text, &end, 10)), 3'000'000'000ULL, ~0U, ~0U};
    if (end == text) break;
    text = end;
    ++*count;
  }
  return k_success;
}
// nvmlDeviceGetNumGpuCores is left out: libraries older than 11.2 do not have it.
}
