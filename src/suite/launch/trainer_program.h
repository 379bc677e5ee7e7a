#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process/process.h"
#include "result/probe_report.h"
#include "result/run_result.h"
#include "result/trainer_libraries.h"
#include "spec/names.h"

namespace tprimat::suite {

// `tprimat-train`, the native trainer: a program of its own beside this one, and all that this one knows of it.
constexpr const char* k_trainer_name = "tprimat-train";
std::optional<std::filesystem::path> find_trainer_program();

// Throws Error (missing_component) where it is not there.
std::filesystem::path require_trainer_program();

// The peaks of matrix products in these precisions and the memory's bandwidth, as the trainer measures them now, in
// some seconds. 16-bit numbers without instructions are multiplied in fp32, and have its peak; fp8 and tf32 have none.
// Throws Error, also soon after `is_stopped` says so.
ProbeReport probe_processor(ProcessRunner& runner, const std::vector<Precision>& precisions, int64_t threads,
                            const std::function<bool()>& is_stopped = {});

// A peak measured on this machine, and what makes it doubtful.
struct MeasuredPeak {
  PeakInfo peak;
  std::optional<std::string> warning;
};

// The peak for the MFU of a training in this precision on this processor; nothing for fp8 and tf32. Throws Error, as
// probe_processor does.
std::optional<MeasuredPeak> measure_cpu_peak(ProcessRunner& runner, Precision precision, int64_t threads,
                                             const std::function<bool()>& is_stopped);

// What the trainer computes with, also on the platform's GPUs, as it says itself. Throws Error.
TrainerLibraries read_trainer_libraries(ProcessRunner& runner, Platform platform,
                                        const std::function<bool()>& is_stopped = {});

}  // namespace tprimat::suite
