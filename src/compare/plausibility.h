#pragma once

#include <optional>

#include "compare/evidence.h"
#include "result/run_result.h"

namespace tprimat {

// What a result says of its machine that cannot all be true; each is empty where nothing contradicts.
Evidences find_foreign_device(const RunResult& run);     // a device, or a software stack, of another platform
Evidences find_other_peak(const RunResult& run);         // a peak that is not the catalogue's for device and precision
Evidences find_impossible_memory(const RunResult& run);  // more than the device has, or than was reserved
Evidences find_impossible_loss(const RunResult& run);    // below zero, or the same at every step

// More than any training on a device of the catalogue is known to reach, so that an input is to be doubted.
std::optional<double> find_unheard_of_mfu(const RunResult& run);

// Half the width of the log's rounding as a share of a steady step, where that does not average out.
std::optional<double> find_rounding(const RunResult& run);

// The steady steps' time where all take the same, s.
std::optional<double> find_constant_time(const RunResult& run);

// Steady steps that take longer and longer, or shorter and shorter: medians of the first and of the last third.
struct Drift {
  double early = 0, late = 0;  // s
};
std::optional<Drift> find_drift(const RunResult& run);

}  // namespace tprimat
