#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "process/process.h"
#include "spec/names.h"

namespace tprimat::suite {

// A file of the folder frameworks/ that installing needs. The list is made by the build (CMakeLists.txt): setup.sh and
// every list of packages.
struct InstallerFile {
  std::string_view path;  // "setup.sh", "requirements/tran.txt"
  const std::string_view& content;
};
std::span<const InstallerFile> installer_files();

// The program carries frameworks/setup.sh and the lists of packages beside it, so that a framework can be installed
// where the repository is not.
bool can_install(Framework framework);
std::vector<Framework> installable();

// Writes the installer below `folder` and runs it; what it prints goes to `sink`. Throws Error
// (ExitStatus::missing_component) for a framework without a list of packages, and where bash is missing;
// ExitStatus::work_failed where the installer fails.
void install_framework(Framework framework, const std::filesystem::path& folder, ProcessRunner& runner,
                       const LineSink& sink);

}  // namespace tprimat::suite
