#include "telemetry/gpu_libraries.h"

#include <algorithm>
#include <cstdint>

#include "telemetry/amd_smi_functions.h"
#include "telemetry/small_files.h"
#include "telemetry/vendor_library.h"

namespace tprimat {
namespace {

// The few declarations we need of rocm_smi.h. Zero means success everywhere.
using RsmiStatus = int;
constexpr int k_rsmi_memory_vram = 0;
constexpr uint32_t k_rsmi_junction = 1;
constexpr int k_rsmi_temperature_now = 0;
constexpr int k_rsmi_component_driver = 0;
constexpr int k_rsmi_clock_gfx = 0, k_rsmi_clock_memory = 4;
constexpr uint32_t k_rsmi_text_size = 128;
constexpr uint32_t k_max_rsmi_devices = 256;  // a larger count is a broken library's

// rsmi_frequencies_t: until ROCm 5 {u32 count, u32 current, u64 Hz[]}, later with a bool before them.
struct RsmiFrequencies {
  uint32_t words[256] = {};
};

struct RocmProcess {
  uint32_t process, pasid;
  uint64_t memory;  // bytes
  uint64_t dma_microseconds;
  uint32_t occupancy;
};
constexpr uint32_t k_max_rsmi_holders = 4096, k_max_rsmi_numbers = 1024;

struct RocmSmiFunctions {
  const SharedLibrary& library;
  RsmiStatus (*init)(uint64_t flags) = library.find("rsmi_init");
  RsmiStatus (*shutdown)() = library.find("rsmi_shut_down");
  RsmiStatus (*version)(int component, char*, uint32_t) = library.find("rsmi_version_str_get");
  RsmiStatus (*count)(uint32_t*) = library.find("rsmi_num_monitor_devices");
  RsmiStatus (*name)(uint32_t, char*, size_t) = library.find("rsmi_dev_name_get");
  RsmiStatus (*memory_total)(uint32_t, int, uint64_t*) = library.find("rsmi_dev_memory_total_get");  // bytes
  RsmiStatus (*memory_used)(uint32_t, int, uint64_t*) = library.find("rsmi_dev_memory_usage_get");   // bytes
  RsmiStatus (*power)(uint32_t, uint64_t*, int* kind) = library.find("rsmi_dev_power_get");  // uW; ROCm 6 and later
  // uW; before, and not on MI300.
  RsmiStatus (*average_power)(uint32_t, uint32_t sensor, uint64_t*) = library.find("rsmi_dev_power_ave_get");
  RsmiStatus (*power_cap)(uint32_t, uint32_t sensor, uint64_t*) = library.find("rsmi_dev_power_cap_get");  // uW
  // Counter, and uJ per count.
  RsmiStatus (*energy)(uint32_t, uint64_t*, float* unit, uint64_t*) = library.find("rsmi_dev_energy_count_get");
  // Thousandths of a degree Celsius.
  RsmiStatus (*temperature)(uint32_t, uint32_t sensor, int, int64_t*) = library.find("rsmi_dev_temp_metric_get");
  RsmiStatus (*busy)(uint32_t, uint32_t*) = library.find("rsmi_dev_busy_percent_get");  // percent
  // Hz.
  RsmiStatus (*frequencies)(uint32_t, int clock, RsmiFrequencies*) = library.find("rsmi_dev_gpu_clk_freq_get");
  // ROCm 6.1 and later.
  RsmiStatus (*throttle)(uint32_t, uint64_t*) = library.find("rsmi_dev_metrics_indep_throttle_status_get");
  // Of all devices; count: capacity, then how many.
  RsmiStatus (*processes)(RocmProcess*, uint32_t*) = library.find("rsmi_compute_process_info_get");
  // Their numbers; count: capacity, then how many.
  RsmiStatus (*devices_of)(uint32_t process, uint32_t*, uint32_t*) = library.find("rsmi_compute_process_gpus_get");
  // Its use of one device.
  RsmiStatus (*process_on)(uint32_t process, uint32_t,
                           RocmProcess*) = library.find("rsmi_compute_process_info_by_device_get");
};

std::string_view describe_rsmi_status(RsmiStatus status) {
  switch (status) {
    case 1: return "the library rejects the request";
    case 2:
    case 9: return "not supported by this device";
    case 3: return "the driver's files cannot be read";
    case 4: return "no permission";
    case 8: return "the driver is not loaded";
    case 10: return "the device is not found";
    case 14: return "no data";
    case 13:
    case 15: return "the driver's data are not what the library expects";
    case 16: return "the device is busy";
    default: return "the library reports an error";
  }
}

// The present of the clock's steps. Only one of the two layouts fits the words: in the newer one the first word is 0 or
// 1, and if it is 1, the older layout would mean "step n of 1".
std::optional<double> present_frequency(const RsmiFrequencies& answer) {
  constexpr uint32_t k_max_steps = 33;
  for (const size_t first : {size_t{0}, size_t{1}}) {
    const uint32_t count = answer.words[first], current = answer.words[first + 1];
    if (count == 0 || count > k_max_steps || current >= count) continue;
    const size_t table = first == 0 ? 2 : 4;  // aligned to 8 bytes
    const size_t low = table + 2 * size_t{current};
    return static_cast<double>(answer.words[low]) + 4294967296.0 * answer.words[low + 1];
  }
  return std::nullopt;
}

class RocmSmi : public VendorLibrary<RocmSmiFunctions, describe_rsmi_status> {
 public:
  using VendorLibrary::VendorLibrary;

