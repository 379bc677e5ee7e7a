// One MI300X that answers as ROCm SMI would: without the average power that this part does not give. FAKE_GPU_LIES
// (lies.h) makes it lie; FAKE_OLD_FREQUENCIES gives clocks in the layout of ROCm 5.
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "lies.h"

namespace {
constexpr int k_success = 0, k_not_supported = 2, k_not_found = 10, k_insufficient_size = 11;
constexpr double k_watts = 650.0;

int state_of(uint32_t device) {
  if (fake::is_lost(static_cast<int>(device) + 1)) return k_not_found;
  return fake::lie("not_supported") != 0 ? k_not_supported : k_success;
}

struct ProcessInfo {
  uint32_t process, pasid;
  uint64_t memory, dma_microseconds;
  uint32_t occupancy;
};
struct Frequencies {
  bool has_deep_sleep;
  uint32_t num_supported, current;
  uint64_t frequency[33];
};
struct OldFrequencies {
  uint32_t num_supported, current;
  uint64_t frequency[32];
};
}  // namespace

#define ANSWER(device, place, value)                                        \
  if (const int state = state_of(device); state != k_success) return state; \
  *(place) = (value);                                                       \
  return k_success

extern "C" {

int rsmi_init(uint64_t) {
  fake::restart();
  return fake::lie("init_fails") != 0 ? 8 : k_success;
}
int rsmi_shut_down() { return k_success; }
int rsmi_version_str_get(int, char* text, uint32_t size) {
  std::snprintf(text, size, "6.8.5");
  return k_success;
}
int rsmi_num_monitor_devices(uint32_t* count) {
  *count = fake::device_count(1);
  return k_success;
}
int rsmi_dev_name_get(uint32_t, char* text, size_t size) {
  std::snprintf(text, size, "%s", fake::device_name("AMD Instinct MI300X OAM"));
  return k_success;
}
int rsmi_dev_memory_total_get(uint32_t device, int, uint64_t* bytes) {
  ANSWER(device, bytes, fake::device_memory(206'141'652'992ULL));
}
int rsmi_dev_memory_usage_get(uint32_t device, int, uint64_t* bytes) {
  ANSWER(device, bytes, fake::lie("memory_over") != 0 ? 300'000'000'000ULL : 30'000'000'000ULL);
}
int rsmi_dev_power_get(uint32_t device, uint64_t* microwatts, int* kind) {
  ++fake::power_readings;
  *kind = 1;
  ANSWER(device, microwatts, fake::lie("power_absurd") != 0 ? 1ULL << 61 : static_cast<uint64_t>(k_watts * 1e6));
}
int rsmi_dev_power_ave_get(uint32_t, uint32_t, uint64_t*) { return k_not_supported; }
int rsmi_dev_energy_count_get(uint32_t device, uint64_t* counter, float* microjoules, uint64_t* nanoseconds) {
  *microjoules = 15.3F;
  *nanoseconds = 1;
  ANSWER(device, counter,
         fake::lie("energy_absurd") != 0 ? ~0ULL : static_cast<uint64_t>(fake::joules(15.3, k_watts) / 15.3e-6 + 0.5));
}
int rsmi_dev_temp_metric_get(uint32_t device, uint32_t sensor, int, int64_t* millidegrees) {
  if (sensor != 1) return k_not_supported;  // MI300 has no edge sensor
  ANSWER(device, millidegrees,
         fake::lie("temperature_255") != 0    ? 255'000
         : fake::lie("temperature_zero") != 0 ? 0
                                              : 58'000);
}
int rsmi_dev_busy_percent_get(uint32_t device, uint32_t* percent) {
  ANSWER(device, percent, fake::lie("utilisation_over") != 0 ? 65535U : 99U);
}
int rsmi_dev_gpu_clk_freq_get(uint32_t device, int clock, void* frequencies) {
  if (const int state = state_of(device); state != k_success) return state;
  const uint64_t now = clock == 0 ? 2'100'000'000ULL : 1'300'000'000ULL;
  if (std::getenv("FAKE_OLD_FREQUENCIES") != nullptr) {
    const OldFrequencies old{3, 2, {132'000'000ULL, 500'000'000ULL, now}};
    std::memcpy(frequencies, &old, sizeof old);
  } else {
    const Frequencies all{true, 2, 1, {132'000'000ULL, now}};
    std::memcpy(frequencies, &all, sizeof all);
  }
  return k_success;
}
int rsmi_compute_process_info_get(ProcessInfo* list, uint32_t* count) {
  if (*count < 2) return k_insufficient_size;
  list[0] = {4711, 1, 9'000'000'000ULL, 0, 50};
  list[1] = {4712, 2, 0, 0, 0};  // on a device of a neighbour
  *count = 2;
  return k_success;
}
int rsmi_compute_process_gpus_get(uint32_t process, uint32_t* devices, uint32_t* count) {
  devices[0] = process == 4711 ? 0 : 7;
  *count = 1;
  return k_success;
}
int rsmi_compute_process_info_by_device_get(uint32_t process, uint32_t, ProcessInfo* info) {
  *info = {process, 1, 5'000'000'000ULL, 0, 50};
  return k_success;
}
}
