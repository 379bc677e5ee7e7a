#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tprimat {

// One variable of an environment, this process's or another; nothing when it is not set.
using EnvironmentReader = std::function<std::optional<std::string>(const std::string& name)>;

std::optional<std::string> read_environment(const std::string& name);  // of this process

}  // namespace tprimat
