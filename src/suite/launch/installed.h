#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_plan.h"

// Finds installed software without starting it.
namespace tprimat::suite {

std::vector<std::string> folders_in_path();

// The program of this name in PATH.
std::optional<std::string> find_in_path(const std::string& program);

// Where `frameworks/setup.sh ID` makes virtual environments: $TPRIMAT_FRAMEWORKS, else
// $XDG_DATA_HOME/tprimat/frameworks, else ~/.local/share/tprimat/frameworks.
std::filesystem::path python_environments();

// The Python of the framework's virtual environment, else the one in PATH, as in the vendors' containers.
std::string python_for(Framework framework);

// The version of a package, spelled as its dist-info folder spells it, below a Python's prefix; nothing: not installed.
std::optional<std::string> find_package_version(const std::filesystem::path& prefix, std::string_view package);

// Where a checkout is: as the configuration states it, else the first of the usual places that holds `landmark`, else
// the first of them.
std::filesystem::path place_of_checkout(const Checkout& checkout, const std::vector<std::string>& usual_places,
                                        const std::string& landmark);

// MAJOR, MINOR and PATCH of a package_info.py: "0.16.1".
std::optional<std::string> read_package_version(const std::filesystem::path& package_info);

// That of megatron/core/package_info.py.
std::optional<std::string> read_megatron_version(const std::filesystem::path& folder);

// The version of a checkout: the first line of its file VERSION, else the first twelve digits of the commit that its
// HEAD names, read from .git without starting git. Nothing if both are missing.
std::optional<std::string> find_checkout_revision(const std::filesystem::path& folder);

}  // namespace tprimat::suite
