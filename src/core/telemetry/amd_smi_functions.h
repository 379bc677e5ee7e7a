#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tprimat {

// The few declarations we need of amdsmi.h. Structs differ between versions of the library: each below holds the part
// that is the same in all the versions that we know, and reserved space for what any version writes behind it.

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

// Calls of a `Library`, which finds them by their symbols; null for a symbol that it lacks.
template <class Library>
struct Functions {
  const Library& library;
  Status (*init)(uint64_t flags) = library.find("amdsmi_init");
  Status (*shutdown)() = library.find("amdsmi_shut_down");
  Status (*version)(Version*) = library.find("amdsmi_get_lib_version");
  Status (*sockets)(uint32_t* count, Handle*) = library.find("amdsmi_get_socket_handles");
  Status (*processors)(Handle socket, uint32_t* count, Handle*) = library.find("amdsmi_get_processor_handles");
  Status (*processor_type)(Handle, int*) = library.find("amdsmi_get_processor_type");
  Status (*asic)(Handle, Text*) = library.find("amdsmi_get_gpu_asic_info");
  Status (*driver)(Handle, Text*) = library.find("amdsmi_get_gpu_driver_info");
  Status (*memory_total)(Handle, int, uint64_t*) = library.find("amdsmi_get_gpu_memory_total");         // bytes
  Status (*memory_used)(Handle, int, uint64_t*) = library.find("amdsmi_get_gpu_memory_usage");          // bytes
  Status (*power)(Handle, Power*) = library.find("amdsmi_get_power_info");                              // W
  Status (*power_cap)(Handle, uint32_t sensor, PowerCap*) = library.find("amdsmi_get_power_cap_info");  // uW
  // Counter, and uJ per count.
  Status (*energy)(Handle, uint64_t*, float* unit, uint64_t*) = library.find("amdsmi_get_energy_count");
  // Degrees Celsius.
  Status (*temperature)(Handle, int sensor, int metric, int64_t*) = library.find("amdsmi_get_temp_metric");
  Status (*clock)(Handle, int, Clock*) = library.find("amdsmi_get_clock_info");     // MHz
  Status (*activity)(Handle, Activity*) = library.find("amdsmi_get_gpu_activity");  // percent
  Status (*metrics)(Handle, Metrics*) = library.find("amdsmi_get_gpu_metrics_info");
  Status (*errors)(Handle, ErrorCount*) = library.find("amdsmi_get_gpu_total_ecc_count");
  Status (*partition)(Handle, char*, uint32_t) = library.find("amdsmi_get_gpu_compute_partition");
  Status (*kfd)(Handle, KfdInfo*) = library.find("amdsmi_get_gpu_kfd_info");
};

// "not supported by this device"
std::string_view describe_status(Status status);

// Of the pair "present, average" that a chip gives one of; nothing where it gives neither.
std::optional<double> power_watts(const Power& power, const Version& version);

// ThrottleReason bits.
uint32_t to_throttle(uint64_t status);
uint32_t to_throttle(const Residency& before, const Residency& now);

// The driver writes the largest integer of 16, 32 or 64 bits for a figure that a chip does not report.
bool is_told(uint64_t value);

}  // namespace amd_smi

}  // namespace tprimat
