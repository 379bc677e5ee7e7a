#pragma once

#include <optional>
#include <string>
#include <vector>

#include "result/run_result.h"
#include "run/suite_plan.h"

namespace tprimat::suite {

// How one profiled run ended. Without any rate: a profiler slows the training down.
struct ProfileOutcome {
  Platform platform = Platform::cpu;
  Framework framework = Framework::native;
  std::string model, strategy;
  Profiler profiler = Profiler::torch;
  int64_t first_step = 1, last_step = 1;
  RunStatus status = RunStatus::complete;
  bool resumed = false;
  std::optional<std::string> reason;          // for every status but complete
  std::optional<std::string> trace, summary;  // files
  std::string log_path;
  std::vector<std::string> warnings;
  static constexpr auto fields() {
    using O = ProfileOutcome;
    return field_list(
        field("platform", &O::platform, "nvd, amd or cpu"), field("framework", &O::framework, "what trained"),
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

}  // namespace tprimat::suite
