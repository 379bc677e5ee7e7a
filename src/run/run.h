#pragma once

#include "run/outcome.h"
#include "run/reporter.h"
#include "run/surroundings.h"

namespace tprimat {

// Runs everything that is planned, one after the other, and writes one result file for each run as soon as it is over.
// One run's failure never stops the others; an interrupt ends the current run and leaves out the rest. Throws nothing
// that the user or the machine did.
SuiteReport run_suite(const SuitePlan& plan, const SuiteOptions& options, const Surroundings& around,
                      Reporter& reporter);

}  // namespace tprimat
