#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "claim/neighbours.h"
#include "result/run_result.h"
#include "run/suite_plan.h"
#include "text/format.h"

namespace tprimat::suite {

// How one training ended.
struct TrainingOutcome {
  Platform platform = Platform::cpu;
  Framework framework = Framework::native;
  std::optional<std::string> installation;  // its label, where one was chosen
  std::string model, strategy;
  RunStatus status = RunStatus::complete;
  bool resumed = false;               // a complete result of the same configuration existed
  std::optional<std::string> reason;  // for every status but complete
  std::string log_path;               // empty where no training started
  std::vector<std::string> warnings;
};

// How one profiled run ended. It has no rate, because a profiler slows the training down.
struct ProfileOutcome : TrainingOutcome {
  Profiler profiler = Profiler::torch;
  int64_t first_step = 1, last_step = 1;
  std::optional<std::string> trace, summary;  // files
  static constexpr auto fields() {
    using O = ProfileOutcome;
    return field_list(
        field("platform", &O::platform, "nvd, amd or cpu"), field("framework", &O::framework, "what trained"),
        field("installation", &O::installation, "its label, where the framework has several"),
        field("model", &O::model, "key of the model"), field("strategy", &O::strategy, "name of the layout"),
        field("profiler", &O::profiler, "what recorded"), field("first_step", &O::first_step, "that was recorded"),
        field("last_step", &O::last_step, "that was recorded"), field("status", &O::status, "how the run ended"),
        field("resumed", &O::resumed, "the profile was there already"),
        field("reason", &O::reason, "why it did not complete"),
        field("trace", &O::trace, "file that the profiler left"),
        field("summary", &O::summary, "file that says where the time went"),
        field("log", &O::log_path, "log of the run"),
        field("warnings", &O::warnings, "what to know before trusting the profile"));
  }
};

ProfileOutcome make_profile_outcome(const PlannedRun& run, RunStatus status, std::string reason);

// One row per profile, then a sentence for each that did not complete and for each warning. Empty without profiles.
std::string render_profiles(const std::vector<ProfileOutcome>& outcomes);

// How one planned run ended.
struct RunOutcome : TrainingOutcome {
  int64_t run = 1;
  std::optional<FailureKind> failure_kind;
  std::string result_path;  // empty where no result could be written
  std::optional<double> tokens_per_second, mfu;
  std::optional<double> step_seconds;  // median of the steady steps
  std::optional<PeakInfo> peak;        // peak of the device: the denominator of mfu
  std::optional<int64_t> steps;
  std::map<std::string, Estimate> figures;  // of the metrics, by key
  std::optional<planner::PublishedStanding> published;
  std::optional<RunProfile> profile;  // steps profiled after the measured ones

  static constexpr auto fields() {
    using O = RunOutcome;
    return field_list(
        field("platform", &O::platform, "nvd, amd or cpu"), field("framework", &O::framework, "what trained"),
        field("installation", &O::installation, "its label, where the framework has several"),
        field("model", &O::model, "key of the model"), field("strategy", &O::strategy, "name of the layout"),
        field("run", &O::run, "number of the repetition"), field("status", &O::status, "how the run ended"),
        field("resumed", &O::resumed, "the result was there already"),
        field("reason", &O::reason, "why it did not complete"),
        field("failure_kind", &O::failure_kind, "what made it fail, as a word"),
        field("result", &O::result_path, "result file"), field("log", &O::log_path, "log of the run"),
        field("tokens_per_second", &O::tokens_per_second, "steady-state throughput"),
        field("step_time_seconds", &O::step_seconds, "median of the steady steps"),
        field("mfu", &O::mfu, "model FLOPs utilisation, a fraction"),
        field("peak", &O::peak, "what one device can do: the denominator of mfu"),
        field("steps", &O::steps, "steps recorded"),
        field("figures", &O::figures, "figures of the metrics that are known, with their 95 % intervals"),
        field("published", &O::published, "standing among published runs of the kind; absent: there are none"),
        field("profile", &O::profile, "steps profiled after the measured ones; absent: none"),
        field("warnings", &O::warnings, "what to know before trusting the figures"));
  }
};
RunOutcome make_outcome(const PlannedRun& run, const RunResult& result);
RunOutcome make_outcome(const PlannedRun& run, RunStatus status, std::string reason);  // without result and log

struct SuiteReport {
  std::vector<RunOutcome> outcomes;
  std::vector<ProfileOutcome> profiles;
  std::vector<Problem> unavailable, skipped;  // as SuitePlan has them
  bool interrupted = false;
};

// done, work_failed or interrupted.
ExitStatus exit_status_of(const SuiteReport& report);

// One row per run, then one sentence per run that did not complete.
std::string render_report(const SuiteReport& report);

}  // namespace tprimat::suite
