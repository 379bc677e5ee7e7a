#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/frameworks.h"

namespace tprimat::suite {

// Where a checkout is: as the configuration states it, else the first of the usual places that holds `landmark`, else
// the first of them.
std::filesystem::path place_of_checkout(const Checkout& checkout, const std::vector<std::string>& usual_places,
                                        const std::string& landmark);

// MAJOR, MINOR and PATCH of megatron/core/package_info.py: "0.16.1".
std::optional<std::string> read_megatron_version(const std::filesystem::path& folder);

// The Python of the framework's virtual environment, else the one in PATH, as in the vendors' containers.
std::string python_for(Framework framework);

}  // namespace tprimat::suite
