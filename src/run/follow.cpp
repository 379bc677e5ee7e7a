#include "run/follow.h"

#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "run/failure.h"
#include "run/outside_ranks.h"
#include "run/step_follower.h"

namespace tprimat {
namespace {

constexpr double k_look_interval_seconds = 0.1;
constexpr size_t k_lines_kept = 200;

Command command_of(const PlannedRun& run, const SuiteOptions& options) {
  Command command;
  command.argv = run.plan.command;
  command.environment = run.plan.environment;
  command.working_directory = run.plan.working_directory;
  command.log_path = run.plan.log_path;
  command.time_limit_seconds = options.time_limit_seconds;
  command.grace_seconds = options.grace_seconds;
  return command;
}

class Follower {
 public:
  Follower(const PlannedRun& run, const SuiteOptions& options, const Surroundings& around, Reporter& reporter)
      : run_(run), options_(options), around_(around), reporter_(reporter), steps_(run.plan.steps_path) {}

  TrainingTrace follow() {
    trace_.timestamp = utc_timestamp();
    const double memory_kills = count_memory_kills();
    try {
      prepare();
      watch();
    } catch (const Error& error) {
      trace_.problem = to_string(error.problems().front());
    }
    if (trace_.problem || trace_.exit.kind != ExitReason::Kind::exited) end_outside_ranks(run_.plan, around_.processes);
    steps_.read_new(unix_time_seconds());
    trace_.steps = steps_.steps();
    trace_.unreadable_lines = steps_.unreadable_lines();
    trace_.memory_kill = count_memory_kills() > memory_kills;
    return std::move(trace_);
  }

 private:
  void prepare() {
    for (const GeneratedFile& file : run_.plan.files) write_file_atomically(file.path, file.content);
    std::error_code ignored;
    std::filesystem::remove(run_.plan.steps_path, ignored);  // steps of an earlier run are not this run's
    move_aside(run_.plan.checkpoints_path);
  }

  // Checkpoints of an earlier run are not this run's either, but took long to make: one generation is kept.
  static void move_aside(const std::string& folder) {
    std::error_code ignored;
    if (folder.empty() || !std::filesystem::exists(folder, ignored)) return;
    std::filesystem::remove_all(folder + ".before", ignored);
    std::filesystem::rename(folder, folder + ".before", ignored);
  }

  void watch() {
    const std::unique_ptr<ChildProcess> child = around_.processes.start(command_of(run_, options_));
    Sampler sampler(open_sensors_for(run_.plan, {child->pid(), threads(), around_.gpu_libraries}));
    const LineSink keep = [this](std::string_view line) { keep_line(line); };
    std::optional<ExitReason> exit;
    try {
      while (!(exit = child->poll(k_look_interval_seconds, keep))) {
        pass_on_interrupts(*child);
        look(sampler);
      }
    } catch (const Error&) {
      trace_.sensors = sampler.stop();
      throw;
    }
    trace_.exit = *exit;
    trace_.sensors = sampler.stop();
  }

  int64_t threads() const { return run_.spec.threads > 0 ? run_.spec.threads : around_.machine.cpu.usable_threads; }

  void keep_line(std::string_view line) {
    trace_.last_lines.emplace_back(line.substr(0, 4096));
    if (trace_.last_lines.size() > k_lines_kept) trace_.last_lines.pop_front();
  }

  // The first request asks the training to end, the second one ends it.
  void pass_on_interrupts(ChildProcess& child) {
    const int wanted = around_.interrupts ? around_.interrupts() : 0;
    for (; interrupts_passed_ < wanted; ++interrupts_passed_) child.stop();
  }

  void look(const Sampler& sampler) {
    if (seconds_since(last_look_) < k_look_interval_seconds) return;
    last_look_ = SteadyClock::now();
    steps_.read_new(unix_time_seconds());
    Progress progress = measure_progress(steps_.steps(), run_.spec.steps, run_.spec.tokens_per_step());
    progress.elapsed_seconds = seconds_since(start_);
    add_sensors(progress, sampler);
    reporter_.progressed(progress);
  }

  void add_sensors(Progress& progress, const Sampler& sampler) const {
    for (const SensorTrace& trace : sampler.latest()) {
      const Reading& reading = trace.readings.back();
      const bool of_the_run = run_.platform == Platform::cpu ? trace.source == "proc" : trace.source.ends_with(":0");
      if (of_the_run && reading.memory_used_bytes) progress.memory_bytes = reading.memory_used_bytes;
      if (reading.power_watts && run_.platform != Platform::cpu)
        progress.power_watts = progress.power_watts.value_or(0.0) + *reading.power_watts;
    }
  }

  const PlannedRun& run_;
  const SuiteOptions& options_;
  const Surroundings& around_;
  Reporter& reporter_;
  StepFollower steps_;
  TrainingTrace trace_;
  SteadyClock::time_point start_ = SteadyClock::now(), last_look_ = start_;
  int interrupts_passed_ = 0;
};

}  // namespace

TrainingTrace follow_training(const PlannedRun& run, const SuiteOptions& options, const Surroundings& around,
                              Reporter& reporter) {
  return Follower(run, options, around, reporter).follow();
}

}  // namespace tprimat
