#include "telemetry/rocm_smi.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "telemetry/small_files.h"

namespace tprimat {
namespace {

// The few declarations we need of rocm_smi.h. Zero means success everywhere.
using Status = int;
constexpr int k_memory_vram = 0;
constexpr uint32_t k_temperature_junction = 1;
constexpr int k_temperature_current = 0;
struct RocmProcess {
  uint32_t process, pasid;
  uint64_t memory;  // bytes
  uint64_t dma_microseconds;
  uint32_t occupancy;
};
constexpr uint32_t k_most_holders = 4096, k_most_devices = 1024;
constexpr int k_component_driver = 0;
constexpr uint32_t k_rocm_smi_text_size = 128;

struct RocmSmiFunctions {
  Status (*init)(uint64_t flags);
  Status (*shutdown)();
  Status (*version)(int component, char*, uint32_t);
  Status (*count)(uint32_t*);
  Status (*name)(uint32_t, char*, size_t);
  Status (*memory_total)(uint32_t, int, uint64_t*);                 // bytes
  Status (*memory_used)(uint32_t, int, uint64_t*);                  // bytes
  Status (*power)(uint32_t, uint64_t*, int* kind);                  // uW; ROCm 6 and later
  Status (*average_power)(uint32_t, uint32_t sensor, uint64_t*);    // uW; before, and not on MI300
  Status (*power_cap)(uint32_t, uint32_t sensor, uint64_t*);        // uW
  Status (*energy)(uint32_t, uint64_t*, float* unit, uint64_t*);    // counter, and uJ per count
  Status (*temperature)(uint32_t, uint32_t sensor, int, int64_t*);  // thousandths of a degree Celsius
  Status (*busy)(uint32_t, uint32_t*);                              // percent
  Status (*processes)(RocmProcess*, uint32_t*);                     // of all devices; count: room, then how many
  Status (*devices_of)(uint32_t process, uint32_t*, uint32_t*);     // their numbers; count: room, then how many
  Status (*process_on)(uint32_t process, uint32_t, RocmProcess*);   // what it uses of one device
};

RocmSmiFunctions find_rocm_smi_functions(const SharedLibrary& library) {
  const auto bind = [&]<class Result, class... Arguments>(Result (*&function)(Arguments...), const char* symbol) {
    function = library.find<Result(Arguments...)>(symbol);
  };
  RocmSmiFunctions found{};
  bind(found.init, "rsmi_init");
  bind(found.shutdown, "rsmi_shut_down");
  bind(found.version, "rsmi_version_str_get");
  bind(found.count, "rsmi_num_monitor_devices");
  bind(found.name, "rsmi_dev_name_get");
  bind(found.memory_total, "rsmi_dev_memory_total_get");
  bind(found.memory_used, "rsmi_dev_memory_usage_get");
  bind(found.power, "rsmi_dev_power_get");
  bind(found.average_power, "rsmi_dev_power_ave_get");
  bind(found.power_cap, "rsmi_dev_power_cap_get");
  bind(found.energy, "rsmi_dev_energy_count_get");
  bind(found.temperature, "rsmi_dev_temp_metric_get");
  bind(found.busy, "rsmi_dev_busy_percent_get");
  bind(found.processes, "rsmi_compute_process_info_get");
  bind(found.devices_of, "rsmi_compute_process_gpus_get");
  bind(found.process_on, "rsmi_compute_process_info_by_device_get");
  return found;
}

template <class Value, class Function, class... Arguments>
std::optional<double> ask(double unit, Function function, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(arguments..., &value) != 0) return std::nullopt;
  return static_cast<double>(value) * unit;
}

class RocmSmi : public GpuLibrary {
 public:
  RocmSmi(SharedLibrary library, const RocmSmiFunctions& functions)
      : library_(std::move(library)),
        call_(functions),
        count_(static_cast<uint32_t>(ask<uint32_t>(1.0, call_.count).value_or(0.0))) {}
  RocmSmi(const RocmSmi&) = delete;
  RocmSmi& operator=(const RocmSmi&) = delete;
  ~RocmSmi() override {
    if (call_.shutdown != nullptr) call_.shutdown();
  }

