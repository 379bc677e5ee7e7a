#pragma once

#include "cli/documents.h"
#include "config/experiment.h"

namespace tprimat::cli {

// What follows from the settings of a configuration, for programs that read `config show --json`: price, power and
// peaks of each platform, each training (strategy, then model, then platform) with its layout, the names of logs and
// results (platform, then framework, then model), and the path of each model's Primus file. What is not known, and a
// training whose layout cannot run, is absent.
document::ResolvedConfig resolve_config(const suite::Experiment& experiment);

}  // namespace tprimat::cli
