#include "telemetry/amd_smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "telemetry/amd_smi_functions.h"
#include "telemetry/library_call.h"
#include "telemetry/plausible.h"
#include "telemetry/small_files.h"

namespace tprimat {
namespace {

constexpr uint32_t k_max_handles = 256;  // a larger count is a broken library's
constexpr uint32_t k_partition_text_size = 64;

using amd_smi::Handle;

std::optional<int64_t> parse_process_number(const std::string& name) {
  if (name.empty() || name.size() > 12 || name.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(name);
}

// `list(&count, nullptr)` tells how many there are, and a second call with an array of that size lists them.
template <class List>
std::vector<Handle> list_handles(List&& list) {
  uint32_t count = 0;
  if (list(&count, nullptr) != 0 || count == 0) return {};
  count = std::min(count, k_max_handles);
  std::vector<Handle> handles(k_max_handles, nullptr);  // larger, should there be more by now
  if (list(&count, handles.data()) != 0) return {};
  handles.resize(std::min(count, k_max_handles));
  return handles;
}

std::vector<Handle> list_gpus(const amd_smi::Functions& call) {
  std::vector<Handle> gpus;
  if (call.sockets == nullptr || call.processors == nullptr) return gpus;
  for (const Handle socket : list_handles(call.sockets))
    for (const Handle processor :
         list_handles([&](uint32_t* count, Handle* handles) { return call.processors(socket, count, handles); })) {
      int type = amd_smi::k_processor_gpu;
      if (call.processor_type != nullptr && call.processor_type(processor, &type) != 0) continue;
      if (type == amd_smi::k_processor_gpu) gpus.push_back(processor);
    }
  return gpus;
}

class AmdSmi : public GpuLibrary {
 public:
  AmdSmi(SharedLibrary library, const amd_smi::Functions& functions, const amd_smi::Version& version)
      : library_(std::move(library)), call_(functions), version_(version), gpus_(list_gpus(functions)) {}
  AmdSmi(const AmdSmi&) = delete;
  AmdSmi& operator=(const AmdSmi&) = delete;
  ~AmdSmi() override {
    if (call_.shutdown != nullptr) call_.shutdown();
  }

  std::string name() const override { return "amd_smi"; }
  std::optional<std::string> stack_version() const override { return read_small_file("/opt/rocm/.info/version"); }

  std::optional<std::string> driver_version() const override {
    if (gpus_.empty()) return std::nullopt;
    return ask_text(call_.driver, gpus_.front());
  }

  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> facts;
    FaultLog ignored;
    const LibraryCaller caller{ignored, amd_smi::describe_status};
    for (const Handle gpu : gpus_) {
      GpuFacts each{Platform::amd, static_cast<int64_t>(facts.size()), {}, {}, {}, {}};
      each.name = ask_text(call_.asic, gpu).value_or("unknown AMD device");
      each.memory_bytes = caller.ask_scaled<uint64_t>("memory", 1.0, call_.memory_total, gpu, amd_smi::k_memory_vram);
      if (const auto cap = caller.ask<amd_smi::PowerCap>("limit", call_.power_cap, gpu, 0U);
          cap && cap->now > 0 && amd_smi::is_told(cap->now))
        each.power_limit_watts = static_cast<double>(cap->now) * 1e-6;
      facts.push_back(plausible_facts(std::move(each)));
    }
    return facts;
  }

  Reading read(int64_t index, FaultLog& faults) const override {
    Reading reading;
    reading.unix_time = unix_time_seconds();
    const Handle gpu = find_gpu(index);
    const LibraryCaller caller{faults, amd_smi::describe_status};
    reading.energy_joules = read_energy(gpu, faults);
    reading.power_watts = read_power(gpu, caller);
    reading.temperature_celsius = caller.ask_scaled<int64_t>(
        "temperature", 1.0, call_.temperature, gpu, amd_smi::k_temperature_hotspot, amd_smi::k_temperature_current);
    reading.clock_hz = read_clock("clock", gpu, amd_smi::k_clock_gfx, caller);
    reading.memory_clock_hz = read_clock("memory clock", gpu, amd_smi::k_clock_memory, caller);
    reading.memory_used_bytes =
        caller.ask_scaled<uint64_t>("memory", 1.0, call_.memory_used, gpu, amd_smi::k_memory_vram);
    if (const auto activity = caller.ask<amd_smi::Activity>("utilisation", call_.activity, gpu))
      reading.utilisation = told("utilisation", activity->gfx, 0.01, faults);
    reading.throttle = read_throttle(gpu, caller);
    return reading;
  }

  GpuState state(int64_t index) const override {
    GpuState state;
    FaultLog faults;
    faults.count_reading();
    const LibraryCaller caller{faults, amd_smi::describe_status};
    const Handle gpu = find_gpu(index);
    state.now = read(index, faults);
    if (const auto errors = caller.ask<amd_smi::ErrorCount>("uncorrected errors", call_.errors, gpu);
        errors && amd_smi::is_told(errors->uncorrectable)) {
      state.ecc = true;  // errors are counted only where they are looked for
      state.uncorrected_errors = static_cast<int64_t>(errors->uncorrectable);
    }
    if (const auto clock = caller.ask<amd_smi::Clock>("highest clock", call_.clock, gpu, amd_smi::k_clock_gfx);
        clock && amd_smi::is_told(clock->highest) && clock->highest > 0)
      state.max_clock_hz = clock->highest * 1e6;
    char text[k_partition_text_size] = {};
    if (call_.partition != nullptr && call_.partition(gpu, text, k_partition_text_size - 1) == 0 && text[0] != 0)
      state.partition = text;
    state.notes = faults.notes();
    return state;
  }

  std::vector<GpuHolder> holders(int64_t index) const override {
    FaultLog ignored;
    const LibraryCaller caller{ignored, amd_smi::describe_status};
    const auto kfd = caller.ask<amd_smi::KfdInfo>("processes", call_.kfd, find_gpu(index));
    if (!kfd || !amd_smi::is_told(kfd->id)) return {};
    return read_kfd_holders("/sys/class/kfd/kfd/proc", kfd->id);
  }

 private:
  Handle find_gpu(int64_t index) const {
    const auto place = static_cast<size_t>(index);
    return place < gpus_.size() ? gpus_[place] : nullptr;  // which the library refuses
  }

  template <class Function>
  static std::optional<std::string> ask_text(Function function, Handle gpu) {
    amd_smi::Text answer;
    if (function == nullptr || function(gpu, &answer) != 0) return std::nullopt;
    answer.text[sizeof answer.text - 1] = 0;
    if (answer.text[0] == 0) return std::nullopt;
    return answer.text;
  }

  static std::optional<double> told(std::string_view figure, uint64_t value, double unit, FaultLog& faults) {
    if (amd_smi::is_told(value)) return static_cast<double>(value) * unit;
    faults.record(figure, "not supported by this device");
    return std::nullopt;
  }

  std::optional<double> read_clock(std::string_view figure, Handle gpu, int type, const LibraryCaller& caller) const {
    const auto clock = caller.ask<amd_smi::Clock>(figure, call_.clock, gpu, type);
    return clock ? told(figure, clock->now, 1e6, caller.faults) : std::nullopt;
  }

  std::optional<double> read_power(Handle gpu, const LibraryCaller& caller) const {
    const auto power = caller.ask<amd_smi::Power>("power", call_.power, gpu);
    if (!power) return std::nullopt;
    const auto watts = amd_smi::power_watts(*power, version_);
    if (!watts) caller.faults.record("power", "not supported by this device");
    return watts;
  }

  std::optional<double> read_energy(Handle gpu, FaultLog& faults) const {
    uint64_t counter = 0, timestamp = 0;
    float microjoules = 0.0F;
    if (call_.energy == nullptr) {
      faults.record("energy counter", "this version of the library cannot tell");
      return std::nullopt;
    }
    if (const amd_smi::Status status = call_.energy(gpu, &counter, &microjoules, &timestamp); status != 0) {
      faults.record("energy counter", amd_smi::describe_status(status));
      return std::nullopt;
    }
    return told("energy counter", counter, static_cast<double>(microjoules) * 1e-6, faults);
  }

  // Chips up to MI250 give a mask; MI300 counts the cycles that each limit held instead.
  std::optional<uint32_t> read_throttle(Handle gpu, const LibraryCaller& caller) const {
    const auto metrics = caller.ask<amd_smi::Metrics>("throttle reasons", call_.metrics, gpu);
    if (!metrics) return std::nullopt;
    if (amd_smi::is_told(metrics->throttle)) return amd_smi::to_throttle(metrics->throttle);
    if (metrics->residency.cycles == 0 || !amd_smi::is_told(metrics->residency.cycles)) {
      caller.faults.record("throttle reasons", "not supported by this device");
      return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    const auto before = residencies_.find(gpu);
    std::optional<uint32_t> throttle;
    if (before != residencies_.end()) throttle = amd_smi::to_throttle(before->second, metrics->residency);
    residencies_[gpu] = metrics->residency;
    return throttle;
  }

  SharedLibrary library_;
  amd_smi::Functions call_;
  amd_smi::Version version_;
  std::vector<Handle> gpus_;
  mutable std::mutex mutex_;                                  // guards residencies_
  mutable std::map<Handle, amd_smi::Residency> residencies_;  // of the reading before
};

std::optional<SharedLibrary> open_first_amd_smi(const char* name) {
  if (name != nullptr) return SharedLibrary::open(name);
  for (const char* usual :
       {"libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24", "libamd_smi.so", "/opt/rocm/lib/libamd_smi.so"})
    if (auto library = SharedLibrary::open(usual)) return library;
  return std::nullopt;
}

}  // namespace

std::vector<GpuHolder> read_kfd_holders(const std::filesystem::path& processes, uint64_t device) {
  std::vector<GpuHolder> holders;
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator(processes, error)) {
    const auto number = parse_process_number(process.path().filename().string());
    const auto bytes = read_small_number(process.path() / fmt::format("vram_{}", device));
    if (number && bytes && *bytes > 0.0) holders.push_back({*number, *bytes});
  }
  return holders;
}

OpenedLibrary open_amd_smi(const char* name) {
  std::optional<SharedLibrary> library = open_first_amd_smi(name);
  if (!library) return {};
  const amd_smi::Functions call = amd_smi::find_functions(*library);
  if (call.init == nullptr || call.version == nullptr)
    return {nullptr, "AMD SMI (libamd_smi) lacks amdsmi_init or amdsmi_get_lib_version"};
  if (const amd_smi::Status status = call.init(amd_smi::k_init_gpus); status != 0)
    return {nullptr, fmt::format("AMD SMI (libamd_smi) does not start: {}", amd_smi::describe_status(status))};
  amd_smi::Version version;
  const bool told = call.version(&version) == 0;
  auto opened = std::make_unique<AmdSmi>(std::move(*library), call, version);  // ends what was started
  if (!told || version.first < amd_smi::k_oldest_known || version.first > amd_smi::k_newest_known)
    return {nullptr, fmt::format("AMD SMI (libamd_smi) is of version {}; versions {} to {} are known", version.first,
                                 amd_smi::k_oldest_known, amd_smi::k_newest_known)};
  if (opened->devices().empty()) return {nullptr, "AMD SMI (libamd_smi) sees no GPU"};
  return {std::move(opened), ""};
}

}  // namespace tprimat
