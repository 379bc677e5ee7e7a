#pragma once

#include <span>
#include <string_view>

namespace tprimat::suite {

// A file of the folder frameworks/ that installing needs. The list is made by the build (CMakeLists.txt): setup.sh and
// every list of packages.
struct InstallerFile {
  std::string_view path;  // "setup.sh", "requirements/tran.txt"
  const std::string_view& content;
};
std::span<const InstallerFile> installer_files();

}  // namespace tprimat::suite
