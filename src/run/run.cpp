#include "run/run.h"

#include "base/error.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "run/follow.h"
#include "run/peak_source.h"
#include "run/profile_run.h"
#include "run/run_facts.h"
#include "run/telemetry_report.h"

namespace tprimat {
namespace {

class Suite {
 public:
  Suite(const SuiteOptions& options, const Surroundings& around, Reporter& reporter)
      : options_(options), around_(around), reporter_(reporter), peaks_(around, reporter) {}

  SuiteReport run(const SuitePlan& plan) {
    SuiteReport report;
    report.unavailable = plan.unavailable;
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
    const std::optional<MeasuredPeak> peak = peaks_.find(run);
    if (is_interrupted()) return make_outcome(run, RunStatus::interrupted, "not started");
    const TrainingTrace trace = follow_training(run, options_, around_, reporter_);
    RunResult result = describe_run(run, trace, around_);
    measure(result, run, trace, peak);
    return store(run, result);
  }

  ProfileOutcome profile(const PlannedRun& run) {
    if (is_interrupted()) return make_profile_outcome(run, RunStatus::interrupted, "not started");
    if (options_.resume)
      if (const auto earlier = find_earlier_profile(run)) return *earlier;
    return profile_training(run, options_, around_, reporter_);
  }

  // The steady state decides over which time the sensors are read, and what they say goes into the derived figures.
  void measure(RunResult& result, const PlannedRun& run, const TrainingTrace& trace,
               const std::optional<MeasuredPeak>& peak) const {
    SummaryOptions options{options_.fixed_warmup_steps, std::nullopt, run.setup.usd_per_hour};
    if (peak) options.peak = peak->peak;
    if (peak && peak->warning) add_warning(result, *peak->warning);
    summarise_run(result, options);
    if (const auto window = steady_window(trace, result.warmup.steps_excluded)) {
      result.telemetry = report_telemetry(trace.sensors, *window, run.platform);
      result.memory_metrics.measurement_method = describe_memory_sources(result);
      note_throttling(result);
      note_disturbance(result, {around_.machine.cpu.logical_processors, run.spec.threads * run.spec.parallel.ranks()});
      summarise_run(result, options);
    }
  }

  RunOutcome store(const PlannedRun& run, const RunResult& result) {
    try {
      write_run_result(run.plan.result_path, result);
      return make_outcome(run, result);
    } catch (const Error& error) {
      return make_outcome(run, RunStatus::failed, to_string(error.problems().front()));
    }
  }

  std::optional<RunResult> find_earlier_result(const PlannedRun& run) const {
    if (!options_.resume) return std::nullopt;
    try {
      RunResult earlier = load_run_result(run.plan.result_path);
      if (earlier.status == RunStatus::complete && earlier.config_hash == run.config_hash) return earlier;
    } catch (const Error&) {  // not there, or not readable: run again
    }
    return std::nullopt;
  }

  static RunOutcome resume(const PlannedRun& run, const RunResult& earlier) {
    RunOutcome outcome = make_outcome(run, earlier);
    outcome.resumed = true;
    return outcome;
  }

  bool is_interrupted() const { return around_.interrupts && around_.interrupts() > 0; }

  const SuiteOptions& options_;
  const Surroundings& around_;
  Reporter& reporter_;
  PeakSource peaks_;
};

}  // namespace

SuiteReport run_suite(const SuitePlan& plan, const SuiteOptions& options, const Surroundings& around,
                      Reporter& reporter) {
  return Suite(options, around, reporter).run(plan);
}

}  // namespace tprimat
