#include "telemetry/nvml_functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "telemetry/gpu_libraries.h"
#include "telemetry/vendor_library.h"

namespace tprimat {
namespace {

constexpr unsigned int k_nvml_text_size = 96;
constexpr unsigned int k_max_devices = 256;  // a larger count is a broken library's

template <class Function, class... Arguments>
std::optional<std::string> ask_nvml_text(Function function, Arguments... arguments) {
  char text[k_nvml_text_size] = {};
  if (function == nullptr || function(arguments..., text, k_nvml_text_size - 1) != 0) return std::nullopt;
  return text;
}

struct NvmlDevice {
  int64_t index;  // the library's own, also where an earlier device does not answer
  nvml::Device handle;
};

class Nvml : public VendorLibrary<nvml::Functions<SharedLibrary>, nvml::describe_status> {
 public:
  using VendorLibrary::VendorLibrary;

  std::string start() {
    if (call_.init == nullptr) return "has no nvmlInit_v2, so it is not NVML";
    std::string refusal = start_library();
    if (!refusal.empty()) return refusal;
    const auto count = caller().value("devices", call_.count).value_or(0);
    for (unsigned int i = 0; i < std::min(count, k_max_devices); ++i)
      if (const auto handle = caller().value("device", call_.handle, i)) devices_.push_back({i, *handle});
    return "";
  }

  std::string name() const override { return "nvml"; }
  std::optional<std::string> driver_version() const override { return ask_nvml_text(call_.driver_version); }

  std::optional<std::string> stack_version() const override {
    const auto version = caller().value("CUDA", call_.cuda_version);
    if (!version) return std::nullopt;
    return fmt::format("{}.{}", *version / 1000, *version % 1000 / 10);  // 12040 is 12.4
  }

  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> facts;
    for (const auto& [index, device] : devices_) {
      GpuFacts gpu{
          Platform::nvd, index, ask_nvml_text(call_.name, device).value_or("unknown NVIDIA device"), {}, {}, {}};
      if (const auto memory = caller().value("memory", call_.memory, device); memory && memory->total > 0)
        gpu.memory_bytes = static_cast<double>(memory->total);
      gpu.power_limit_watts = caller().scaled("limit", 1e-3, call_.power_limit, device);
      gpu.cores = caller().value("cores", call_.cores, device);
      gpu.compute_units = count_sms(device, gpu.cores);
      facts.push_back(plausible_facts(std::move(gpu)));
    }
    return facts;
  }

  Reading read(int64_t index, FaultLog& faults) const override {
    Reading reading = reading_of_now();
    const nvml::Device device = find_device(index);
    const LibraryCaller ask = caller(&faults);
    reading.energy_joules = ask.scaled("energy counter", 1e-3, call_.energy, device);
    reading.power_watts = ask.scaled("power", 1e-3, call_.power, device);
    reading.temperature_celsius = ask.scaled("temperature", 1.0, call_.temperature, device, nvml::k_temperature_gpu);
    reading.clock_hz = ask.scaled("clock", 1e6, call_.clock, device, nvml::k_clock_sm);
    reading.memory_clock_hz = ask.scaled("memory clock", 1e6, call_.clock, device, nvml::k_clock_memory);
    if (const auto memory = ask.value("memory", call_.memory, device))
      reading.memory_used_bytes = static_cast<double>(memory->used);
    if (const auto busy = ask.value("utilisation", call_.utilization, device)) reading.utilisation = busy->gpu * 0.01;
    if (const auto reasons = ask.value("throttle reasons", call_.throttle_reasons, device))
      reading.throttle = nvml::to_throttle(*reasons);
    return reading;
  }

  std::vector<GpuHolder> holders(int64_t index) const override {
    std::vector<GpuHolder> holders;
    for (const nvml::Process& each : list_processes(find_device(index))) {
      holders.push_back({each.process, {}});
      if (each.memory != nvml::k_unknown_memory) holders.back().memory_bytes = static_cast<double>(each.memory);
    }
    return holders;
  }

