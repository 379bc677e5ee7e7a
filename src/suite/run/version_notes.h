#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "result/run_result.h"
#include "run/suite_plan.h"

// The installed version of a run's framework, and those that its plan was checked against.
namespace tprimat::suite {

// "Megatron-LM 0.16.1": the versions that its plan was checked against; empty where none is known.
std::string list_checked(const PlannedRun& run);
// "checked against: Megatron-LM 0.16.1; installed: 0.15.0"; empty where no checked version is known.
std::string describe_version(const PlannedRun& run);

// Installed versions that a plan was not checked against, each once.
std::vector<Problem> list_unchecked_versions(const SuitePlan& suite);

// Adds the framework's version that its log states where the plan does not know it, as in an image, and a warning where
// the plan was not checked against that version.
void note_version(RunResult& result);

}  // namespace tprimat::suite
