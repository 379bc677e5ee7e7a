#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "result/run_result.h"

namespace tprimat {

// By the name of a sensor: "nvml:0" and "amd-smi" read counters of devices, "ipmi" does not.
bool is_device_counter(std::string_view source);

// Devices that an entry of RunResult::telemetry covers: one for "nvml:0", for "nvml" as many as have an entry of their
// own, and none for the processor's counter in a run on GPUs. Nothing where the entry does not tell: a sensor of the
// whole machine, or a sum without its parts.
std::optional<int64_t> sampled_devices(const RunResult& result, const TelemetrySummary& entry);

// Devices of the run that have an entry of their own.
int64_t count_sampled_devices(const RunResult& result);

// False where an entry is known to cover other devices than all of the run: its energy is not the run's.
bool covers_all_devices(const RunResult& result, const TelemetrySummary& entry);

// Of a run on several nodes, the sensors of one see a part of the devices. Where `sampled` devices are not all of the
// run's, no energy of the telemetry is valid, and a warning states both counts and how to sample the others: of a
// recording with energy, or where nothing was sampled.
void refuse_partial_energy(RunResult& result, int64_t sampled);

}  // namespace tprimat
