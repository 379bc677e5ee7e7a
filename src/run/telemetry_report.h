#pragma once

#include <optional>
#include <string>
#include <vector>

#include "result/run_result.h"
#include "telemetry/sampler.h"
#include "telemetry/sensor_summary.h"

namespace tprimat {

// What the sensors said over the steady steps, in the form of a result. On `cpu` the process tree comes first, then the
// machine and its energy counter; on GPU platforms the devices: all together first ("nvml"), then each ("nvml:0"), then
// the host.
std::vector<TelemetrySummary> report_telemetry(const std::vector<SensorTrace>& traces, const TimeWindow& window,
                                               Platform platform);

// Who measured the memory figures, in words; nothing when nobody did.
std::optional<std::string> describe_memory_sources(const RunResult& result);

// Hardware threads of the machine, and those of them that the run may use.
struct ThreadCounts {
  int64_t machine = 1, run = 1;
};

// A sentence when other processes kept a busy machine busy during the steady steps, so that the run was slower than it
// would be alone.
std::optional<std::string> find_disturbance(const std::vector<TelemetrySummary>& telemetry,
                                            const ThreadCounts& threads);

}  // namespace tprimat
