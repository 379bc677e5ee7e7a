#include "run/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "result/metric_text.h"
#include "result/metrics.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

std::string framework_of(const TrainingOutcome& outcome) {
  return FrameworkChoice(outcome.framework, outcome.installation).name();
}

std::string profile_label(const ProfileOutcome& outcome) {
  return fmt::format("profile of {} {} ({})", framework_of(outcome), outcome.model, outcome.strategy);
}

std::string status_text(const RunOutcome& outcome) {
  return outcome.resumed ? "complete (resumed)" : std::string(enum_name(outcome.status));
}

std::string or_dash(const std::optional<double>& value, std::string (*format)(double)) {
  return value ? format(*value) : "-";
}
std::string percent(double fraction) { return format_percent(fraction); }

bool is_complete(const TrainingOutcome& outcome) { return outcome.status == RunStatus::complete; }

TrainingOutcome ending_of(const PlannedRun& run, RunStatus status, std::string reason) {
  TrainingOutcome outcome;
  outcome.platform = run.platform;
  outcome.framework = run.framework;
  outcome.installation = run.installation;
  outcome.model = run.spec.model.name;
  outcome.strategy = run.spec.parallel.strategy;
  outcome.status = status;
  if (!reason.empty()) outcome.reason = std::move(reason);
  return outcome;
}

std::string name_of(const RunOutcome& outcome) {
  return fmt::format("{} {} ({}, run {})", framework_of(outcome), outcome.model, outcome.strategy, outcome.run);
}

// "native gpt (single, run 1): 41.2 % of the device's matmul peak, 205 GFLOP/s (measured:cpu:bf16)"
std::string compare_with_machine(const RunOutcome& outcome) {
  if (!outcome.mfu || !outcome.peak) return "";
  const PeakInfo& peak = *outcome.peak;
  std::string text = fmt::format("{}: {} of the device's matmul peak, {} ({})", name_of(outcome), percent(*outcome.mfu),
                                 format_si(peak.flops_per_second, "FLOP/s"), peak.id);
  if (peak.memory_bytes_per_second)
    text += fmt::format("; memory bandwidth {} (triad)", format_si(*peak.memory_bytes_per_second, "B/s"));
  return text + "\n";
}

std::string explain(const RunOutcome& outcome) {
  const std::string log = outcome.log_path.empty() ? "" : fmt::format("  log: {}\n", outcome.log_path);
  return fmt::format("{} {}: {}\n{}", name_of(outcome), enum_name(outcome.status),
                     outcome.reason.value_or("unknown reason"), log);
}

// "native gpt (single, run 1): profiled steps 22 to 24, 1.2 % slower than the steady ones: train_x_profile"
std::string describe_profile(const RunOutcome& outcome) {
  if (!outcome.profile) return "";
  const RunProfile& profile = *outcome.profile;
  std::string text =
      fmt::format("{}: profiled steps {} to {}", name_of(outcome), profile.first_step, profile.last_step);
  if (profile.cost)
    text += fmt::format(", {} {} than the steady ones", percent(std::abs(*profile.cost)),
                        *profile.cost < 0 ? "faster" : "slower");
  const std::filesystem::path first = profile.files.empty() ? "" : profile.files.front();
  return text + ": " + (std::filesystem::path(outcome.result_path).parent_path() / first.parent_path()).string() + "\n";
}

// A warning that several runs share, such as a doubtful peak, is printed once.
std::string render_warnings(const std::vector<RunOutcome>& outcomes) {
  struct WarnedRuns {
    std::string warning;
    std::vector<std::string> runs;
  };
  std::vector<WarnedRuns> runs_by_warning;
  for (const RunOutcome& each : outcomes)
    for (const std::string& warning : each.warnings) {
      auto known = std::find_if(runs_by_warning.begin(), runs_by_warning.end(),
                                [&](const auto& entry) { return entry.warning == warning; });
      if (known == runs_by_warning.end()) known = runs_by_warning.insert(known, {warning, {}});
      known->runs.push_back(name_of(each));
    }
  std::string lines;
  for (const auto& [warning, runs] : runs_by_warning)
    lines += fmt::format("{}: {}\n", runs.size() == 1 ? runs[0] : fmt::format("{} runs", runs.size()), warning);
  return lines;
}

}  // namespace

