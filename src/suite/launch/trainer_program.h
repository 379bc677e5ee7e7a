#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "command_line/command_info.h"
#include "process/process.h"
#include "result/probe_report.h"
#include "result/run_result.h"
#include "result/trainer_libraries.h"
#include "spec/names.h"

namespace tprimat::suite {

// `tprimat-train`, the native trainer: a separate program beside this one, and the interface to it.
constexpr const char* k_trainer_name = "tprimat-train";
std::optional<std::filesystem::path> find_trainer_program();

// Throws Error (missing_component) if it is missing.
std::filesystem::path require_trainer_program();

// The peaks of matrix products in these precisions and the memory's bandwidth, measured now by the trainer, in some
// seconds. 16-bit numbers without instructions are multiplied in fp32, and have its peak; fp8 and tf32 have none.
// Throws Error, also soon after `is_stopped` returns true.
ProbeReport probe_processor(ProcessRunner& runner, const std::vector<Precision>& precisions, int64_t threads,
                            const std::function<bool()>& is_stopped = {});

// A peak measured on this machine, and the doubts about it.
struct MeasuredPeak {
  PeakInfo peak;
  std::optional<std::string> warning;
};

// The peak for the MFU of a training in this precision on this processor; nothing for fp8 and tf32. Throws Error, as
// probe_processor does.
std::optional<MeasuredPeak> measure_cpu_peak(ProcessRunner& runner, Precision precision, int64_t threads,
                                             const std::function<bool()>& is_stopped);

// The trainer's libraries, including those for the platform's GPUs, as it reports them. Throws Error.
TrainerLibraries read_trainer_libraries(ProcessRunner& runner, Platform platform,
                                        const std::function<bool()>& is_stopped = {});

// Its commands, with their options. Throws Error.
CommandInfo read_trainer_commands(ProcessRunner& runner);

}  // namespace tprimat::suite
