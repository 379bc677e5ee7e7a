#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "telemetry/gpu_library.h"

// The few declarations we need of amdsmi.h. Structs differ between versions of the library: each below holds the part
// that is the same in all the versions that we know, and reserved space for what any version writes behind it.
namespace tprimat {
namespace amd_smi {

using Handle = void*;
using Status = int;

constexpr uint64_t k_init_gpus = 2;
constexpr int k_processor_gpu = 1;
constexpr int k_memory_vram = 0;
constexpr int k_temperature_hotspot = 1, k_temperature_current = 0;
constexpr int k_clock_gfx = 0, k_clock_memory = 4;

// Until 25 the first number is the year and the second a major number: 24.6 came with ROCm 6.2, 24.7 with 6.3.1, 25.1
// with 6.3.3, 25.25 with 6.4. Since 26, which came with ROCm 7, the major number is the first.
constexpr uint32_t k_oldest_known = 24, k_newest_known = 26;

struct Version {
  uint32_t first = 0, second = 0;
  char reserved[56] = {};
};
struct Text {  // structs that begin with the string we want: 64 or 256 bytes
  char text[4096] = {};
};
struct Activity {
  uint32_t gfx = 0, memory_controller = 0, multimedia = 0;  // percent
  uint32_t reserved[61] = {};
};
struct Clock {
  uint32_t now = 0, lowest = 0, highest = 0;  // MHz
  uint32_t reserved[61] = {};
};
struct PowerCap {
  uint64_t now = 0;  // uW
  uint64_t reserved[31] = {};
};
struct ErrorCount {
  uint64_t correctable = 0, uncorrectable = 0;
  uint64_t reserved[30] = {};
};
struct KfdInfo {
  uint64_t id = 0;  // of the device in /sys/class/kfd
  uint64_t reserved[31] = {};
};
struct Power {
  uint32_t words[128] = {};  // in W; see power_watts()
};
// Throttling as counters: how many of the `cycles` each limit held the clocks down. Zero before ROCm 6.3.
struct Residency {
  uint64_t cycles = 0, prochot = 0, power = 0, socket_heat = 0, regulator_heat = 0, memory_heat = 0;
};
struct Metrics {
  char before_throttle[112] = {};
  uint64_t throttle = 0;  // of the kernel's driver, the same bits for every chip
  char before_residency[304] = {};
  Residency residency;
  char reserved[32768 - 112 - 8 - 304 - sizeof(Residency)] = {};
};

struct Functions {
  Status (*init)(uint64_t flags);
  Status (*shutdown)();
  Status (*version)(Version*);
  Status (*sockets)(uint32_t* count, Handle*);
  Status (*processors)(Handle socket, uint32_t* count, Handle*);
  Status (*processor_type)(Handle, int*);
  Status (*asic)(Handle, Text*);
  Status (*driver)(Handle, Text*);
  Status (*memory_total)(Handle, int, uint64_t*);                   // bytes
  Status (*memory_used)(Handle, int, uint64_t*);                    // bytes
  Status (*power)(Handle, Power*);                                  // W
  Status (*power_cap)(Handle, uint32_t sensor, PowerCap*);          // uW
  Status (*energy)(Handle, uint64_t*, float* unit, uint64_t*);      // counter, and uJ per count
  Status (*temperature)(Handle, int sensor, int metric, int64_t*);  // degrees Celsius
  Status (*clock)(Handle, int, Clock*);                             // MHz
  Status (*activity)(Handle, Activity*);                            // percent
  Status (*metrics)(Handle, Metrics*);
  Status (*errors)(Handle, ErrorCount*);
  Status (*partition)(Handle, char*, uint32_t);
  Status (*kfd)(Handle, KfdInfo*);
};

// Calls visit(function, symbol) for each of them.
template <class Visit>
void for_each_function(Functions& call, Visit&& visit) {
  visit(call.init, "amdsmi_init");
  visit(call.shutdown, "amdsmi_shut_down");
  visit(call.version, "amdsmi_get_lib_version");
  visit(call.sockets, "amdsmi_get_socket_handles");
  visit(call.processors, "amdsmi_get_processor_handles");
  visit(call.processor_type, "amdsmi_get_processor_type");
  visit(call.asic, "amdsmi_get_gpu_asic_info");
  visit(call.driver, "amdsmi_get_gpu_driver_info");
  visit(call.memory_total, "amdsmi_get_gpu_memory_total");
  visit(call.memory_used, "amdsmi_get_gpu_memory_usage");
  visit(call.power, "amdsmi_get_power_info");
  visit(call.power_cap, "amdsmi_get_power_cap_info");
  visit(call.energy, "amdsmi_get_energy_count");
  visit(call.temperature, "amdsmi_get_temp_metric");
  visit(call.clock, "amdsmi_get_clock_info");
  visit(call.activity, "amdsmi_get_gpu_activity");
  visit(call.metrics, "amdsmi_get_gpu_metrics_info");
  visit(call.errors, "amdsmi_get_gpu_total_ecc_count");
  visit(call.partition, "amdsmi_get_gpu_compute_partition");
  visit(call.kfd, "amdsmi_get_gpu_kfd_info");
}

// Null for what the library lacks.
Functions find_functions(const SharedLibrary& library);

// "not supported by this device"
std::string_view describe_status(Status status);

// Of the pair "present, average" that a chip gives one of; nothing where it gives neither.
std::optional<double> power_watts(const Power& power, const Version& version);

// ThrottleReason bits.
uint32_t to_throttle(uint64_t status);
uint32_t to_throttle(const Residency& before, const Residency& now);

// The driver writes the largest integer of 16, 32 or 64 bits for what a chip does not tell.
bool is_told(uint64_t value);

}  // namespace amd_smi
}  // namespace tprimat