ProfileOutcome make_profile_outcome(const PlannedRun& run, RunStatus status, std::string reason) {
  ProfileOutcome outcome;
  static_cast<TrainingOutcome&>(outcome) = ending_of(run, status, std::move(reason));
  outcome.profiler = run.profile->profiler;
  outcome.first_step = run.profile->first_step;
  outcome.last_step = run.profile->last_step;
  return outcome;
}

std::string render_profiles(const std::vector<ProfileOutcome>& outcomes) {
  if (outcomes.empty()) return "";
  TextTable table;
  table.header = {"platform", "framework", "model", "strategy", "profiler", "steps", "status", "trace"};
  std::string sentences;
  for (const ProfileOutcome& each : outcomes) {
    table.rows.push_back(
        {std::string(enum_name(each.platform)), framework_of(each), each.model, each.strategy,
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

RunOutcome make_outcome(const PlannedRun& run, RunStatus status, std::string reason) {
  RunOutcome outcome;
  static_cast<TrainingOutcome&>(outcome) = ending_of(run, status, std::move(reason));
  outcome.run = run.run;
  return outcome;
}

RunOutcome make_outcome(const PlannedRun& run, const RunResult& result) {
  RunOutcome outcome = make_outcome(run, result.status, result.status_reason.value_or(""));
  outcome.result_path = run.plan.result_path;
  outcome.log_path = run.plan.log_path;
  outcome.failure_kind = result.failure_kind;
  if (result.derived.tokens_per_second) outcome.tokens_per_second = result.derived.tokens_per_second->value;
  outcome.step_seconds = comparable_step_seconds(result);
  if (result.derived.mfu) outcome.mfu = result.derived.mfu->value;
  outcome.peak = result.derived.peak;
  outcome.figures = list_figures(result);
  outcome.published = planner::standing_of(result);
  outcome.steps = static_cast<int64_t>(result.step_times.size());
  outcome.warnings = result.warnings;
  outcome.profile = result.profile;
  return outcome;
}

ExitStatus exit_status_of(const SuiteReport& report) {
  if (report.interrupted) return ExitStatus::interrupted;
  const bool all_done = report.unavailable.empty() && std::ranges::all_of(report.outcomes, is_complete);
  const bool all_profiled = std::ranges::all_of(report.profiles, is_complete);
  return all_done && all_profiled ? ExitStatus::done : ExitStatus::work_failed;
}

std::string render_report(const SuiteReport& report) {
  TextTable table;
  table.header = {"platform", "framework", "model", "strategy", "run", "status", "steps", "tokens/s", "MFU", "result"};
  table.right = {4, 6, 7, 8};
  std::string sentences;
  for (const RunOutcome& each : report.outcomes) {
    table.rows.push_back({std::string(enum_name(each.platform)), framework_of(each), each.model, each.strategy,
                          fmt::format("{}", each.run), status_text(each),
                          each.steps ? fmt::format("{}", *each.steps) : "-",
                          or_dash(each.tokens_per_second, format_count), or_dash(each.mfu, percent),
                          each.result_path.empty() ? "-" : each.result_path});
    sentences += compare_with_machine(each);
    if (each.published)
      sentences += fmt::format("{}: {}\n", name_of(each), planner::describe_standing(*each.published));
    if (const std::string resources = describe_resources(each.figures); !resources.empty())
      sentences += name_of(each) + ": " + resources + "\n";
    sentences += describe_profile(each);
    if (!is_complete(each)) sentences += explain(each);
  }
  sentences += render_warnings(report.outcomes);
  for (const Problem& problem : report.unavailable) sentences += "not run: " + to_string(problem) + "\n";
  for (const Problem& problem : report.skipped) sentences += "skipped: " + to_string(problem) + "\n";
  const std::string profiles = render_profiles(report.profiles);
  if (report.outcomes.empty()) return profiles + sentences;
  return render_text(table) + (sentences.empty() ? "" : "\n" + sentences) + (profiles.empty() ? "" : "\n" + profiles);
}

}  // namespace tprimat::suite
