#include "run/profile_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "launch/profilers.h"
#include "run/follow.h"
#include "run/run_facts.h"
#include "run/torch_traces.h"
#include "text/json_fields.h"
#include "trace/profile_summary.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// The summary file: what was recorded and where its time went. It has no rate and no step time, since a profiler slows
// a training down.
struct ProfileRecord {
  std::string kind = "profile";
  Platform platform = Platform::cpu;
  Framework framework = Framework::native;
  std::optional<std::string> framework_installation, framework_version;
  std::string model, strategy, timestamp, config_hash;
  Profiler profiler = Profiler::torch;
  int64_t first_step = 1, last_step = 1;
  std::string trace, log;
  std::vector<std::string> warnings;
  std::optional<logs::ProfileSummary> summary;
  static constexpr auto fields() {
    using R = ProfileRecord;
    return field_list(
        field("kind", &R::kind, "always profile: no figure of such a run is a measurement"),
        field("platform", &R::platform, "nvd, amd or cpu"), field("framework", &R::framework, "what trained"),
        field("framework_installation", &R::framework_installation, "its label, where the framework has several"),
        field("framework_version", &R::framework_version, "of what trained"),
        field("model", &R::model, "key of the model"), field("strategy", &R::strategy, "name of the layout"),
        field("timestamp", &R::timestamp, "of the start, UTC"),
        field("config_hash", &R::config_hash, "names the training"), field("profiler", &R::profiler, "what recorded"),
        field("first_step", &R::first_step, "that was recorded"),
        field("last_step", &R::last_step, "that was recorded"),
        field("trace", &R::trace, "file that the profiler left"), field("log", &R::log, "of the run"),
        field("warnings", &R::warnings, "what to know before trusting the profile"),
        field("summary", &R::summary, "where the time of the recorded steps went"));
  }
};

class ProfileRun {
 public:
  ProfileRun(const PlannedRun& run, const SuiteOptions& options, const SuiteContext& around, Reporter& reporter)
      : run_(run), options_(options), around_(around), reporter_(reporter) {}

  ProfileOutcome perform() {
    try {
      remove_earlier();
      const TrainingTrace trace = follow_training(run_, options_, around_, reporter_);
      const RunResult result = describe_run(run_, trace, around_);  // only to classify its end
      if (result.status != RunStatus::complete) return ended(result.status, result.status_reason.value_or(""));
      require_window(result);
      bring_trace();
      return store(result);
    } catch (const Error& error) {
      return ended(RunStatus::failed, to_string(error.problems().front()));
    } catch (const fs::filesystem_error& error) {
      return ended(RunStatus::failed, fmt::format("{}: {}", run_.plan.trace_path, error.code().message()));
    }
  }

 private:
  ProfileOutcome ended(RunStatus status, std::string reason) const {
    ProfileOutcome outcome = make_profile_outcome(run_, status, std::move(reason));
    outcome.log_path = run_.plan.log_path;
    return outcome;
  }

  // A trace of an earlier run must not be taken for this run's.
  void remove_earlier() const {
    for (const std::string& path : {run_.plan.trace_path, run_.plan.result_path, kernel_table()}) fs::remove(path);
    fs::remove_all(rocprof_folder(*run_.profile));
    for (const fs::path& trace : find_torch_traces(run_.request.paths.folder)) fs::remove(trace);
    fs::create_directories(fs::path(run_.plan.trace_path).parent_path());
  }

  void require_window(const RunResult& result) const {
    if (static_cast<int64_t>(result.step_times.size()) >= run_.profile->last_step) return;
    throw Error(Problem{fmt::format("the training ended after step {}, before the last one to record, {}",
                                    result.step_times.size(), run_.profile->last_step),
                        run_.plan.log_path,
                        "record earlier steps: --window A:B; the log shows why the training ended"});
  }

  std::string kernel_table() const { return run_.profile->trace + "_kernels.csv"; }

  // rocprofv3 names its files after the process; rank 0's become this run's.
  void bring_rocprof_files() const {
    const fs::path folder = rocprof_folder(*run_.profile);
    const std::string rank = fs::exists(folder / "rank0_results.pftrace") ? "rank0" : "rank";  // alone: no RANK
    if (fs::exists(folder / (rank + "_results.pftrace")))
      fs::rename(folder / (rank + "_results.pftrace"), run_.plan.trace_path);
    if (fs::exists(folder / (rank + "_kernel_stats.csv")))
      fs::rename(folder / (rank + "_kernel_stats.csv"), kernel_table());
  }

