#include "doctor/installer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

std::string list_path(Framework framework) { return fmt::format("requirements/{}.txt", enum_name(framework)); }

[[noreturn]] void refuse_to_install(Framework framework) {
  std::vector<std::string_view> ids;
  for (const Framework each : installable()) ids.push_back(enum_name(each));
  throw Error(Problem{fmt::format("there is no package list for {}", display_name(framework)), "--install",
                      fmt::format("choose one of {}", join(ids, ", "))},
              ExitStatus::missing_component);
}

}  // namespace

bool can_install(Framework framework) {
  const auto files = installer_files();
  return std::any_of(files.begin(), files.end(),
                     [path = list_path(framework)](const InstallerFile& file) { return file.path == path; });
}

std::vector<Framework> installable() {
  std::vector<Framework> frameworks;
  for (const auto& [framework, name] : EnumNames<Framework>::values)
    if (enum_name(framework) == name && can_install(framework)) frameworks.push_back(framework);
  return frameworks;
}

void install_framework(Framework framework, const std::filesystem::path& folder, ProcessRunner& runner,
                       const LineSink& sink) {
  if (!can_install(framework)) refuse_to_install(framework);
  for (const InstallerFile& file : installer_files())
    write_file_atomically(folder / file.path, file.content, Survives::kill);
  Command command;
  command.argv = {"bash", (folder / "setup.sh").string(), std::string(enum_name(framework))};
  const auto child = runner.start(command);
  std::optional<ExitReason> exit;
  while (!(exit = child->poll(1.0, sink))) {
  }
  if (exit->success()) return;
  throw Error(Problem{fmt::format("{} could not be installed: {}", display_name(framework), to_string(*exit)),
                      "--install", "see the installer's output for the reason"},
              ExitStatus::work_failed);
}

}  // namespace tprimat::suite
