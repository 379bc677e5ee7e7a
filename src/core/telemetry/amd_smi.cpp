#include "telemetry/amd_smi_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "telemetry/gpu_libraries.h"
#include "telemetry/small_files.h"
#include "telemetry/vendor_library.h"
#include "text/words.h"

namespace tprimat {
namespace {

constexpr uint32_t k_max_handles = 256;  // a larger count is a broken library's
constexpr uint32_t k_partition_text_size = 64;
constexpr int64_t k_stream_processors_per_unit = 64;  // as AMD counts them, of CDNA and RDNA alike
constexpr std::string_view k_not_told = "not supported by this device";

using amd_smi::Handle;

// `list(&count, nullptr)` returns the number, and a second call with an array of that size lists them.
template <class List>
std::vector<Handle> list_handles(List&& list) {
  uint32_t count = 0;
  if (list(&count, nullptr) != 0 || count == 0) return {};
  count = std::min(count, k_max_handles);
  std::vector<Handle> handles(k_max_handles, nullptr);  // larger than the count, in case there are more by now
  if (list(&count, handles.data()) != 0) return {};
  handles.resize(std::min(count, k_max_handles));
  return handles;
}

class AmdSmi : public VendorLibrary<amd_smi::Functions<SharedLibrary>, amd_smi::describe_status> {
 public:
  using VendorLibrary::VendorLibrary;

  std::string start() {
    if (call_.init == nullptr || call_.version == nullptr) return "lacks amdsmi_init or amdsmi_get_lib_version";
    std::string refusal = start_library(amd_smi::k_init_gpus);
    if (!refusal.empty()) return refusal;
    const bool told = call_.version(&version_) == 0;
    if (!told || version_.first < amd_smi::k_oldest_known || version_.first > amd_smi::k_newest_known)
      return fmt::format("has version {}; this program supports versions {} to {}", version_.first,
                         amd_smi::k_oldest_known, amd_smi::k_newest_known);
    list_gpus();
    return "";
  }

  std::string name() const override { return "amd_smi"; }
  std::optional<std::string> stack_version() const override { return read_small_file("/opt/rocm/.info/version"); }

  std::optional<std::string> driver_version() const override {
    if (gpus_.empty()) return std::nullopt;
    return ask_text(call_.driver, gpus_.front());
  }

  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> facts;
    for (const Handle gpu : gpus_) {
      GpuFacts each{Platform::amd, static_cast<int64_t>(facts.size()), {}, {}, {}, {}};
      each.name = ask_text(call_.asic, gpu).value_or("unknown AMD device");
      each.memory_bytes = caller().scaled("memory", 1.0, call_.memory_total, gpu, amd_smi::k_memory_vram);
      if (const auto cap = caller().value("limit", call_.power_cap, gpu, 0U);
          cap && cap->now > 0 && amd_smi::is_told(cap->now))
        each.power_limit_watts = static_cast<double>(cap->now) * 1e-6;
      if (const auto kfd = caller().value("compute units", call_.kfd, gpu); kfd && amd_smi::is_told(kfd->id))
        each.compute_units = read_kfd_compute_units("/sys/class/kfd/kfd/topology/nodes", kfd->id);
      if (each.compute_units) each.cores = *each.compute_units * k_stream_processors_per_unit;
      facts.push_back(plausible_facts(std::move(each)));
    }
    return facts;
  }

  Reading read(int64_t index, FaultLog& faults) const override {
    Reading reading = reading_of_now();
    const Handle gpu = find_gpu(index);
    const LibraryCaller ask = caller(&faults);
    if (const auto energy = read_energy(ask, call_.energy, gpu))
      reading.energy_joules =
          told("energy counter", energy->counter, static_cast<double>(energy->microjoules) * 1e-6, ask);
    if (const auto power = ask.value("power", call_.power, gpu)) {
      reading.power_watts = amd_smi::power_watts(*power, version_);
      if (!reading.power_watts) ask.record("power", k_not_told);
    }
    reading.temperature_celsius = ask.scaled("temperature", 1.0, call_.temperature, gpu, amd_smi::k_temperature_hotspot,
                                             amd_smi::k_temperature_current);
    reading.clock_hz = read_clock("clock", gpu, amd_smi::k_clock_gfx, ask);
    reading.memory_clock_hz = read_clock("memory clock", gpu, amd_smi::k_clock_memory, ask);
    reading.memory_used_bytes = ask.scaled("memory", 1.0, call_.memory_used, gpu, amd_smi::k_memory_vram);
    if (const auto activity = ask.value("utilisation", call_.activity, gpu))
      reading.utilisation = told("utilisation", activity->gfx, 0.01, ask);
    reading.throttle = read_throttle(gpu, ask);
    return reading;
  }

