#pragma once

#include <string>

#include "config/experiment.h"
#include "spec/counted_model.h"

namespace tprimat::suite {

// A model of the configuration, else of the catalogues. Throws Error at `place` for others.
CountedModel require_counted(const Experiment& experiment, const std::string& name, const std::string& place);

}  // namespace tprimat::suite
