#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "process/process.h"
#include "spec/names.h"

namespace tprimat::suite {

// A file of frameworks/ that the installer needs. The build makes the list (CMakeLists.txt): setup.sh and every list of
// packages.
struct InstallerFile {
  std::string_view path;  // "setup.sh", "requirements/tran.txt"
  const std::string_view& content;
};
std::span<const InstallerFile> installer_files();

// The program contains frameworks/setup.sh and its lists of packages, so that it can install a framework without the
// repository.
bool can_install(Framework framework);
std::vector<Framework> installable();

// Writes the installer below `folder` and runs it; `sink` gets its output. Throws Error (ExitStatus::missing_component)
// for a framework without a list of packages, and where bash is missing; ExitStatus::work_failed where the installer
// fails.
void install_framework(Framework framework, const std::filesystem::path& folder, ProcessRunner& runner,
                       const LineSink& sink);

}  // namespace tprimat::suite
