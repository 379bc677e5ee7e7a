#pragma once

#include <string>

namespace tprimat::suite {

// Whether PATH leads to a program of this name.
bool is_in_path(const std::string& program);

}  // namespace tprimat::suite
