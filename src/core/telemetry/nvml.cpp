#include "telemetry/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "telemetry/library_call.h"
#include "telemetry/nvml_functions.h"
#include "telemetry/plausible.h"

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

class Nvml : public GpuLibrary {
 public:
  Nvml(SharedLibrary library, const nvml::Functions& functions) : library_(std::move(library)), call_(functions) {
    FaultLog ignored;
    const LibraryCaller caller{ignored, nvml::describe_status};
    const auto count = caller.ask<unsigned int>("devices", call_.count).value_or(0);
    for (unsigned int i = 0; i < std::min(count, k_max_devices); ++i)
      if (const auto handle = caller.ask<nvml::Device>("device", call_.handle, i)) devices_.push_back({i, *handle});
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() override {
    if (call_.shutdown != nullptr) call_.shutdown();
  }

  std::string name() const override { return "nvml"; }
  std::optional<std::string> driver_version() const override { return ask_nvml_text(call_.driver_version); }

  std::optional<std::string> stack_version() const override {
    FaultLog ignored;
    const auto version = LibraryCaller{ignored, nvml::describe_status}.ask<int>("CUDA", call_.cuda_version);
    if (!version) return std::nullopt;
    return fmt::format("{}.{}", *version / 1000, *version % 1000 / 10);  // 12040 is 12.4
  }

  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> facts;
    FaultLog ignored;
    const LibraryCaller caller{ignored, nvml::describe_status};
    for (const auto& [index, device] : devices_) {
      GpuFacts gpu{
          Platform::nvd, index, ask_nvml_text(call_.name, device).value_or("unknown NVIDIA device"), {}, {}, {}};
      if (const auto memory = caller.ask<nvml::Memory>("memory", call_.memory, device); memory && memory->total > 0)
        gpu.memory_bytes = static_cast<double>(memory->total);
      gpu.power_limit_watts = caller.ask_scaled<unsigned int>("limit", 1e-3, call_.power_limit, device);
      if (const auto cores = caller.ask<unsigned int>("cores", call_.cores, device)) gpu.cores = *cores;
      facts.push_back(plausible_facts(std::move(gpu)));
    }
    return facts;
  }

  Reading read(int64_t index, FaultLog& faults) const override {
    Reading reading;
    reading.unix_time = unix_time_seconds();
    const nvml::Device device = find_device(index);
    const LibraryCaller caller{faults, nvml::describe_status};
    reading.energy_joules = caller.ask_scaled<unsigned long long>("energy counter", 1e-3, call_.energy, device);
    reading.power_watts = caller.ask_scaled<unsigned int>("power", 1e-3, call_.power, device);
    reading.temperature_celsius =
        caller.ask_scaled<unsigned int>("temperature", 1.0, call_.temperature, device, nvml::k_temperature_gpu);
    reading.clock_hz = caller.ask_scaled<unsigned int>("clock", 1e6, call_.clock, device, nvml::k_clock_sm);
    reading.memory_clock_hz =
        caller.ask_scaled<unsigned int>("memory clock", 1e6, call_.clock, device, nvml::k_clock_memory);
    if (const auto memory = caller.ask<nvml::Memory>("memory", call_.memory, device))
      reading.memory_used_bytes = static_cast<double>(memory->used);
    if (const auto busy = caller.ask<nvml::Utilization>("utilisation", call_.utilization, device))
      reading.utilisation = busy->gpu * 0.01;
    if (const auto reasons = caller.ask<unsigned long long>("throttle reasons", call_.throttle_reasons, device))
      reading.throttle = nvml::to_throttle(*reasons);
    return reading;
  }

  GpuState state(int64_t index) const override {
    GpuState state;
    FaultLog faults;
    faults.count_reading();
    const LibraryCaller caller{faults, nvml::describe_status};
    const nvml::Device device = find_device(index);
    state.now = read(index, faults);
    state.ecc = ask_mode<int>("ECC", call_.ecc_mode, device, faults);
    if (const auto errors = caller.ask<unsigned long long>("uncorrected errors", call_.ecc_errors, device,
                                                           nvml::k_error_uncorrected, nvml::k_counter_volatile))
      state.uncorrected_errors = static_cast<int64_t>(*errors);
    if (const auto mode = caller.ask<int>("persistence", call_.persistence, device)) state.persistence = *mode != 0;
    state.mig = ask_mode<unsigned int>("MIG", call_.mig_mode, device, faults);
    state.max_clock_hz =
        caller.ask_scaled<unsigned int>("highest clock", 1e6, call_.max_clock, device, nvml::k_clock_sm);
    state.slowdown_celsius = caller.ask_scaled<unsigned int>("slowdown temperature", 1.0, call_.threshold, device,
                                                             nvml::k_threshold_slowdown);
    state.pcie_lanes = caller.ask<unsigned int>("PCIe lanes", call_.pcie_lanes, device);
    state.max_pcie_lanes = caller.ask<unsigned int>("PCIe lanes", call_.max_pcie_lanes, device);
    state.notes = faults.notes();
    return state;
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
  // Processes may come between the question how many there are and the next, so the list is larger.
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
    return nullptr;  // which the library refuses
  }

  // The present of a pair "present, after the next reset".
  template <class Value, class Function>
  static std::optional<bool> ask_mode(std::string_view figure, Function function, nvml::Device device,
                                      FaultLog& faults) {
    Value now{}, pending{};
    if (function == nullptr) return std::nullopt;
    if (const nvml::Status status = function(device, &now, &pending); status != 0) {
      faults.record(figure, nvml::describe_status(status));
      return std::nullopt;
    }
    return now != 0;
  }

  SharedLibrary library_;
  nvml::Functions call_;
  std::vector<NvmlDevice> devices_;
};

}  // namespace

OpenedLibrary open_nvml(const char* name) {
  std::optional<SharedLibrary> library = SharedLibrary::open(name);
  if (!library) return {};
  const nvml::Functions functions = nvml::find_functions(*library);
  if (functions.init == nullptr) return {nullptr, fmt::format("NVML ({}) has no nvmlInit_v2, so it is no NVML", name)};
  if (const nvml::Status status = functions.init(); status != 0)
    return {nullptr, fmt::format("NVML ({}) does not start: {}", name, nvml::describe_status(status))};
  auto opened = std::make_unique<Nvml>(std::move(*library), functions);
  if (opened->devices().empty()) return {nullptr, fmt::format("NVML ({}) sees no GPU", name)};
  return {std::move(opened), ""};
}

}  // namespace tprimat
