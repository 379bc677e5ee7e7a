#include "telemetry/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace tprimat {
namespace {

// The few declarations we need of nvml.h, as the NVML API reference gives them. Zero means success everywhere.
using Device = void*;
using Status = int;
struct Memory {
  unsigned long long total, free, used;  // bytes
};
struct Utilization {
  unsigned int gpu, memory;  // percent
};
struct NvmlProcess {
  unsigned int process;
  unsigned long long memory;  // bytes; k_unknown_memory where the driver does not say
  unsigned int gpu_instance, compute_instance;
};
constexpr unsigned long long k_unknown_memory = ~0ULL;
constexpr int k_insufficient_size = 7;
constexpr int k_temperature_gpu = 0;
constexpr int k_clock_sm = 1;
constexpr unsigned int k_nvml_text_size = 96;

struct NvmlFunctions {
  Status (*init)();
  Status (*shutdown)();
  Status (*driver_version)(char*, unsigned int);
  Status (*cuda_version)(int*);
  Status (*count)(unsigned int*);
  Status (*handle)(unsigned int, Device*);
  Status (*name)(Device, char*, unsigned int);
  Status (*memory)(Device, Memory*);
  Status (*power)(Device, unsigned int*);             // mW
  Status (*power_limit)(Device, unsigned int*);       // mW
  Status (*energy)(Device, unsigned long long*);      // mJ since the driver was loaded
  Status (*temperature)(Device, int, unsigned int*);  // degrees Celsius
  Status (*clock)(Device, int, unsigned int*);        // MHz
  Status (*utilization)(Device, Utilization*);
  Status (*cores)(Device, unsigned int*);
  Status (*processes)(Device, unsigned int*, NvmlProcess*);  // count: room, then how many there are
};

NvmlFunctions find_nvml_functions(const SharedLibrary& library) {
  const auto bind = [&]<class Result, class... Arguments>(Result (*&function)(Arguments...), const char* symbol) {
    function = library.find<Result(Arguments...)>(symbol);
  };
  NvmlFunctions found{};
  bind(found.init, "nvmlInit_v2");
  bind(found.shutdown, "nvmlShutdown");
  bind(found.driver_version, "nvmlSystemGetDriverVersion");
  bind(found.cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
  bind(found.count, "nvmlDeviceGetCount_v2");
  bind(found.handle, "nvmlDeviceGetHandleByIndex_v2");
  bind(found.name, "nvmlDeviceGetName");
  bind(found.memory, "nvmlDeviceGetMemoryInfo");
  bind(found.power, "nvmlDeviceGetPowerUsage");
  bind(found.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  bind(found.energy, "nvmlDeviceGetTotalEnergyConsumption");
  bind(found.temperature, "nvmlDeviceGetTemperature");
  bind(found.clock, "nvmlDeviceGetClockInfo");
  bind(found.utilization, "nvmlDeviceGetUtilizationRates");
  bind(found.cores, "nvmlDeviceGetNumGpuCores");
  bind(found.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (found.processes == nullptr) bind(found.processes, "nvmlDeviceGetComputeRunningProcesses_v2");  // CUDA 11
  return found;
}

// Calls `function(arguments..., &value)`; nothing when the library lacks it or it fails.
template <class Value, class Function, class... Arguments>
std::optional<Value> ask(Function function, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(arguments..., &value) != 0) return std::nullopt;
  return value;
}

template <class Function, class... Arguments>
std::optional<std::string> ask_text(Function function, Arguments... arguments) {
  char text[k_nvml_text_size] = {};
  if (function == nullptr || function(arguments..., text, k_nvml_text_size - 1) != 0) return std::nullopt;
  return text;
}

template <class Value>
std::optional<double> scaled(std::optional<Value> value, double unit) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value) * unit;
}

class Nvml : public GpuLibrary {
 public:
  Nvml(SharedLibrary library, const NvmlFunctions& functions) : library_(std::move(library)), call_(functions) {
    const unsigned int count = ask<unsigned int>(call_.count).value_or(0);
    for (unsigned int i = 0; i < count; ++i)
      if (const auto handle = ask<Device>(call_.handle, i)) devices_.push_back(*handle);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() override {
    if (call_.shutdown != nullptr) call_.shutdown();
  }

  std::string name() const override { return "nvml"; }
  std::optional<std::string> driver_version() const override { return ask_text(call_.driver_version); }

  std::optional<std::string> stack_version() const override {
    const auto version = ask<int>(call_.cuda_version);  // 12040 is 12.4
    if (!version) return std::nullopt;
    return fmt::format("{}.{}", *version / 1000, *version % 1000 / 10);
  }

  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> facts;
    for (const Device device : devices_) {
      GpuFacts gpu{Platform::nvd,
                   static_cast<int64_t>(facts.size()),
                   ask_text(call_.name, device).value_or("unknown NVIDIA device"),
                   {},
                   {},
                   {}};
      if (const auto memory = ask<Memory>(call_.memory, device)) gpu.memory_bytes = static_cast<double>(memory->total);
      gpu.power_limit_watts = scaled(ask<unsigned int>(call_.power_limit, device), 1e-3);
      if (const auto cores = ask<unsigned int>(call_.cores, device)) gpu.cores = *cores;
      facts.push_back(std::move(gpu));
    }
    return facts;
  }

