#pragma once

#include <optional>

#include "result/run_result.h"
#include "run/outcome.h"
#include "run/reporters.h"
#include "run/suite_context.h"
#include "run/suite_plan.h"

namespace tprimat::suite {

// Executes the planned runs one after the other and writes each result file as soon as its run ends. A failure never
// stops the other runs; an interrupt ends the current run and skips the rest. Faults of the user or the machine are
// reported, not thrown.
SuiteReport run_suite(const SuitePlan& plan, const SuiteOptions& options, const SuiteContext& around,
                      Reporter& reporter);

// The complete result of the same configuration at the run's result path.
std::optional<RunResult> find_complete_result(const PlannedRun& run);

}  // namespace tprimat::suite
