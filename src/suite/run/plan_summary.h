#pragma once

#include <string>

#include "run/forecast.h"

namespace tprimat::suite {

// A planned run in a dozen comment lines of a shell script: model, layout, batch, learning rate, data set, memory, what
// deviates, what is mounted and which files are written.
std::string render_summary(const PlannedRun& run, const Forecast& known);

// The same, then the command in its working directory with its environment. `whole`: also the files that the command
// reads, so that the text is a complete script; else a comment says how to print them.
std::string render_dry_run(const PlannedRun& run, const Forecast& known, bool whole);

}  // namespace tprimat::suite
