#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result/run_result.h"
#include "telemetry/sampler.h"
#include "telemetry/sensor_summary.h"

namespace tprimat::suite {

// Names of the sensors of the whole machine's and of the run's own processor time.
inline constexpr std::string_view k_machine_source = "proc:machine", k_own_source = "proc";

// Whether a sensor of that name is one of a GPU.
bool is_gpu_source(const std::string& source);

// The sensors' readings over the steady steps, in the form of a result. On `cpu` the process tree comes first, then the
// machine and its energy counter; on GPU platforms the devices: all together first ("nvml"), then each ("nvml:0"), then
// the host.
std::vector<TelemetrySummary> report_telemetry(const std::vector<SensorTrace>& traces, const TimeWindow& window,
                                               Platform platform);

// From the end of the warm-up to the last step, by the time stamps of the log that the result came from; nothing where
// it has none.
std::optional<TimeWindow> steady_window(const RunResult& result);

// The source of the memory figures, as a phrase; nothing if they were not measured.
std::optional<std::string> describe_memory_sources(const RunResult& result);

// Hardware threads of the machine, and the number that the run may use.
struct ThreadCounts {
  int64_t machine = 1, run = 1;
};

// Busy shares, 0..1: of the machine's threads, and of those that the run may use.
struct BusyShares {
  double machine = 0.0, own = 0.0;
};

// How many hardware threads other processes kept busy while the machine had no idle ones; nothing otherwise.
std::optional<double> count_others_threads(const BusyShares& busy, const ThreadCounts& threads);

// How many hardware threads other processes kept busy during the steady steps, if the machine had no idle ones, so that
// they slowed the run down; nothing otherwise.
std::optional<double> count_others_threads(const std::vector<TelemetrySummary>& telemetry, const ThreadCounts& threads);

// A warning for every device that heat or its board slowed down.
void note_throttling(RunResult& result);

// Writes that count into the machine's entry, for the audit, and a warning into the result.
void note_disturbance(RunResult& result, const ThreadCounts& threads);

}  // namespace tprimat::suite
