#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "doctor/checks.h"
#include "doctor/installer.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

bool holds_framework(const std::vector<Framework>& frameworks, Framework id) {
  return std::find(frameworks.begin(), frameworks.end(), id) != frameworks.end();
}

constexpr const char* k_code = "framework_unavailable";

void add_missing(bool asked, const std::string& what, const std::string& remedy, AreaFindings& findings) {
  if (asked)
    findings.add(MachineSeverity::missing, k_code, what, remedy);
  else
    findings.note(what, remedy);
}

void judge_framework(const FrameworkCondition& framework, const DoctorFacts& facts, AreaFindings& findings) {
  const Platform platform = facts.platform();
  const bool asked = holds_framework(facts.request.frameworks, framework.id);
  const std::string name = fmt::format("{} ({})", enum_name(framework.id), framework.long_name);
  const bool runs =
      std::find(framework.platforms.begin(), framework.platforms.end(), platform) != framework.platforms.end();
  if (!runs) {
    std::vector<std::string_view> platforms;
    for (const Platform each : framework.platforms) platforms.push_back(display_name(each));
    const std::string what = fmt::format("{} does not run on {}", name, display_name(platform));
    if (asked)
      findings.add(MachineSeverity::missing, k_code, what, fmt::format("it runs on {}", join(platforms, ", ")));
    else
      findings.ok(what);
  } else if (!framework.installation) {
    add_missing(asked, name + " is not installed", framework.installing, findings);
  } else if (framework.lacking) {
    add_missing(asked, framework.lacking->what, framework.lacking->hint, findings);
  } else {
    findings.ok(fmt::format("{} {}, {}", name, framework.installation->version, framework.installation->place));
  }
}

}  // namespace

std::vector<MachineFinding> check_frameworks(const DoctorFacts& facts) {
  AreaFindings findings("frameworks");
  std::vector<Framework> known;
  for (const FrameworkCondition& framework : facts.frameworks) {
    known.push_back(framework.id);
    judge_framework(framework, facts, findings);
  }
  for (const Framework asked : facts.request.frameworks)
    if (!holds_framework(known, asked))
      findings.add(MachineSeverity::missing, k_code, fmt::format("this version cannot launch {}", display_name(asked)),
                   "use tprimat extract to read its logs");
  return findings.take();
}

std::vector<MachineFinding> check_gpu_libraries(const DoctorFacts& facts) {
  AreaFindings findings("GPU libraries");
  const bool asked = holds_framework(facts.request.frameworks, Framework::native);
  for (const LibraryReport& library : facts.gpu_libraries) {
    const std::string what = fmt::format("{} ({})", library.title, library.serves);
    if (library.refusal.empty())
      findings.ok(fmt::format("{}: {}{}{}", what, library.version, library.version.empty() ? "" : ", ", library.file));
    else
      findings.add(asked && !library.optional ? MachineSeverity::missing : MachineSeverity::warning, "gpu_library",
                   fmt::format("{}: {}", what, library.refusal), library.remedy);
  }
  return findings.take();
}

std::vector<MachineFinding> check_tools(const DoctorFacts& facts) {
  AreaFindings findings("tools");
  for (const ToolCondition& tool : facts.tools) {
    if (tool.place)
      findings.ok(fmt::format("{}, for {}", tool.program, tool.needed_for));
    else
      findings.note(fmt::format("no {}, needed for {}", tool.program, tool.needed_for),
                    "sudo apt-get install " + tool.package);
  }
  return findings.take();
}

}  // namespace tprimat::suite
