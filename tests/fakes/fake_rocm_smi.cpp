// One MI300X that answers as ROCm SMI would: without the average power that this part does not give.
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace {
constexpr int k_success = 0, k_not_supported = 2, k_insufficient_size = 11;
struct ProcessInfo {
  uint32_t process, pasid;
  uint64_t memory, dma_microseconds;
  uint32_t occupancy;
};
}

extern "C" {

int rsmi_init(uint64_t) { return k_success; }
int rsmi_shut_down() { return k_success; }
int rsmi_version_str_get(int, char* text, uint32_t size) {
  std::snprintf(text, size, "6.8.5");
  return k_success;
}
int rsmi_num_monitor_devices(uint32_t* count) {
  *count = 1;
  return k_success;
}
int rsmi_dev_name_get(uint32_t, char* text, size_t size) {
  std::snprintf(text, size, "AMD Instinct MI300X OAM");
  return k_success;
}
int rsmi_dev_memory_total_get(uint32_t, int, uint64_t* bytes) {
  *bytes = 206'141'652'992ULL;
  return k_success;
}
int rsmi_dev_memory_usage_get(uint32_t, int, uint64_t* bytes) {
  *bytes = 30'000'000'000ULL;
  return k_success;
}
int rsmi_dev_power_get(uint32_t, uint64_t* microwatts, int* kind) {
  *microwatts = 650'000'000ULL;
  *kind = 1;
  return k_success;
}
int rsmi_dev_power_ave_get(uint32_t, uint32_t, uint64_t*) { return k_not_supported; }
int rsmi_dev_energy_count_get(uint32_t, uint64_t* counter, float* microjoules, uint64_t* nanoseconds) {
  *counter = 1'000'000ULL;
  *microjoules = 15.3F;
  *nanoseconds = 1;
  return k_success;
}
int rsmi_dev_temp_metric_get(uint32_t, uint32_t sensor, int, int64_t* millidegrees) {
  *millidegrees = 58'000;
  return sensor == 1 ? k_success : k_not_supported;  // MI300 has no edge sensor
}
int rsmi_dev_busy_percent_get(uint32_t, uint32_t* percent) {
  *percent = 99;
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