 private:
  void describe(int64_t index, GpuState& state, FaultLog& faults) const override {
    const LibraryCaller ask = caller(&faults);
    const nvml::Device device = find_device(index);
    state.ecc = ask_mode("ECC", call_.ecc_mode, device, ask);
    state.uncorrected_errors =
        ask.value("uncorrected errors", call_.ecc_errors, device, nvml::k_error_uncorrected, nvml::k_counter_volatile);
    state.persistence = is_on(ask.value("persistence", call_.persistence, device));
    state.mig = ask_mode("MIG", call_.mig_mode, device, ask);
    state.max_clock_hz = ask.scaled("highest clock", 1e6, call_.max_clock, device, nvml::k_clock_sm);
    state.slowdown_celsius =
        ask.scaled("slowdown temperature", 1.0, call_.threshold, device, nvml::k_threshold_slowdown);
    state.pcie_lanes = ask.value("PCIe lanes", call_.pcie_lanes, device);
    state.max_pcie_lanes = ask.value("PCIe lanes", call_.max_pcie_lanes, device);
  }

  // NVML counts CUDA cores, not SMs. Of a GPU in instances (MIG), those of all instances.
  std::optional<int64_t> count_sms(nvml::Device device, const std::optional<int64_t>& cores) const {
    int major = 0, minor = 0;
    if (!cores || call_.capability == nullptr || call_.capability(device, &major, &minor) != 0) return std::nullopt;
    const auto per_sm = nvml::cores_per_sm(major, minor);
    return per_sm && *cores % *per_sm == 0 ? std::optional(*cores / *per_sm) : std::nullopt;
  }

  // Processes may start between the two calls, so the list has spare entries.
  std::vector<nvml::Process> list_processes(nvml::Device device) const {
    if (call_.processes == nullptr) return {};
    constexpr unsigned int k_max = 1U << 16;
    for (unsigned int capacity = 64; capacity <= k_max; capacity *= 4) {
      std::vector<nvml::Process> list(capacity);
      unsigned int count = capacity;
      const nvml::Status status = call_.processes(device, &count, list.data());
      if (status == nvml::k_insufficient_size) continue;
      list.resize(status == 0 ? std::min(count, capacity) : 0);
      return list;
    }
    return {};
  }

  nvml::Device find_device(int64_t index) const {
    for (const NvmlDevice& device : devices_)
      if (device.index == index) return device.handle;
    return nullptr;  // which the library rejects
  }

  template <class Mode>
  static std::optional<bool> is_on(const std::optional<Mode>& mode) {
    return mode ? std::optional(*mode != 0) : std::nullopt;
  }

  // The present of a pair "present, after the next reset"; a library without the function has no such mode.
  template <class Value>
  static std::optional<bool> ask_mode(std::string_view figure, nvml::Status (*function)(nvml::Device, Value*, Value*),
                                      nvml::Device device, const LibraryCaller& ask) {
    if (function == nullptr) return std::nullopt;
    Value pending{};
    return is_on(ask.value_by<Value>(figure, true, [&](Value& now) { return function(device, &now, &pending); }));
  }

  std::vector<NvmlDevice> devices_;
};

}  // namespace

OpenedLibrary open_nvml(const char* name) {
  return start_vendor_library<Nvml>(SharedLibrary::open({name}), fmt::format("NVML ({})", name));
}

namespace nvml {

std::string_view describe_status(Status status) {
  switch (status) {
    case 2: return "the library rejects the request";
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

std::optional<int64_t> cores_per_sm(int major, int minor) {
  constexpr int64_t k_half = 64, k_full = 128;
  switch (10 * major + minor) {
    case 70:
    case 72:
    case 75:
    case 80: return k_half;
    case 86:
    case 87:
    case 89:
    case 90:
    case 100:
    case 101:
    case 120: return k_full;
    default: return std::nullopt;
  }
}

uint32_t to_throttle(unsigned long long reasons) {
  // Bit 0 means an idle GPU: the clock is not throttled.
  constexpr unsigned long long k_clock_set = 0x2 | 0x10 | 0x100;  // application clocks, sync boost, display clock
  constexpr unsigned long long k_power_cap = 0x4, k_thermal = 0x20 | 0x40;
  constexpr unsigned long long k_hardware = 0x8 | 0x80 | 0x200 | 0x400;  // the last two: the board, reliability
  return throttle_bits({{(reasons & k_power_cap) != 0, k_throttle_power},
                        {(reasons & k_thermal) != 0, k_throttle_thermal},
                        {(reasons & k_hardware) != 0, k_throttle_hardware},
                        {(reasons & k_clock_set) != 0, k_throttle_set}});
}

}  // namespace nvml

}  // namespace tprimat
