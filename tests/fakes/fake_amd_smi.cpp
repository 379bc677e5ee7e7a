// One MI300X that answers as AMD SMI would, in the structs of the version named by FAKE_AMD_SMI_VERSION (24.6, 24.7,
// 25.1, 25.25 or 26.0; 26.0 when it is not given). FAKE_GPU_LIES (lies.h) makes it lie.
#include <cstdio>
#include <cstring>

#include "lies.h"

namespace {
constexpr int k_success = 0, k_not_supported = 2, k_io_error = 12;
constexpr uint32_t k_watts = 650;
uint64_t cycles = 0;

struct Version {
  unsigned first, second;
  auto operator<=>(const Version&) const = default;
};
Version version() {
  Version named{26, 0};
  const char* text = std::getenv("FAKE_AMD_SMI_VERSION");
  if (text != nullptr) std::sscanf(text, "%u.%u", &named.first, &named.second);
  return named;
}
constexpr Version k_rocm_6_3{24, 7}, k_rocm_6_4{25, 25};

int state_of(const void* device) {
  const int number = static_cast<int>(reinterpret_cast<intptr_t>(device)) - 100;
  if (number < 1) return 1;
  if (fake::is_lost(number)) return k_io_error;
  return fake::lie("not_supported") != 0 ? k_not_supported : k_success;
}

// As the header of version 26 lists them, shortened where nothing is read.
struct XcpMetrics {
  uint32_t busy[8];
  uint16_t jpeg[40], vcn[4];
  uint64_t counters[6][8];
};
struct GpuMetrics {
  uint16_t size;
  uint8_t format, content;
  uint16_t temperatures[6], activities[3], average_socket_power;
  uint64_t energy, system_clock;
  uint16_t average_clocks[7], current_clocks[7];
  uint32_t throttle_status;
  uint16_t fan, pcie_width, pcie_speed;
  uint32_t gfx_activity, memory_activity;
  uint16_t hbm_temperatures[4];
  uint64_t firmware_timestamp;
  uint16_t voltages[3];
  uint64_t indep_throttle_status;
  uint16_t current_socket_power, vcn_activity[4];
  uint32_t gfxclk_lock_status;
  uint16_t xgmi_width, xgmi_speed;
  uint64_t pcie[5], xgmi_read[8], xgmi_write[8];
  uint16_t gfx_clocks[8], soc_clocks[4], vclks[4], dclks[4], jpeg_activity[32];
  uint32_t naks_sent, naks_received;
  uint64_t accumulation_counter, prochot, ppt, socket_thermal, regulator_thermal, hbm_thermal;
  uint16_t partitions;
  XcpMetrics xcp[8];
  uint32_t recovery;
  uint64_t bandwidth;
  uint16_t links[8];
};
}  // namespace

#define ANSWER(device, place, value)                                        \
  if (const int state = state_of(device); state != k_success) return state; \
  *(place) = (value);                                                       \
  return k_success

