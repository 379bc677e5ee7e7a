#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/sampler.h"

namespace tprimat {

// Facts of one device that a file states beside its readings.
struct TelemetryDevice {
  std::string source;  // as in the trace: "nvidia-smi:0", "rocm-smi:3", "amd-smi:1"
  std::optional<std::string> name;
  std::optional<double> memory_total_bytes;
  std::optional<double> peak_memory_fraction;  // 0..1; where a tool prints the percentage instead of bytes
  // Highest share of an interval, 0..1, in which the power or the thermal limit throttled the clock, and whether the
  // thermal one was ever active.
  std::optional<double> peak_power_throttling, peak_thermal_throttling;
  std::optional<bool> thermal_throttling_seen;
};

// A recording of a monitoring tool, in the form of our own recordings.
struct TelemetryFile {
  std::string format;                    // "nvidia-smi csv"
  bool timed = false;                    // false: unix_time of every reading is 0, so they cannot be joined with steps
  std::vector<SensorTrace> traces;       // one per device; readings in the order of time, else of the file
  std::vector<TelemetryDevice> devices;  // in the order of `traces`
  std::vector<std::string> notes;        // sentences a reader must know before trusting the figures
};

// Files of nvidia-smi (--format=csv, dmon), rocm-smi (table, listing, --json, --csv) and amd-smi (monitor and metric:
// table, --csv, --json), recognised by their content. Throws Error for any other file and for tables that do not name
// their columns.
TelemetryFile load_telemetry_file(const std::filesystem::path& path);
TelemetryFile read_telemetry_text(std::string_view text, std::string_view where);

}  // namespace tprimat
