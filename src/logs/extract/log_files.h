#pragma once

#include <filesystem>
#include <vector>

namespace tprimat::logs {

// Every file of a folder and below that may be a log, by name; hidden ones and the folder `except` are left out. A
// warning tells where not everything could be listed.
std::vector<std::filesystem::path> list_log_files(const std::filesystem::path& folder,
                                                  const std::filesystem::path& except);

}  // namespace tprimat::logs
