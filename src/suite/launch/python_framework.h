#pragma once

#include <string_view>

#include "launch/frameworks.h"

namespace tprimat::suite {

// A Python adapter of frameworks/ under torchrun, for any framework: arguments, environment and files, which are
// train_spec.json and in adapter/ the script with the modules that it shares with others.
TrainProgram run_adapter(std::string_view script, const LaunchRequest& request);

}  // namespace tprimat::suite