  Reading read(int64_t index) const override {
    const Device device = devices_.at(static_cast<size_t>(index));
    Reading reading;
    reading.unix_time = unix_time_seconds();
    reading.energy_joules = scaled(ask<unsigned long long>(call_.energy, device), 1e-3);
    reading.power_watts = scaled(ask<unsigned int>(call_.power, device), 1e-3);
    reading.temperature_celsius = scaled(ask<unsigned int>(call_.temperature, device, k_temperature_gpu), 1.0);
    reading.clock_hz = scaled(ask<unsigned int>(call_.clock, device, k_clock_sm), 1e6);
    if (const auto memory = ask<Memory>(call_.memory, device))
      reading.memory_used_bytes = static_cast<double>(memory->used);
    if (const auto busy = ask<Utilization>(call_.utilization, device)) reading.utilisation = busy->gpu * 0.01;
    return reading;
  }

  std::vector<GpuHolder> holders(int64_t index) const override {
    const Device device = devices_.at(static_cast<size_t>(index));
    std::vector<GpuHolder> holders;
    for (const NvmlProcess& each : list_processes(device)) {
      holders.push_back({each.process, {}});
      if (each.memory != k_unknown_memory) holders.back().memory_bytes = static_cast<double>(each.memory);
    }
    return holders;
  }

 private:
  // Processes may come between the question how many there are and the next, so there is room for more.
  std::vector<NvmlProcess> list_processes(Device device) const {
    if (call_.processes == nullptr) return {};
    constexpr unsigned int k_most = 1U << 16;
    for (unsigned int room = 64; room <= k_most; room *= 4) {
      std::vector<NvmlProcess> list(room);
      unsigned int count = room;
      const Status status = call_.processes(device, &count, list.data());
      if (status == k_insufficient_size) continue;
      list.resize(status == 0 ? std::min(count, room) : 0);
      return list;
    }
    return {};
  }

  SharedLibrary library_;
  NvmlFunctions call_;
  std::vector<Device> devices_;
};

}  // namespace

std::unique_ptr<GpuLibrary> open_nvml(const char* name) {
  std::optional<SharedLibrary> library = SharedLibrary::open(name);
  if (!library) return nullptr;
  const NvmlFunctions functions = find_nvml_functions(*library);
  if (functions.init == nullptr || functions.init() != 0) return nullptr;
  auto nvml = std::make_unique<Nvml>(std::move(*library), functions);
  if (nvml->devices().empty()) return nullptr;
  return nvml;
}

}  // namespace tprimat
