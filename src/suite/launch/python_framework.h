#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "launch/frameworks.h"

namespace tprimat::suite {

// train_spec.json, and in adapter/ a script of frameworks/ with the modules that it shares with others.
std::vector<GeneratedFile> list_adapter_files(std::string_view script, const LaunchRequest& request);

// A Python adapter of frameworks/ under torchrun, for any framework: arguments, environment and files.
TrainProgram run_adapter(std::string_view script, const LaunchRequest& request);

// The virtual environment that is stated, else <python_environments()>/<id>, with the package in it; nothing where one
// of the two is missing.
std::optional<Installation> find_adapter_environment(Framework id, std::string_view package, const Checkout& checkout);

// Its Python; and the experiment's threads and attention, as the adapters read them.
void use_adapter_environment(Framework id, const LaunchRequest& request, TrainProgram& program);

}  // namespace tprimat::suite
