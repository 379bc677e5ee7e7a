#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tprimat::suite {

// What a checkout is: the first line of its file VERSION, else the first twelve digits of the commit that its HEAD
// names, read from .git without starting git. Nothing: neither is there.
std::optional<std::string> find_checkout_revision(const std::filesystem::path& folder);

}  // namespace tprimat::suite