extern "C" {

int amdsmi_init(uint64_t flags) {
  fake::restart();
  return flags != 2 ? 1 : fake::lie("init_fails") != 0 ? 34 : k_success;
}
int amdsmi_shut_down() { return k_success; }
int amdsmi_get_lib_version(uint32_t* words) {
  words[0] = version().first;
  words[1] = version().second;
  words[2] = words[3] = 1;
  return k_success;
}
int amdsmi_get_socket_handles(uint32_t* count, void** handles) {
  const uint32_t all = fake::device_count(1);
  for (uint32_t i = 0; handles != nullptr && i < all && i < *count; ++i)
    handles[i] = reinterpret_cast<void*>(static_cast<intptr_t>(i + 1));
  *count = all;
  return k_success;
}
int amdsmi_get_processor_handles(void* socket, uint32_t* count, void** handles) {
  if (handles != nullptr) handles[0] = reinterpret_cast<void*>(reinterpret_cast<intptr_t>(socket) + 100);
  *count = 1;
  return k_success;
}
int amdsmi_get_processor_type(void*, int* type) {
  *type = 1;
  return k_success;
}
int amdsmi_get_gpu_asic_info(void*, char* market_name) {
  std::strcpy(market_name, fake::device_name("AMD Instinct MI300X"));
  return k_success;
}
int amdsmi_get_gpu_driver_info(void*, char* text) {
  std::strcpy(text, "6.8.5");
  return k_success;
}
int amdsmi_get_gpu_memory_total(void*, int, uint64_t* bytes) {
  *bytes = fake::device_memory(206'141'652'992ULL);
  return k_success;
}
int amdsmi_get_gpu_memory_usage(void* device, int, uint64_t* bytes) {
  ANSWER(device, bytes, fake::lie("memory_over") != 0 ? 300'000'000'000ULL : 30'000'000'000ULL);
}
int amdsmi_get_power_info(void* device, void* info) {
  ++fake::power_readings;
  if (const int state = state_of(device); state != k_success) return state;
  const uint32_t now = fake::lie("power_absurd") != 0 ? 1U << 31 : fake::lie("power_unknown") != 0 ? ~0U : k_watts;
  const struct {
    uint32_t current, average, voltages[3], limit, reserved[11];
  } old{now, ~0U, {757, 801, 1203}, 750, {}};
  const struct {
    uint64_t socket;
    uint32_t current, average;
    uint64_t voltages[3];
    uint32_t limit;
    uint64_t reserved[18];
  } info_26{0, now, ~0U, {757, 801, 1203}, 750, {}};
  if (version() < k_rocm_6_4)
    std::memcpy(info, &old, sizeof old);
  else
    std::memcpy(info, &info_26, sizeof info_26);
  return k_success;
}
int amdsmi_get_power_cap_info(void*, uint32_t, uint64_t* cap) {
  *cap = 750'000'000ULL;
  return k_success;
}
int amdsmi_get_energy_count(void* device, uint64_t* counter, float* microjoules, uint64_t* nanoseconds) {
  *microjoules = 15.259F;
  *nanoseconds = 1;
  ANSWER(
      device, counter,
      fake::lie("energy_absurd") != 0 ? ~0ULL : static_cast<uint64_t>(fake::joules(1000.0, k_watts) / 15.259e-6 + 0.5));
}
int amdsmi_get_temp_metric(void* device, int sensor, int metric, int64_t* celsius) {
  if (sensor != 1 || metric != 0) return k_not_supported;
  ANSWER(device, celsius, fake::lie("temperature_255") != 0 ? 255 : fake::lie("temperature_zero") != 0 ? 0 : 58);
}
int amdsmi_get_clock_info(void* device, int kind, uint32_t* now_low_high) {
  now_low_high[1] = 132;
  now_low_high[2] = 2100;
  ANSWER(device, now_low_high, kind == 0 ? 1900 : kind == 4 ? 1300 : ~0U);
}
int amdsmi_get_gpu_activity(void* device, uint32_t* activity) {
  ANSWER(device, activity, fake::lie("utilisation_over") != 0 ? 400U : 99U);
}
int amdsmi_get_gpu_metrics_info(void* device, void* place) {
  if (const int state = state_of(device); state != k_success) return state;
  GpuMetrics metrics;
  std::memset(&metrics, 0xff, sizeof metrics);
  cycles += 100;
  metrics.accumulation_counter = cycles;
  metrics.prochot = metrics.regulator_thermal = metrics.hbm_thermal = 0;
  metrics.ppt = 7 * cycles / 10;
  metrics.socket_thermal = fake::lie("hot") != 0 ? cycles : 0;
  const bool older = version() < k_rocm_6_3;
  if (older) metrics.indep_throttle_status = fake::lie("hot") != 0 ? 1ULL << 36 : 1ULL;
  std::memcpy(place, &metrics, older ? offsetof(GpuMetrics, accumulation_counter) : sizeof metrics);
  return k_success;
}
int amdsmi_get_gpu_total_ecc_count(void* device, uint64_t* correctable_uncorrectable) {
  correctable_uncorrectable[1] = fake::lie("ecc_errors") != 0 ? 3 : 0;
  ANSWER(device, correctable_uncorrectable, 5);
}
int amdsmi_get_gpu_compute_partition(void*, char* text, uint32_t size) {
  std::snprintf(text, size, fake::lie("partitioned") != 0 ? "CPX" : "SPX");
  return k_success;
}
}
