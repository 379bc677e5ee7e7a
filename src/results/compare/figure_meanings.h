#pragma once

#include <optional>
#include <string>

#include "compare/differences.h"

namespace tprimat::results {

// The meaning of a run's figure, as text; nothing if unknown. Figures with different meanings are not compared:
// Metric::unlike names the rules.
using Text = std::optional<std::string>;
Text warmup_rule(const RunResult& run);
Text record_span(const RunResult& run);
Text total_steps(const RunResult& run);
Text loss_steps(const RunResult& run);
Text memory_source(const RunResult& run);
Text power_source(const RunResult& run);
Text energy_source(const RunResult& run);
Text formula(const RunResult& run);
Text peak_kind(const RunResult& run);

// The difference between the meanings in two runs; nothing if there is none or a side is unknown.
Shown check_memory(const RunResult& reference, const RunResult& subject);
Shown check_price(const RunResult& reference, const RunResult& subject);  // of one device
Shown check_peak_value(const RunResult& reference, const RunResult& subject);

// Every input of these checks, as bytes.
std::string state_meanings(const RunResult& run);

// USD per hour of one device.
std::optional<double> device_price(const RunResult& run);

// How many devices one entry of RunResult::telemetry covers: all, where it does not tell.
int64_t devices_of(const RunResult& run, const TelemetrySummary& entry);

}  // namespace tprimat::results
