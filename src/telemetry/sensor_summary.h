#pragma once

#include <optional>
#include <string>

#include "telemetry/sampler.h"

namespace tprimat {

// Seconds since 1970.
struct TimeWindow {
  double begin = 0.0, end = 0.0;
  double seconds() const { return end - begin; }
};

// One sensor over a window. What it did not say is absent.
struct SensorSummary {
  std::string source;
  size_t samples = 0;  // within the window
  std::optional<double> interval_seconds, mean_utilisation, mean_power_watts, energy_joules, peak_memory_bytes;
  std::optional<double> mean_temperature_celsius, mean_clock_hz;
  std::optional<bool> energy_valid;        // false: the energy figure must not be used
  std::optional<std::string> energy_note;  // how it was measured, or why it is not valid
};

// Energy comes from the hardware counter where there is one, interpolated to the edges of the window, and is checked
// against integrated power where that is known too; without a counter, power is integrated by trapezoids. It is not
// valid when the readings do not cover the window, leave a gap of more than 5 s, or when the two methods differ by more
// than 10 %. Peak memory is over all readings, since memory is often highest before the window.
SensorSummary summarise_readings(const SensorTrace& trace, const TimeWindow& window);

}  // namespace tprimat
