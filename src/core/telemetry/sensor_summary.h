#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/sampler.h"

namespace tprimat {

// Seconds since 1970.
struct TimeWindow {
  double begin = 0.0, end = 0.0;
  double seconds() const { return end - begin; }
};

// One sensor over a window. Figures that it did not measure are absent.
struct SensorSummary {
  std::string source;
  size_t samples = 0;  // within the window
  std::optional<double> interval_seconds, mean_utilisation, mean_power_watts, energy_joules, peak_memory_bytes;
  std::optional<double> mean_temperature_celsius, mean_clock_hz, mean_memory_clock_hz;
  // Share of the readings within the window in which the clock was throttled, by reason (k_throttle_names); only
  // reasons that occurred. Absent: not known.
  std::optional<std::map<std::string, double>> throttle_shares;
  std::optional<bool> energy_valid;        // false: there is no energy figure, energy_note says why
  std::optional<std::string> energy_note;  // how it was measured, or why it is not valid
  std::vector<std::string> notes;          // missing figures, and why
};

// Energy comes from the hardware counter where there is one, interpolated to the edges of the window, and is checked
// against integrated power where that is known too. Where there is no counter, or it stands still, runs backwards or
// implies more power than any device draws, power is integrated by trapezoids and the note says so. There is no figure
// when the readings do not cover the window, leave a gap of more than 5 s, or when the two methods differ by more than
// 10 %. A mean is given when most of the window's readings have its figure. Peak memory is over all readings, since
// memory is often highest before the window.
SensorSummary summarise_readings(const SensorTrace& trace, const TimeWindow& window);

}  // namespace tprimat
