// Two GPUs that answer as NVML would. The second lacks the energy counter and fails to give its power, as older boards
// do. FAKE_GPU_LIES (lies.h) makes them lie; compiled with FAKE_BARE, the library has the functions of its first days
// only.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lies.h"

namespace {
constexpr int k_success = 0, k_invalid = 2, k_not_supported = 3, k_driver_not_loaded = 9, k_lost = 15;
constexpr double k_watts = 412.5;
int device_number(const void* device) { return static_cast<int>(reinterpret_cast<intptr_t>(device)); }

// What every question about a device answers first.
int state_of(const void* device) {
  const int number = device_number(device);
  if (number < 1) return k_invalid;
  if (fake::is_lost(number)) return k_lost;
  return fake::lie("not_supported") != 0 ? k_not_supported : k_success;
}
bool is_older(const void* device) { return device_number(device) == 2 && std::getenv("FAKE_GPU_COUNT") == nullptr; }
}  // namespace

#define ANSWER(device, place, value)                                        \
  if (const int state = state_of(device); state != k_success) return state; \
  *(place) = (value);                                                       \
  return k_success

extern "C" {

int nvmlInit_v2() {
  fake::restart();
  return fake::lie("init_fails") != 0 ? k_driver_not_loaded : k_success;
}
int nvmlShutdown() { return k_success; }
int nvmlSystemGetDriverVersion(char* text, unsigned int size) {
  std::snprintf(text, size, "550.54.15");
  return k_success;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = fake::device_count(2);
  return k_success;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  if (fake::lie("first_hidden") != 0 && index == 0) return k_lost;
  *device = reinterpret_cast<void*>(static_cast<intptr_t>(index + 1));
  return k_success;
}
int nvmlDeviceGetName(void* device, char* text, unsigned int size) {
  std::snprintf(text, size, "%s", is_older(device) ? "NVIDIA L4" : fake::device_name("NVIDIA H100 80GB HBM3"));
  return k_success;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  if (const int state = state_of(device); state != k_success) return state;
  const unsigned long long total = fake::device_memory(80'000'000'000ULL),
                           used = fake::lie("memory_over") != 0 ? 2 * total : total / 4;
  const unsigned long long total_free_used[] = {total, total - total / 4, used};
  std::memcpy(memory, total_free_used, sizeof total_free_used);
  return k_success;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  if (is_older(device)) return k_not_supported;
  ++fake::power_readings;
  ANSWER(device, milliwatts,
         fake::lie("power_absurd") != 0 ? 1U << 31
         : fake::lie("power_zero") != 0 ? 0U
                                        : static_cast<unsigned>(k_watts * 1e3));
}
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned int* celsius) {
  if (sensor != 0) return k_not_supported;
  ANSWER(device, celsius, fake::lie("temperature_255") != 0 ? 255 : fake::lie("temperature_zero") != 0 ? 0 : 61);
}
int nvmlDeviceGetClockInfo(void* device, int kind, unsigned int* megahertz) {
  ANSWER(device, megahertz, fake::lie("clock_absurd") != 0 ? 0xffffffffU : kind == 1 ? 1980 : kind == 2 ? 2619 : 0);
}

#ifndef FAKE_BARE
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 12040;
  return k_success;
}
int nvmlDeviceGetNumGpuCores(void* device, unsigned int* cores) {
  ANSWER(device, cores, is_older(device) ? 7424 : 16896);
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *minor = is_older(device) ? 9 : 0;
  ANSWER(device, major, is_older(device) ? 8 : 9);
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned int* milliwatts) { ANSWER(device, milliwatts, 700'000); }
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (is_older(device)) return k_not_supported;
  ANSWER(device, millijoules,
         fake::lie("energy_absurd") != 0 ? ~0ULL
                                         : static_cast<unsigned long long>(fake::joules(123'456.0, k_watts) * 1e3));
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned int* gpu_memory) {
  gpu_memory[1] = 40;
  ANSWER(device, gpu_memory, fake::lie("utilisation_over") != 0 ? 250 : 97);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  ANSWER(device, reasons, fake::lie("hot") != 0 ? 0x48 : 0x4);  // hardware thermal slowdown, or the power cap
}
int nvmlDeviceGetTemperatureThreshold(void* device, int kind, unsigned int* celsius) {
  ANSWER(device, celsius, kind == 1 ? 89U : 95U);
}
int nvmlDeviceGetMaxClockInfo(void* device, int kind, unsigned int* megahertz) {
  ANSWER(device, megahertz, kind == 1 ? 1980U : 2619U);
}
int nvmlDeviceGetEccMode(void* device, int* now, int* pending) {
  *pending = 1;
  ANSWER(device, now, fake::lie("ecc_off") != 0 ? 0 : 1);
}
int nvmlDeviceGetTotalEccErrors(void* device, int kind, int counter, unsigned long long* errors) {
  if (kind != 1 || counter != 0) return k_invalid;
  ANSWER(device, errors, fake::lie("ecc_errors") != 0 ? 3ULL : 0ULL);
}
int nvmlDeviceGetPersistenceMode(void* device, int* mode) {
  ANSWER(device, mode, fake::lie("no_persistence") != 0 ? 0 : 1);
}
int nvmlDeviceGetMigMode(void* device, unsigned int* now, unsigned int* pending) {
  *pending = 0;
  ANSWER(device, now, fake::lie("mig") != 0 ? 1U : 0U);
}
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned int* lanes) {
  ANSWER(device, lanes, fake::lie("narrow_link") != 0 ? 4U : 16U);
}
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned int* lanes) { ANSWER(device, lanes, 16U); }
// Processes in $FAKE_GPU_PROCESSES, numbers with spaces between them: each holds 3 GB of the first GPU. The second one
// does not know how much process 4711 holds, and has more processes than a caller may expect.
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, void* list) {
  struct Process {
    unsigned int process;
    unsigned long long memory;
    unsigned int gpu_instance, compute_instance;
  };
  constexpr int k_insufficient_size = 7;
  const unsigned int capacity = *count;
  auto* processes = static_cast<Process*>(list);
  if (device_number(device) == 2) {
    constexpr unsigned int k_many = 100;
    *count = k_many;
    if (capacity < k_many) return k_insufficient_size;
    for (unsigned int i = 0; i < k_many; ++i) processes[i] = {4711 + i, i == 0 ? ~0ULL : 1'000'000ULL, ~0U, ~0U};
    return k_success;
  }
  const char* text = std::getenv("FAKE_GPU_PROCESSES");
  *count = 0;
  while (text != nullptr && *text != '\0' && *count < capacity) {
    char* end = nullptr;
    processes[*count] = {static_cast<unsigned int>(std::strtoul(text, &end, 10)), 3'000'000'000ULL, ~0U, ~0U};
    if (end == text) break;
    text = end;
    ++*count;
  }
  return k_success;
}
// nvmlDeviceGetNumGpuCores is left out: libraries older than 11.2 do not have it.
#endif
}