  std::vector<GpuHolder> holders(int64_t index) const override {
    const auto kfd = caller().value("processes", call_.kfd, find_gpu(index));
    if (!kfd || !amd_smi::is_told(kfd->id)) return {};
    return read_kfd_holders("/sys/class/kfd/kfd/proc", kfd->id);
  }

 private:
  void describe(int64_t index, GpuState& state, FaultLog& faults) const override {
    const LibraryCaller ask = caller(&faults);
    const Handle gpu = find_gpu(index);
    if (const auto errors = ask.value("uncorrected errors", call_.errors, gpu);
        errors && amd_smi::is_told(errors->uncorrectable)) {
      state.ecc = true;  // errors are counted only with ECC on
      state.uncorrected_errors = static_cast<int64_t>(errors->uncorrectable);
    }
    if (const auto clock = ask.value("highest clock", call_.clock, gpu, amd_smi::k_clock_gfx);
        clock && amd_smi::is_told(clock->highest) && clock->highest > 0)
      state.max_clock_hz = clock->highest * 1e6;
    char text[k_partition_text_size] = {};
    if (call_.partition != nullptr && call_.partition(gpu, text, k_partition_text_size - 1) == 0 && text[0] != 0)
      state.partition = text;
  }

  void list_gpus() {
    if (call_.sockets == nullptr || call_.processors == nullptr) return;
    for (const Handle socket : list_handles(call_.sockets))
      for (const Handle processor :
           list_handles([&](uint32_t* count, Handle* handles) { return call_.processors(socket, count, handles); })) {
        int type = amd_smi::k_processor_gpu;
        if (call_.processor_type != nullptr && call_.processor_type(processor, &type) != 0) continue;
        if (type == amd_smi::k_processor_gpu) gpus_.push_back(processor);
      }
  }

  Handle find_gpu(int64_t index) const {
    const auto place = static_cast<size_t>(index);
    return place < gpus_.size() ? gpus_[place] : nullptr;  // which the library rejects
  }

  template <class Function>
  static std::optional<std::string> ask_text(Function function, Handle gpu) {
    amd_smi::Text answer;
    if (function == nullptr || function(gpu, &answer) != 0) return std::nullopt;
    answer.text[sizeof answer.text - 1] = 0;
    if (answer.text[0] == 0) return std::nullopt;
    return answer.text;
  }

  static std::optional<double> told(std::string_view figure, uint64_t value, double unit, const LibraryCaller& ask) {
    if (amd_smi::is_told(value)) return static_cast<double>(value) * unit;
    ask.record(figure, k_not_told);
    return std::nullopt;
  }

  std::optional<double> read_clock(std::string_view figure, Handle gpu, int type, const LibraryCaller& ask) const {
    const auto clock = ask.value(figure, call_.clock, gpu, type);
    return clock ? told(figure, clock->now, 1e6, ask) : std::nullopt;
  }

  // Chips up to MI250 give a mask; MI300 counts the cycles that each limit held instead.
  std::optional<uint32_t> read_throttle(Handle gpu, const LibraryCaller& ask) const {
    const auto metrics = ask.value("throttle reasons", call_.metrics, gpu);
    if (!metrics) return std::nullopt;
    if (amd_smi::is_told(metrics->throttle)) return amd_smi::to_throttle(metrics->throttle);
    if (metrics->residency.cycles == 0 || !amd_smi::is_told(metrics->residency.cycles)) {
      ask.record("throttle reasons", k_not_told);
      return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    const auto before = residencies_.find(gpu);
    std::optional<uint32_t> throttle;
    if (before != residencies_.end()) throttle = amd_smi::to_throttle(before->second, metrics->residency);
    residencies_[gpu] = metrics->residency;
    return throttle;
  }

  amd_smi::Version version_;
  std::vector<Handle> gpus_;
  mutable std::mutex mutex_;                                  // guards residencies_
  mutable std::map<Handle, amd_smi::Residency> residencies_;  // of the reading before
};

}  // namespace

std::vector<GpuHolder> read_kfd_holders(const std::filesystem::path& processes, uint64_t device) {
  std::vector<GpuHolder> holders;
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator(processes, error)) {
    const auto number = parse_number<int64_t>(process.path().filename().string());
    const auto bytes = read_small_number(process.path() / fmt::format("vram_{}", device));
    if (number && bytes && *bytes > 0.0) holders.push_back({*number, *bytes});
  }
  return holders;
}

