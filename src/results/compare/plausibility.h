#pragma once

#include <optional>
#include <string>

#include "compare/comparison.h"

namespace tprimat::results {

// Contradictions in a result's facts about its machine; each is empty if there is none.
Evidences find_foreign_device(const RunResult& run);     // a device, or a software stack, of another platform
Evidences find_other_peak(const RunResult& run);         // a peak that is not the catalogue's for device and precision
Evidences find_impossible_memory(const RunResult& run);  // more than the device has, or than was reserved
Evidences find_impossible_loss(const RunResult& run);    // below zero, or the same at every step
Evidences find_impossible_power(const RunResult& run);   // below the power of a busy device, or above its limit
Evidences find_impossible_price(const RunResult& run);   // outside the rental prices of devices
Evidences find_impossible_clock(const RunResult& run);   // clock or utilisation in another unit
Evidences find_impossible_time(const RunResult& run);    // far slower than the device: probably a wrong unit

// Whether a device of the run's kind can run at it.
bool is_possible_clock(const RunResult& run, double hertz);

// An MFU above all published trainings, so that an input is doubtful.
std::optional<double> find_unheard_of_mfu(const RunResult& run);

// Describes how the log's time stamps contradict the stated times of the steady steps.
std::optional<std::string> describe_clock_gap(const RunResult& run);

// Steady steps with and without those that a label leaves out.
struct LabelledTime {
  size_t labelled = 0, all = 0;
  double with_them = 0, without = 0;  // s, mean of a step
  double share() const { return all > 0 ? static_cast<double>(labelled) / static_cast<double>(all) : 0; }
};
LabelledTime time_labelled_steps(const RunResult& run);

// Half the width of the log's rounding as a share of a steady step, if it does not average out.
std::optional<double> find_rounding(const RunResult& run);

// The steady steps' time if all are equal, s.
std::optional<double> find_constant_time(const RunResult& run);

// Steady steps that take longer and longer, or shorter and shorter: medians of the first and of the last third.
struct Drift {
  double early = 0, late = 0;  // s
};
std::optional<Drift> find_drift(const RunResult& run);

// The recorded causes of a run's outliers: "3 of 57 steady steps, the first is step 20: 2 with a checkpoint, 1
// unattributed". An event belongs to the step that it names and to the one after, whose time may include it. The
// sensors' readings within a slow step count if they differ from those of ordinary steps: a clock that was throttled in
// half of them, a clock 5 % lower on a device as busy as usual (if no reasons are recorded), other processes on a
// machine without idle threads. Conditions of most steps, and readings between steps, explain none. Facts of the whole
// run are mentioned but not attributed to a step.
std::string describe_outliers(const RunResult& run);

// Describes how the figures that the framework printed contradict the derived speed, or exceed the device's peak.
// Medians over the steady steps are compared. Differences of convention are accepted: attention and embeddings counted
// or not, all experts counted, recomputed work counted, frozen weights counted, MFU by the peak of an A100 or of sparse
// products. Bounds and their reasons: docs/compare.md.
std::optional<std::string> describe_reported_gap(const RunResult& run);

// Describes how the framework's own TFLOP/s or MFU count all experts of a sparse model, or all of its parameters, and
// not those that a token passes.
std::optional<std::string> describe_dense_count(const RunResult& run);

}  // namespace tprimat::results
