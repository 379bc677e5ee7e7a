#include "run/run.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "result/result_file.h"
#include "result/sampled_devices.h"
#include "result/summary.h"
#include "run/follow.h"
#include "run/forecast.h"
#include "run/peak_source.h"
#include "run/profile_run.h"
#include "run/profiled_steps.h"
#include "run/result_lock.h"
#include "run/run_facts.h"
#include "run/telemetry_report.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

// Locks of this run's result and of its log: log names may be equal where result names differ.
class RunLocks {
 public:
  explicit RunLocks(const PlannedRun& run)
      : result_(run.request.paths.folder + ".lock"), log_(lock_of_log(run.request.paths)) {}

  int kept_open() const {
    return result_.descriptor();
  }  // until the run's process tree has ended, even if we end first

 private:
  static std::filesystem::path lock_of_log(const RunPaths& paths) {
    const std::filesystem::path folder = std::filesystem::path(paths.folder).parent_path();
    return folder / (std::filesystem::path(paths.log).filename().string() + ".lock");
  }

  ResultLock result_, log_;
};

class Suite {
 public:
  Suite(const SuiteOptions& options, const SuiteContext& around, Reporter& reporter)
      : options_(options), around_(around), reporter_(reporter), peaks_(around, reporter) {}

  SuiteReport run(const SuitePlan& plan) {
    SuiteReport report;
    report.unavailable = plan.unavailable;
    report.skipped = plan.skipped;
    for (const PlannedRun& each : plan.runs) {
      reporter_.run_started(each, report.outcomes.size() + report.profiles.size() + 1, plan.runs.size());
      if (each.profile) {
        report.profiles.push_back(profile(each));
        reporter_.profile_ended(report.profiles.back());
      } else {
        report.outcomes.push_back(perform(each));
        reporter_.run_ended(report.outcomes.back());
      }
    }
    report.interrupted = is_interrupted();
    return report;
  }

 private:
  RunOutcome perform(const PlannedRun& run) {
    if (is_interrupted()) return make_outcome(run, RunStatus::interrupted, "not started");
    if (const auto earlier = find_earlier_result(run)) return resume(run, *earlier);
    try {
      require_replaceable(run.plan.result_path);
      const RunLocks locks(run);
      return perform_alone(run, locks.kept_open());
    } catch (const Error& error) {
      return make_outcome(run, RunStatus::failed, to_string(error.problems().front()));
    }
  }

  RunOutcome perform_alone(const PlannedRun& run, int kept_open) {
    if (const auto earlier = find_earlier_result(run)) return resume(run, *earlier);  // finished in the meantime
    if (has_trained_) cool_down();
    const std::optional<MeasuredPeak> peak = peaks_.find(run);
    if (is_interrupted()) return make_outcome(run, RunStatus::interrupted, "not started");
    options_.kept_open = kept_open;
    return store(run, train(run, peak));
  }

  // Repeats a failed run up to the user's limit. The log of each attempt is kept.
  RunResult train(const PlannedRun& run, const std::optional<MeasuredPeak>& peak) {
    std::vector<std::string> failures;
    for (int64_t number = 1;; ++number) {
      RunResult result = train_once(run, peak);
      if (options_.retries > 0) result.attempt = number;
      for (const std::string& failure : failures) add_warning(result, failure);
      if (result.status != RunStatus::failed || number > options_.retries || is_interrupted()) return result;
      failures.push_back(fmt::format("attempt {} failed: {}", number, result.status_reason.value_or("unknown reason")));
      reporter_.noted(fmt::format("{}; trying again ({} of {})", failures.back(), number, options_.retries));
      set_aside(run.plan.log_path, number);
      cool_down();
    }
  }

  RunResult train_once(const PlannedRun& run, const std::optional<MeasuredPeak>& peak) {
    has_trained_ = true;
    std::optional<DoctorReport> doctor = examine(run);
    remove_profiled_steps(run);
    const TrainingTrace trace = follow_training(run, options_, around_, reporter_);
    RunResult result = describe_run(run, trace, around_);
    bring_profiled_steps(result, run);
    result.doctor = std::move(doctor);
    result.prediction =
        predict(run, around_.machine, options_.planner, peak ? std::optional(peak->peak) : std::nullopt);
    measure(result, run, trace, peak);
    note_circumstances(result, trace);
    return result;
  }

  // Before each training, since a machine changes between two. A finding that an earlier one had is not shown again.
  std::optional<DoctorReport> examine(const PlannedRun& run) {
    if (!around_.examine || run.plan.place == Whereabouts::elsewhere) return std::nullopt;
    DoctorReport report = around_.examine(run);
    for (const MachineFinding& finding : report.findings)
      if (shown_.insert(finding.area + finding.code.value_or(finding.what)).second)
        reporter_.noted(fmt::format("{}: {}", enum_name(finding.severity), describe(finding)));
    return report;
  }

