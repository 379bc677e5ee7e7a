#include "run/version_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "launch/frameworks.h"
#include "result/summary.h"

namespace tprimat::suite {
namespace {

std::optional<std::string> find_unchecked(Framework framework, const std::optional<std::string>& version) {
  const FrameworkModule* module = find_framework(framework);
  return module == nullptr ? std::nullopt : find_unchecked_version(*module, version.value_or(""));
}

}  // namespace

std::string list_checked(const PlannedRun& run) {
  const FrameworkModule* module = find_framework(run.framework);
  return module == nullptr ? "" : describe_checked(*module);
}

std::string describe_version(const PlannedRun& run) {
  const std::string checked = list_checked(run);
  if (checked.empty()) return "";
  std::string installed = "; not installed here";
  if (run.framework_version)
    installed = "; installed: " + *run.framework_version;
  else if (run.request.launch.in_container())
    installed.clear();  // the image brings it
  return fmt::format("checked against: {}{}", checked, installed);
}

std::vector<Problem> list_unchecked_versions(const SuitePlan& suite) {
  std::vector<Problem> problems;
  for (const PlannedRun& run : suite.runs) {
    const auto what = find_unchecked(run.framework, run.framework_version);
    const std::string where = name_framework(run);
    const auto is_known = [&](const Problem& each) { return each.where == where; };
    if (what && std::ranges::none_of(problems, is_known)) problems.push_back({*what, where, ""});
  }
  return problems;
}

void note_version(RunResult& result) {
  if (!result.framework_version && result.effective_config)
    if (const auto stated = result.effective_config->find("framework_version");
        stated != result.effective_config->end())
      result.framework_version = stated->second;
  if (!result.framework) return;
  if (const auto warning = find_unchecked(*result.framework, result.framework_version)) add_warning(result, *warning);
}

}  // namespace tprimat::suite
