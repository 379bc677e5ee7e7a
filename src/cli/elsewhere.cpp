#include "cli/elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "run/suite_plan.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::cli {
namespace {

// The platform of the GPUs that the run needs and the machine lacks.
std::optional<Platform> find_missing_platform(const RunOptions& options, const suite::Experiment& experiment,
                                              const MachineFacts& machine) {
  const Launcher launcher = experiment.launch.launcher;
  if (launcher != Launcher::local && launcher != Launcher::docker) return std::nullopt;  // it trains on other machines
  const auto lacks = [&](Platform platform) { return platform != Platform::cpu && platform != machine.platform; };
  if (const auto asked = parse_word<Platform>(options.platform)) return lacks(*asked) ? asked : std::nullopt;
  for (const auto& [platform, setup] : experiment.platforms)
    if (!lacks(platform)) return std::nullopt;
  return experiment.platforms.empty() ? std::nullopt : std::optional(experiment.platforms.begin()->first);
}

std::string dry_run_command(std::vector<std::string> words, const RunOptions& options, Platform platform) {
  if (options.platform == "auto") words.insert(words.end(), {"--platform", std::string(enum_name(platform))});
  words.push_back("--dry-run");
  return quote_command(words);
}

}  // namespace

Error with_alternatives(Error error, const Session& session, const RunOptions& options,
                        const suite::Experiment& experiment, const MachineFacts& machine) {
  const bool lacks_something = error.status() == ExitStatus::missing_component;
  if (!lacks_something && error.problems().back().where != suite::k_automatic_platform) return error;
  const auto platform = find_missing_platform(options, experiment, machine);
  if (!platform || options.dry_run) return error;
  std::vector<Problem> problems = error.problems();
  std::string& hint = problems.back().hint;
  hint += fmt::format(
      "{}this machine has no {} GPU; to show the commands of such a run, or to read its log:\n    {}\n    {} extract "
      "LOG",
      hint.empty() ? "" : "\n  ", display_name(*platform), dry_run_command(session.words, options, *platform),
      quote_shell(session.words.front()));
  return Error(std::move(problems), error.status());
}

}  // namespace tprimat::cli
