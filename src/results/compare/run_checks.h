#pragma once

#include "compare/audit.h"

namespace tprimat::results {

// Checks of one participant, in each of its runs or in all together: the evidence, or nothing if all is well.
using Figures = std::optional<Proof>;

Figures check_status(const LoadedRun& run);
Figures check_impossible(const LoadedRun& run);
Figures check_idle_optimizer(const LoadedRun& run);
Figures check_adapters(const LoadedRun& run);
Figures check_unheard_of_mfu(const LoadedRun& run);
Figures check_assumed(const LoadedRun& run);          // facts of the work or of the devices
Figures check_assumed_details(const LoadedRun& run);  // other facts
Figures check_rounding(const LoadedRun& run);
Figures check_constant_times(const LoadedRun& run);
Figures check_drift(const LoadedRun& run);
Figures check_device_counts(const LoadedRun& run);
Figures check_collapse(const LoadedRun& run);
Figures check_guessing(const LoadedRun& run);
Figures check_divergence(const LoadedRun& run);
Figures check_steady(const LoadedRun& run);
Figures check_disturbance(const LoadedRun& run);
Figures check_throttling(const LoadedRun& run);
Figures check_repetitions(const Contender& c);
Figures check_copies(const Contender& c);
Figures check_few_steps(const LoadedRun& run);
Figures check_few_runs(const Contender& c);
Figures check_clock(const LoadedRun& run);
Figures check_reported(const LoadedRun& run);  // the framework's figures contradict the speed

}  // namespace tprimat::results
