#pragma once

#include <optional>

#include "telemetry/fault_log.h"
#include "telemetry/gpu_library.h"
#include "telemetry/sensor.h"

namespace tprimat {

// What is known of a device before it is read.
struct ReadingLimits {
  std::optional<double> memory_bytes, power_limit_watts;
};

// Drivers say 0, 255 or the largest integer for what they do not know, and worse when a board fails. Figures that no
// GPU has are taken out of the reading and recorded.
void drop_implausible(Reading& reading, const ReadingLimits& limits, FaultLog& faults);

// The same for what a device says of itself, whose name becomes printable.
GpuFacts plausible_facts(GpuFacts facts);
ReadingLimits limits_of(const GpuFacts& facts);

}  // namespace tprimat