  // "training_native_gpt.log" -> "training_native_gpt.attempt1.log"
  static void set_aside(const std::filesystem::path& log, int64_t number) {
    std::filesystem::path aside = log;
    aside.replace_extension(fmt::format(".attempt{}{}", number, log.extension().string()));
    std::error_code ignored;
    std::filesystem::rename(log, aside, ignored);
  }

  // So that no run starts on a processor heated by the previous one.
  void cool_down() const {
    if (options_.cool_down_seconds <= 0.0 || is_interrupted()) return;
    reporter_.noted(fmt::format("cooling down for {}", format_duration(options_.cool_down_seconds)));
    const auto start = SteadyClock::now();
    while (seconds_since(start) < options_.cool_down_seconds && !is_interrupted())
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

  ProfileOutcome profile(const PlannedRun& run) {
    if (is_interrupted()) return make_profile_outcome(run, RunStatus::interrupted, "not started");
    if (options_.resume)
      if (const auto earlier = find_earlier_profile(run)) return *earlier;
    try {
      const RunLocks locks(run);
      options_.kept_open = locks.kept_open();
      return profile_training(run, options_, around_, reporter_);
    } catch (const Error& error) {
      return make_profile_outcome(run, RunStatus::failed, to_string(error.problems().front()));
    }
  }

  // A peak that other processes disturbed says nothing against a run.
  static bool is_below_rate(RunResult result, const SummaryOptions& options) {
    summarise_run(result, options);
    return result.derived.mfu && result.derived.mfu->value > 1;
  }

  // The steady state defines the window of the sensors, whose figures are inputs of the derived ones.
  void measure(RunResult& result, const PlannedRun& run, const TrainingTrace& trace,
               const std::optional<MeasuredPeak>& peak) const {
    SummaryOptions options{options_.fixed_warmup_steps, std::nullopt, run.setup.usd_per_hour};
    if (peak) options.peak = peak->peak;
    if (peak && peak->warning) {
      add_warning(result, *peak->warning);
      if (is_below_rate(result, options)) {
        options.peak.reset();
        add_warning(result, "no MFU: the run was faster than the disturbed measurement of the peak");
      }
    }
    summarise_run(result, options);
    const ThreadCounts threads{around_.machine.cpu.logical_processors, run.spec.threads * run.spec.parallel.ranks()};
    result.step_telemetry = measure_steps(trace.sensors, step_windows(trace, result), run.platform, threads);
    if (const auto window = steady_window(trace, step_number(result, 0) - 1 + result.warmup.steps_excluded)) {
      result.telemetry = report_telemetry(trace.sensors, *window, run.platform);
      if (const int64_t sampled = count_sampled_devices(result); sampled > 0) refuse_partial_energy(result, sampled);
      result.memory_metrics.measurement_method = describe_memory_sources(result);
      note_throttling(result);
      note_disturbance(result, threads);
      summarise_run(result, options);
    }
  }

  RunOutcome store(const PlannedRun& run, const RunResult& result) {
    try {
      write_run_result(run.plan.result_path, result);
      return make_outcome(run, result);
    } catch (const Error& error) {
      RunOutcome outcome = make_outcome(run, RunStatus::failed, to_string(error.problems().front()));
      outcome.log_path = run.plan.log_path;
      return outcome;
    }
  }

  std::optional<RunResult> find_earlier_result(const PlannedRun& run) const {
    return options_.resume ? find_complete_result(run) : std::nullopt;
  }

  static RunOutcome resume(const PlannedRun& run, const RunResult& earlier) {
    RunOutcome outcome = make_outcome(run, earlier);
    outcome.resumed = true;
    return outcome;
  }

  bool is_interrupted() const { return around_.interrupts && around_.interrupts() > 0; }

  SuiteOptions options_;
  const SuiteContext& around_;
  Reporter& reporter_;
  PeakSource peaks_;
  bool has_trained_ = false;     // else there is no need to cool down
  std::set<std::string> shown_;  // findings about this machine
};

}  // namespace

std::optional<RunResult> find_complete_result(const PlannedRun& run) {
  try {
    RunResult earlier = load_run_result(run.plan.result_path);
    if (earlier.status == RunStatus::complete && earlier.config_hash == run.config_hash &&
        has_profiled_steps(earlier, run))
      return earlier;
  } catch (const Error&) {  // missing or unreadable: run again
  }
  return std::nullopt;
}

SuiteReport run_suite(const SuitePlan& plan, const SuiteOptions& options, const SuiteContext& around,
                      Reporter& reporter) {
  return Suite(options, around, reporter).run(plan);
}

}  // namespace tprimat::suite
