#include "launch/program_path.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tprimat::suite {

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (::access((std::string(rest.substr(0, colon)) + "/" + program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

}  // namespace tprimat::suite
