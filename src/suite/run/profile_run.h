#pragma once

#include "run/outcome.h"
#include "run/reporters.h"
#include "run/suite_context.h"

namespace tprimat::suite {

// Trains once under the profiler that `run.profile` names, summarises its trace and writes the summary. Never throws
// Error: problems are in the outcome.
ProfileOutcome profile_training(const PlannedRun& run, const SuiteOptions& options, const SuiteContext& around,
                                Reporter& reporter);

// The outcome of an earlier profile of the same training, steps and profiler, where its files are there.
std::optional<ProfileOutcome> find_earlier_profile(const PlannedRun& run);

}  // namespace tprimat::suite
