#pragma once

#include <optional>

#include "result/run_result.h"
#include "run/outcome.h"
#include "run/reporters.h"
#include "run/suite_context.h"
#include "run/suite_plan.h"

namespace tprimat::suite {

// Runs everything that is planned, one after the other, and writes one result file for each run as soon as it is over.
// One run's failure never stops the others; an interrupt ends the current run and leaves out the rest. Throws nothing
// that the user or the machine did.
SuiteReport run_suite(const SuitePlan& plan, const SuiteOptions& options, const SuiteContext& around,
                      Reporter& reporter);

// The complete result of the same configuration that lies where the run would write its own.
std::optional<RunResult> find_complete_result(const PlannedRun& run);

}  // namespace tprimat::suite
