#pragma once

#include <string>
#include <vector>

#include "command_line/options.h"
#include "config/experiment.h"
#include "run/outcome.h"
#include "run/plan_layouts.h"

namespace tprimat::cli {

using LayoutPlans = std::vector<suite::LayoutPlan>;

// `tprimat run --from-plan top=3`, which excludes --strategy.
void add_from_plan_option(CommandLine& verb, std::string& choice);

// Throws Error where the experiment would change the planned layouts.
void refuse_adapting(const suite::Experiment& experiment);

// Where fewer layouts exist than were asked for.
void note_missing_layouts(const LayoutPlans& plans);

// The summary of the runs, then each ranking beside what they measured.
void print_report(const suite::SuiteReport& report, const LayoutPlans& plans, bool as_json);

}  // namespace tprimat::cli
