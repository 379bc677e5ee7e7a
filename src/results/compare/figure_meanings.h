#pragma once

#include <optional>
#include <string>

#include "compare/audit.h"

namespace tprimat::results {

// Whether a figure means the same in two runs. Each returns the difference; nothing where there is none or a side is
// not known. Metric::unlike names the rules behind these checks.
std::optional<Proof> check_warmup(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_record_span(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_total_steps(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_loss_steps(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_memory(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_memory_source(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_power_source(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_energy_source(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_price(const RunResult& reference, const RunResult& subject);  // of one device
std::optional<Proof> check_formula(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_peak(const RunResult& reference, const RunResult& subject);
std::optional<Proof> check_peak_value(const RunResult& reference, const RunResult& subject);

// Every input of these checks, as bytes.
std::string state_meanings(const RunResult& run);

// USD per hour of one device.
std::optional<double> device_price(const RunResult& run);

// By the name of a sensor: "nvml:0" and "amd-smi" read counters of devices, "ipmi" does not.
bool is_device_counter(const std::string& source);

// How many devices one entry of RunResult::telemetry covers.
int64_t devices_of(const RunResult& run, const TelemetrySummary& entry);

}  // namespace tprimat::results
