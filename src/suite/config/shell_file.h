#pragma once

#include <string>
#include <string_view>

namespace tprimat::suite {

// Throws Error for a config.env of the older scripts, with the same settings as YAML: such a file names neither a
// model nor a device, so it is no configuration.
void refuse_shell_file(std::string_view text, const std::string& name);

}  // namespace tprimat::suite