  void bring_trace() const {
    if (run_.profile->profiler == Profiler::rocprofv3) bring_rocprof_files();
    if (run_.profile->profiler == Profiler::torch && !fs::exists(run_.plan.trace_path))
      if (const auto traces = find_torch_traces(run_.request.paths.folder); !traces.empty())
        move_torch_trace(traces.front(), run_.plan.trace_path);
    if (!fs::exists(run_.plan.trace_path))
      throw Error(Problem{"the profiler wrote no trace", run_.plan.trace_path, "see the log for the reason"});
  }

  ProfileOutcome store(const RunResult& result) const {
    ProfileOutcome outcome = ended(RunStatus::complete, "");
    ProfileRecord record = record_of(result);
    if (run_.profile->whole_run)
      record.warnings.push_back(
          fmt::format("{} recorded the whole run, including its start, because {} marks no steps for it",
                      enum_name(run_.profile->profiler), enum_name(run_.framework)));
    try {
      record.summary = summarise();
    } catch (const Error& error) {
      record.warnings.push_back("the trace is not summarised: " + to_string(error.problems().front()));
    }
    write_file_atomically(run_.plan.result_path, print_json(to_json(record)));
    outcome.trace = record.trace;
    outcome.summary = run_.plan.result_path;
    outcome.warnings = record.warnings;
    return outcome;
  }

  ProfileRecord record_of(const RunResult& result) const {
    return {.platform = run_.platform,
            .framework = run_.framework,
            .framework_installation = run_.installation,
            .framework_version = run_.framework_version,
            .model = run_.spec.model.name,
            .strategy = run_.spec.parallel.strategy,
            .timestamp = result.timestamp,
            .config_hash = run_.config_hash,
            .profiler = run_.profile->profiler,
            .first_step = run_.profile->first_step,
            .last_step = run_.profile->last_step,
            .trace = run_.plan.trace_path,
            .log = run_.plan.log_path,
            .warnings = {},
            .summary = {}};
  }

  logs::ProfileSummary summarise() const {
    switch (run_.profile->profiler) {
      case Profiler::nsys: tabulate_kernels(); [[fallthrough]];
      case Profiler::rocprofv3: return logs::summarise_profile(fs::path(kernel_table()));
      case Profiler::torch: break;
      case Profiler::own: break;
    }
    return logs::summarise_profile(fs::path(run_.plan.trace_path));
  }

  // The file gets both the tables of `nsys stats` and its progress messages; the reader skips the latter.
  void tabulate_kernels() const {
    Command command;
    command.argv = {"nsys",
                    "stats",
                    "--report",
                    "cuda_gpu_kern_sum,cuda_gpu_mem_time_sum",
                    "--format=csv",
                    "--quiet",
                    "--force-export=true",
                    run_.plan.trace_path};
    command.log_path = kernel_table();
    const std::unique_ptr<ChildProcess> child = around_.processes.start(command);
    std::optional<ExitReason> exit;
    while (!(exit = child->poll(0.1, [](std::string_view) {})))
      if (around_.interrupts && around_.interrupts() > 0) child->stop();
    if (!exit->success())
      throw Error(Problem{"nsys stats: " + to_string(*exit), kernel_table(), "see that file for its output"});
  }

  const PlannedRun& run_;
  const SuiteOptions& options_;
  const SuiteContext& around_;
  Reporter& reporter_;
};

}  // namespace

ProfileOutcome profile_training(const PlannedRun& run, const SuiteOptions& options, const SuiteContext& around,
                                Reporter& reporter) {
  return ProfileRun(run, options, around, reporter).perform();
}

std::optional<ProfileOutcome> find_earlier_profile(const PlannedRun& run) {
  const std::string& path = run.plan.result_path;
  try {
    const Json json = parse_json(read_file(path), path);
    const auto is = [&](const char* key, const Json& value) { return json.contains(key) && json.at(key) == value; };
    const ProfileWindow& window = *run.profile;
    if (!is("config_hash", run.config_hash) || !is("profiler", std::string(enum_name(window.profiler))) ||
        !is("first_step", window.first_step) || !is("last_step", window.last_step) || !fs::exists(run.plan.trace_path))
      return std::nullopt;
  } catch (const Error&) {  // not there, or not readable: profile again
    return std::nullopt;
  }
  ProfileOutcome outcome = make_profile_outcome(run, RunStatus::complete, "");
  outcome.resumed = true;
  outcome.trace = run.plan.trace_path;
  outcome.summary = path;
  return outcome;
}

}  // namespace tprimat::suite
