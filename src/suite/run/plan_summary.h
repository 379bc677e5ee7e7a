#pragma once

#include <string>

#include "run/forecast.h"

namespace tprimat::suite {

// A planned run as a dozen comment lines of a shell script: model, layout, batch, learning rate, data set, memory,
// deviations, mounts and the files that it writes.
std::string render_summary(const PlannedRun& run, const Forecast& known);

// The same, then the command in its working directory with its environment. `whole`: also the files that the command
// reads, so that the text is a complete script; else a comment says how to print them.
std::string render_dry_run(const PlannedRun& run, const Forecast& known, bool whole);

}  // namespace tprimat::suite
