#pragma once

#include <optional>
#include <set>

#include "result/run_result.h"

namespace tprimat {

struct SummaryOptions {
  std::optional<int64_t> fixed_warmup_steps = std::nullopt;  // nothing: the end of the warm-up is detected
  std::optional<PeakInfo> peak = std::nullopt;               // nothing: no MFU
  std::optional<double> usd_per_hour = std::nullopt;         // price of all devices of the run
};

// The options under which `result` was summarised before, to derive it again from its raw series.
SummaryOptions stored_options(const RunResult& result);

// Devices that share the work; nothing when neither the training nor the device says.
std::optional<int64_t> device_count(const RunResult& result);

// Sequences per step x tokens per sequence, else what training_config.tokens_per_step states; nothing when neither is
// known.
std::optional<int64_t> tokens_per_step(const RunResult& result);

// Between a nanosecond and 1e8 s: other values cannot be the time of a step.
bool is_valid_step_time(double seconds);

// The number of an entry of step_times (from 0), as its log counts steps.
int64_t step_number(const RunResult& result, size_t entry);

// How many steps an entry of step_times is the mean of, where a log reports every tenth step or so; else 1.
int64_t entry_span(const RunResult& result, size_t entry);

// The sum of the spans of the entries from `begin` to before `end`.
int64_t steps_between(const RunResult& result, size_t begin, size_t end);

// Numbers of the steps whose time is not that of a training step alone.
std::set<int64_t> labelled_steps(const RunResult& result);

// The most frequent span of the steady entries: a log of every tenth step may print its last one besides.
int64_t usual_span(const RunResult& result);

// The steps that the training completed, counted from 1; 0 without any entry.
int64_t steps_reached(const RunResult& result);

// Step times of the steady state, s: those after the warm-up that have a valid time and no label.
std::vector<double> steady_step_times(const RunResult& result);

// The first sensor entry whose energy is valid and that covers all devices of the run, from which joules per token
// follow; nullptr for none.
const TelemetrySummary* find_energy(const RunResult& result);

// Raises the peaks of memory_metrics to the highest values of memory_by_rank.
void raise_peaks_of_ranks(RunResult& result);

// Adds a warning once.
void add_warning(RunResult& result, const std::string& sentence);

// Fails closed: a run that claims to be complete but did not reach its last step, has a step without a valid time, or a
// loss that is NaN from some step on becomes `invalid` (`failed` without any step), with the reason. Series of unequal
// length are warned about.
void check_validity(RunResult& result);

// Fills warmup, performance_metrics, memory_metrics, statistics and derived from the raw series (step_times,
// memory_values ...) and the facts that already stand in `result` (model shape, batch, devices). Unknown figures stay
// absent. Idempotent, so that a stored result can be derived again when a formula changes. Calls check_validity; an MFU
// over 1 makes the run invalid.
void summarise_run(RunResult& result, const SummaryOptions& options);

}  // namespace tprimat