std::optional<int64_t> read_kfd_compute_units(const std::filesystem::path& nodes, uint64_t device) {
  std::error_code error;
  for (const auto& node : std::filesystem::directory_iterator(nodes, error)) {
    if (read_small_file(node.path() / "gpu_id") != std::to_string(device)) continue;
    const std::string properties = read_small_file(node.path() / "properties").value_or("");
    std::optional<int64_t> units, per_unit;
    for (const std::string_view line : split(properties, '\n')) {
      const size_t blank = std::min(line.find(' '), line.size());
      const auto value = parse_number<int64_t>(line.substr(std::min(blank + 1, line.size())));
      if (line.substr(0, blank) == "simd_count") units = value;
      if (line.substr(0, blank) == "simd_per_cu") per_unit = value;
    }
    if (units && per_unit && *units > 0 && *per_unit > 0) return *units / *per_unit;
  }
  return std::nullopt;
}

OpenedLibrary open_amd_smi(const char* name) {
  const std::vector<const char*> usual = {"libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24", "libamd_smi.so",
                                          "/opt/rocm/lib/libamd_smi.so"};
  return start_vendor_library<AmdSmi>(SharedLibrary::open(name != nullptr ? std::vector{name} : usual),
                                      "AMD SMI (libamd_smi)");
}

namespace amd_smi {

// Where amdsmi_gpu_metrics_t of versions 24 to 26 has indep_throttle_status and accumulation_counter.
static_assert(offsetof(Metrics, throttle) == 112 && offsetof(Metrics, residency) == 424);

std::string_view describe_status(Status status) {
  switch (status) {
    case 1: return "the library rejects the request";
    case 2:
    case 3: return "not supported by this device";
    case 8: return "the driver did not answer in time";
    case 10: return "no permission";
    case 12: return "the device cannot be read";
    case 30: return "the device is busy";
    case 31: return "the device is not found";
    case 32: return "the library is not initialised";
    case 34: return "the driver is not loaded";
    case 40: return "no data";
    case 42:
    case 43: return "the driver's data are not what the library expects";
    default: return "the library reports an error";
  }
}

bool is_told(uint64_t value) { return value != UINT16_MAX && value != UINT32_MAX && value != UINT64_MAX; }

std::optional<double> power_watts(const Power& power, const Version& version) {
  // Until ROCm 6.3 the pair comes first; since 6.4, which is version 25.25, a 64-bit socket_power stands before it.
  const bool pair_first = version.first <= 24 || (version.first == 25 && version.second < 25);
  const size_t first = pair_first ? 0 : 2;
  for (const size_t word : {first, first + 1})
    if (is_told(power.words[word]) && power.words[word] != 0) return power.words[word];
  return std::nullopt;
}

uint32_t to_throttle(uint64_t status) {
  // Groups of amdgpu_smu.h: 0 to 15 power, 16 to 31 current, 32 to 45 temperature, 46 and 47 PROCHOT.
  constexpr uint64_t k_power = 0xffff, k_current = 0xffff0000, k_heat = 0x3fff00000000, k_prochot = 0xc00000000000;
  return throttle_bits({{(status & k_power) != 0, k_throttle_power},
                        {(status & k_current) != 0, k_throttle_current},
                        {(status & k_heat) != 0, k_throttle_thermal},
                        {(status & k_prochot) != 0, k_throttle_hardware}});
}

uint32_t to_throttle(const Residency& before, const Residency& now) {
  const auto grew = [](uint64_t a, uint64_t b) { return is_told(a) && is_told(b) && b > a; };
  return throttle_bits({{grew(before.power, now.power), k_throttle_power},
                        {grew(before.socket_heat, now.socket_heat), k_throttle_thermal},
                        {grew(before.regulator_heat, now.regulator_heat), k_throttle_thermal},
                        {grew(before.memory_heat, now.memory_heat), k_throttle_thermal},
                        {grew(before.prochot, now.prochot), k_throttle_hardware}});
}

}  // namespace amd_smi

}  // namespace tprimat
