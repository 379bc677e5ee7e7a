#include "run/profile_outcome.h"

#include <fmt/format.h>

#include "text/format.h"

namespace tprimat::suite {
namespace {

std::string profile_label(const ProfileOutcome& outcome) {
  return fmt::format("profile of {} {} ({})", enum_name(outcome.framework), outcome.model, outcome.strategy);
}

}  // namespace

ProfileOutcome make_profile_outcome(const PlannedRun& run, RunStatus status, std::string reason) {
  ProfileOutcome outcome;
  outcome.platform = run.platform;
  outcome.framework = run.framework;
  outcome.model = run.spec.model.name;
  outcome.strategy = run.spec.parallel.strategy;
  outcome.profiler = run.profile->profiler;
  outcome.first_step = run.profile->first_step;
  outcome.last_step = run.profile->last_step;
  outcome.status = status;
  if (!reason.empty()) outcome.reason = std::move(reason);
  return outcome;
}

std::string render_profiles(const std::vector<ProfileOutcome>& outcomes) {
  if (outcomes.empty()) return "";
  TextTable table;
  table.header = {"platform", "framework", "model", "strategy", "profiler", "steps", "status", "trace"};
  std::string sentences;
  for (const ProfileOutcome& each : outcomes) {
    table.rows.push_back(
        {std::string(enum_name(each.platform)), std::string(enum_name(each.framework)), each.model, each.strategy,
         std::string(enum_name(each.profiler)), fmt::format("{} to {}", each.first_step, each.last_step),
         std::string(enum_name(each.status)) + (each.resumed ? " (resumed)" : ""), each.trace.value_or("-")});
    if (each.status != RunStatus::complete)
      sentences += fmt::format("{} {}: {}\n", profile_label(each), enum_name(each.status),
                               each.reason.value_or("unknown reason"));
    if (each.status != RunStatus::complete && !each.log_path.empty())
      sentences += fmt::format("  log: {}\n", each.log_path);
    for (const std::string& warning : each.warnings) sentences += profile_label(each) + ": " + warning + "\n";
    if (each.summary) sentences += fmt::format("where the time went: {}\n", *each.summary);
  }
  return render_text(table) + "\n" + sentences;
}

}  // namespace tprimat::suite
