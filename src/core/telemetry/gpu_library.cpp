#include "telemetry/gpu_library.h"

#include <fmt/format.h>

#include <cmath>

#include "text/format.h"

namespace tprimat {
namespace {

constexpr double k_max_watts = 10e3;      // of one device; the largest of 2026 draws 1.4 kW
constexpr double k_max_over_limit = 2.5;  // short peaks reach 1.5 times the limit
constexpr double k_max_celsius = 150.0;   // silicon is switched off at about 110
constexpr double k_max_hertz = 10e9;
constexpr double k_max_memory_bytes = 10e12;  // where the device does not report its size
constexpr int64_t k_max_cores = 1'000'000;
constexpr double k_max_joules = 1e12;  // 1 kW for thirty years

struct PossibleRange {
  double lowest, highest;  // both possible
};

bool is_within(const std::optional<double>& value, const PossibleRange& range) {
  return value && std::isfinite(*value) && *value >= range.lowest && *value <= range.highest;
}

struct CheckedFigure {
  std::string_view name, reason, unit;
  double unit_size;
};

void keep_within(std::optional<double>& value, const PossibleRange& range, const CheckedFigure& figure,
                 FaultLog& faults) {
  if (!value || is_within(value, range)) return;
  faults.record(figure.name, figure.reason, fmt::format("{:.6g} {}", *value / figure.unit_size, figure.unit));
  value.reset();
}

}  // namespace

GpuState GpuLibrary::state(int64_t device) const {
  GpuState state;
  FaultLog faults;
  faults.count_reading();
  state.now = read(device, faults);
  describe(device, state, faults);
  state.notes = faults.notes();
  return state;
}

void drop_implausible(Reading& reading, const GpuFacts& gpu, FaultLog& faults) {
  const double watts = gpu.power_limit_watts ? k_max_over_limit * *gpu.power_limit_watts : k_max_watts;
  const double bytes = gpu.memory_bytes.value_or(k_max_memory_bytes);
  keep_within(reading.power_watts, {1e-3, watts}, {"power", "no GPU draws that", "W", 1.0}, faults);
  keep_within(reading.energy_joules, {0.0, k_max_joules}, {"energy counter", "no counter reads that", "J", 1.0},
              faults);
  keep_within(reading.temperature_celsius, {1.0, k_max_celsius}, {"temperature", "no GPU runs at that", "C", 1.0},
              faults);
  keep_within(reading.clock_hz, {1e6, k_max_hertz}, {"clock", "no GPU runs at that", "MHz", 1e6}, faults);
  keep_within(reading.memory_clock_hz, {1e6, k_max_hertz}, {"memory clock", "no GPU runs at that", "MHz", 1e6}, faults);
  keep_within(reading.utilisation, {0.0, 1.0}, {"utilisation", "a share lies between 0 and 100 %", "%", 0.01}, faults);
  keep_within(reading.memory_used_bytes, {0.0, bytes}, {"memory", "more than the device has", "GB", 1e9}, faults);
}

GpuFacts plausible_facts(GpuFacts facts) {
  if (!is_within(facts.memory_bytes, {1e6, k_max_memory_bytes})) facts.memory_bytes.reset();
  if (!is_within(facts.power_limit_watts, {1.0, k_max_watts})) facts.power_limit_watts.reset();
  if (!(facts.cores.value_or(0) > 0 && *facts.cores < k_max_cores)) facts.cores.reset();
  if (!(facts.compute_units.value_or(0) > 0 && *facts.compute_units < k_max_cores)) facts.compute_units.reset();
  facts.name = printable(facts.name);
  return facts;
}

}  // namespace tprimat