  std::string start() {
    if (call_.init == nullptr) return "lacks rsmi_init";
    std::string refusal = start_library(uint64_t{0});
    if (refusal.empty()) count_ = std::min(caller().value("devices", call_.count).value_or(0), k_max_rsmi_devices);
    return refusal;
  }

  std::string name() const override { return "rocm_smi"; }
  std::optional<std::string> stack_version() const override { return read_small_file("/opt/rocm/.info/version"); }

  std::optional<std::string> driver_version() const override {
    char text[k_rsmi_text_size] = {};
    if (call_.version == nullptr || call_.version(k_rsmi_component_driver, text, k_rsmi_text_size - 1) != 0)
      return std::nullopt;
    return text;
  }

  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> facts;
    for (uint32_t device = 0; device < count_; ++device) {
      char name[k_rsmi_text_size] = {};
      const bool named = call_.name != nullptr && call_.name(device, name, k_rsmi_text_size - 1) == 0;
      facts.push_back(plausible_facts({Platform::amd,
                                       device,
                                       named ? name : "unknown AMD device",
                                       caller().scaled("memory", 1.0, call_.memory_total, device, k_rsmi_memory_vram),
                                       caller().scaled("limit", 1e-6, call_.power_cap, device, 0U),
                                       {}}));
    }
    return facts;
  }

  Reading read(int64_t index, FaultLog& faults) const override {
    const auto device = static_cast<uint32_t>(index);
    const LibraryCaller ask = caller(&faults);
    Reading reading = reading_of_now();
    if (const auto energy = read_energy(ask, call_.energy, device))
      reading.energy_joules = static_cast<double>(energy->counter) * static_cast<double>(energy->microjoules) * 1e-6;
    reading.power_watts = read_power(device, ask);
    reading.memory_used_bytes = ask.scaled("memory", 1.0, call_.memory_used, device, k_rsmi_memory_vram);
    reading.temperature_celsius =
        ask.scaled("temperature", 1e-3, call_.temperature, device, k_rsmi_junction, k_rsmi_temperature_now);
    reading.utilisation = ask.scaled("utilisation", 0.01, call_.busy, device);
    reading.clock_hz = read_clock("clock", device, k_rsmi_clock_gfx, ask);
    reading.memory_clock_hz = read_clock("memory clock", device, k_rsmi_clock_memory, ask);
    if (const auto mask = ask.value("throttle reasons", call_.throttle, device)) {
      if (*mask != UINT64_MAX)
        reading.throttle = amd_smi::to_throttle(*mask);
      else
        ask.record("throttle reasons", "not supported by this device");
    }
    return reading;
  }

  std::vector<GpuHolder> holders(int64_t index) const override {
    const auto device = static_cast<uint32_t>(index);
    std::vector<GpuHolder> holders;
    for (const RocmProcess& each : list_processes()) {
      if (!uses(each.process, device)) continue;
      holders.push_back({each.process, {}});
      RocmProcess here{};
      if (call_.process_on != nullptr && call_.process_on(each.process, device, &here) == 0)
        holders.back().memory_bytes = static_cast<double>(here.memory);
    }
    return holders;
  }

 private:
  // The same on every device.
  std::vector<RocmProcess> list_processes() const {
    uint32_t count = k_max_rsmi_holders;
    std::vector<RocmProcess> list(count);
    if (call_.processes == nullptr || call_.processes(list.data(), &count) != 0) return {};
    list.resize(std::min(count, k_max_rsmi_holders));
    return list;
  }

  bool uses(uint32_t process, uint32_t device) const {
    uint32_t count = k_max_rsmi_numbers;
    std::vector<uint32_t> devices(count);
    if (call_.devices_of == nullptr || call_.devices_of(process, devices.data(), &count) != 0) return false;
    devices.resize(std::min(count, k_max_rsmi_numbers));
    return std::find(devices.begin(), devices.end(), device) != devices.end();
  }

  std::optional<double> read_power(uint32_t device, const LibraryCaller& ask) const {
    uint64_t microwatts = 0;
    int kind = 0;
    if (call_.power != nullptr && call_.power(device, &microwatts, &kind) == 0)
      return static_cast<double>(microwatts) * 1e-6;
    return ask.scaled("power", 1e-6, call_.average_power, device, 0U);
  }

  std::optional<double> read_clock(std::string_view figure, uint32_t device, int clock,
                                   const LibraryCaller& ask) const {
    const auto answer = ask.value(figure, call_.frequencies, device, clock);
    return answer ? present_frequency(*answer) : std::nullopt;
  }

  uint32_t count_ = 0;
};

}  // namespace

OpenedLibrary open_rocm_smi(const char* name) {
  const std::vector<const char*> usual = {"librocm_smi64.so.7", "librocm_smi64.so", "/opt/rocm/lib/librocm_smi64.so"};
  return start_vendor_library<RocmSmi>(SharedLibrary::open(name != nullptr ? std::vector{name} : usual),
                                       "ROCm SMI (librocm_smi64)");
}

}  // namespace tprimat
