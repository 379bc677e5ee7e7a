#include "base/environment.h"

#include <cstdlib>

namespace tprimat {

std::optional<std::string> read_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace tprimat