  std::string name() const override { return "rocm_smi"; }
  std::optional<std::string> stack_version() const override { return read_small_file("/opt/rocm/.info/version"); }

  std::optional<std::string> driver_version() const override {
    char text[k_rocm_smi_text_size] = {};
    if (call_.version == nullptr || call_.version(k_component_driver, text, k_rocm_smi_text_size - 1) != 0) return std::nullopt;
    return text;
  }

  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> facts;
    for (uint32_t device = 0; device < count_; ++device) {
      char name[k_rocm_smi_text_size] = {};
      const bool named = call_.name != nullptr && call_.name(device, name, k_rocm_smi_text_size - 1) == 0;
      facts.push_back({Platform::amd,
                       device,
                       named ? name : "unknown AMD device",
                       ask<uint64_t>(1.0, call_.memory_total, device, k_memory_vram),
                       ask<uint64_t>(1e-6, call_.power_cap, device, 0U),
                       {}});
    }
    return facts;
  }

  Reading read(int64_t index) const override {
    const auto device = static_cast<uint32_t>(index);
    Reading reading;
    reading.unix_time = unix_time_seconds();
    reading.energy_joules = read_energy(device);
    reading.power_watts = read_power(device);
    reading.memory_used_bytes = ask<uint64_t>(1.0, call_.memory_used, device, k_memory_vram);
    reading.temperature_celsius =
        ask<int64_t>(1e-3, call_.temperature, device, k_temperature_junction, k_temperature_current);
    reading.utilisation = ask<uint32_t>(0.01, call_.busy, device);
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
    uint32_t count = k_most_holders;
    std::vector<RocmProcess> list(count);
    if (call_.processes == nullptr || call_.processes(list.data(), &count) != 0) return {};
    list.resize(std::min(count, k_most_holders));
    return list;
  }

  bool uses(uint32_t process, uint32_t device) const {
    uint32_t count = k_most_devices;
    std::vector<uint32_t> devices(count);
    if (call_.devices_of == nullptr || call_.devices_of(process, devices.data(), &count) != 0) return false;
    devices.resize(std::min(count, k_most_devices));
    return std::find(devices.begin(), devices.end(), device) != devices.end();
  }

  std::optional<double> read_energy(uint32_t device) const {
    uint64_t counter = 0, timestamp = 0;
    float microjoules = 0.0F;
    if (call_.energy == nullptr || call_.energy(device, &counter, &microjoules, &timestamp) != 0) return std::nullopt;
    return static_cast<double>(counter) * static_cast<double>(microjoules) * 1e-6;
  }

  std::optional<double> read_power(uint32_t device) const {
    uint64_t microwatts = 0;
    int kind = 0;
    if (call_.power != nullptr && call_.power(device, &microwatts, &kind) == 0)
      return static_cast<double>(microwatts) * 1e-6;
    return ask<uint64_t>(1e-6, call_.average_power, device, 0U);
  }

  SharedLibrary library_;
  RocmSmiFunctions call_;
  uint32_t count_;
};

std::optional<SharedLibrary> open_first(const char* name) {
  if (name != nullptr) return SharedLibrary::open(name);
  for (const char* usual : {"librocm_smi64.so.7", "librocm_smi64.so", "/opt/rocm/lib/librocm_smi64.so"})
    if (auto library = SharedLibrary::open(usual)) return library;
  return std::nullopt;
}

}  // namespace

std::unique_ptr<GpuLibrary> open_rocm_smi(const char* name) {
  std::optional<SharedLibrary> library = open_first(name);
  if (!library) return nullptr;
  const RocmSmiFunctions functions = find_rocm_smi_functions(*library);
  if (functions.init == nullptr || functions.init(0) != 0) return nullptr;
  auto rocm = std::make_unique<RocmSmi>(std::move(*library), functions);
  if (rocm->devices().empty()) return nullptr;
  return rocm;
}

}  // namespace tprimat
