#pragma once

#include "base/error.h"
#include "cli/run_options.h"
#include "config/experiment.h"
#include "telemetry/machine.h"

namespace tprimat::cli {

// The same error, and what can be done on this machine, if the run needs GPUs that it lacks: the commands to paste.
Error with_alternatives(Error error, const Session& session, const RunOptions& options,
                        const suite::Experiment& experiment, const MachineFacts& machine);

}  // namespace tprimat::cli
