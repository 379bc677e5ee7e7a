#include "run/follow.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "extract/common/failure_signs.h"
#include "launch/loaded_checkpoint.h"
#include "run/failure.h"
#include "run/gpus_of_run.h"
#include "run/hang_watch.h"
#include "run/stated_cause.h"
#include "run/step_source.h"

namespace tprimat::suite {
namespace {

constexpr double k_cleanup_limit_seconds = 60.0;  // a busy batch system takes its time
constexpr double k_hurried_limit_seconds = 5.0;   // for a suite that must end soon itself

void run_cleanup(const LaunchPlan& plan, const SuiteContext& around) {
  const bool is_hurried = around.interrupts && around.interrupts() > 0;
  Command command;
  command.argv = plan.cleanup_command;
  command.time_limit_seconds = is_hurried ? k_hurried_limit_seconds : k_cleanup_limit_seconds;
  command.grace_seconds = 1.0;
  const std::unique_ptr<ChildProcess> child = around.processes.start(command);
  std::string words;
  std::optional<ExitReason> exit;
  while (!(exit = child->poll(0.1, [&](std::string_view line) { words = line; }))) {
  }
  if (!exit->success()) log_detail("after the run was stopped: " + (words.empty() ? to_string(*exit) : words));
}

constexpr double k_look_interval_seconds = 0.1;
constexpr double k_gpu_patience_seconds = 3.0;

Command command_of(const PlannedRun& run, const SuiteOptions& options) {
  Command command;
  command.argv = run.plan.command;
  command.environment = run.plan.environment;
  command.working_directory = run.plan.working_directory;
  command.log_path = run.plan.log_path;
  command.time_limit_seconds = options.time_limit_seconds;
  command.grace_seconds = options.grace_seconds;
  command.kept_open = options.kept_open;
  if (!run.plan.cleanup_command.empty())
    command.orphaned_grace_seconds = 20.0;  // it cancels processes that are not its children
  return command;
}

// Waiting in a queue is not a hang.
HangLimits hang_limits_of(const SuiteOptions& options, const LaunchPlan& plan) {
  HangLimits limits = options.hang;
  if (plan.waits_in_queue && !limits.startup_seconds) limits.startup_seconds = 0.0;
  return limits;
}

std::unique_ptr<StepSource> open_steps(const LaunchPlan& plan) {
  if (plan.steps_path.empty()) return std::make_unique<LogSteps>(plan.log_path);
  return std::make_unique<StepFollower>(plan.steps_path);
}

class Follower {
 public:
  Follower(const PlannedRun& run, const SuiteOptions& options, const SuiteContext& around, Reporter& reporter)
      : run_(run),
        options_(options),
        around_(around),
        reporter_(reporter),
        steps_(open_steps(run.plan)),
        hang_(limits_of(hang_limits_of(options, run.plan), run.spec, run.platform), run.spec.steps) {}

  TrainingTrace follow() {
    trace_.timestamp = utc_timestamp();
    const double memory_kills = count_memory_kills();
    const bool elsewhere = run_.plan.place == Whereabouts::elsewhere;  // where this machine's sensors show nothing
    const GpuNeighbours neighbours(around_.gpu_libraries, elsewhere ? Platform::cpu : run_.platform);
    try {
      prepare();
      watch();
    } catch (const Error& error) {
      note_problem(error);
    }
    if (trace_.problem || trace_.hung || trace_.exit.kind != ExitReason::Kind::exited)
      end_outside_ranks(run_.plan, around_);
    steps_->read_rest(unix_time_seconds());
    if (!steps_->damage().empty()) trace_.damage.push_back(steps_->damage());
    trace_.neighbours = neighbours.report(k_gpu_patience_seconds);
    trace_.steps = steps_->steps();
    trace_.log = steps_->take_log();
    trace_.unreadable_lines = steps_->unreadable_lines();
    trace_.memory_kill = !elsewhere && count_memory_kills() > memory_kills;
    return std::move(trace_);
  }

 private:
  void prepare() {
    write_request();
    for (const GeneratedFile& file : run_.plan.files) write_generated(file);
    std::error_code ignored;
    const std::string& steps = run_.plan.steps_path.empty() ? run_.plan.log_path : run_.plan.steps_path;
    require_replaceable(steps);
    std::filesystem::remove(steps, ignored);  // from an earlier run
    if (!run_.plan.cause_path.empty()) std::filesystem::remove(run_.plan.cause_path, ignored);
    if (!continues_in_place(run_.spec, run_.plan.checkpoints_path)) move_aside(run_.plan.checkpoints_path);
  }

  static void write_generated(const GeneratedFile& file) {
    write_file_atomically(file.path, file.content);
    using std::filesystem::perms;
    const perms all = perms::owner_exec | perms::group_exec | perms::others_exec;
    if (file.executable) std::filesystem::permissions(file.path, all, std::filesystem::perm_options::add);
  }

  // The requested settings, to verify the result later. A trainer that reads a specification overwrites it with its
  // own.
  void write_request() const {
    const std::filesystem::path folder = run_.request.paths.folder;
    write_file_atomically(folder / "train_spec.json", print_json(train_spec_to_json(run_.spec)));
    write_file_atomically(folder / "launch.json", print_json(launch_facts_to_json(run_.launch_facts)));
  }

  void note_problem(const Error& error) {
    trace_.problem = to_string(error.problems().front());
    if (error.status() == ExitStatus::missing_component) trace_.problem_kind = FailureKind::missing_program;
    if (const auto kind = logs::find_failure_kind(*trace_.problem)) trace_.problem_kind = *kind;
  }

  // Checkpoints of an earlier run are moved away, because they took long to make; one generation is kept.
  static void move_aside(const std::string& folder) {
    std::error_code ignored;
    if (folder.empty() || !std::filesystem::exists(folder, ignored)) return;
    std::filesystem::remove_all(folder + ".before", ignored);
    std::filesystem::rename(folder, folder + ".before", ignored);
  }

  void watch() {
    const std::unique_ptr<ChildProcess> child = around_.processes.start(command_of(run_, options_));
    Sampler sampler(open_sensors_for(run_.plan, {child->pid(), threads(), around_.gpu_libraries, gpus_of(run_)}));
    std::optional<ExitReason> exit;
    try {
      while (!(exit = child->poll(k_look_interval_seconds, nullptr))) {
        pass_on_interrupts(*child);
        look(sampler);
        end_hang(*child);
      }
    } catch (const Error&) {
      trace_.sensors = sampler.stop();
      throw;
    }
    trace_.exit = *exit;
    trace_.sensors = sampler.stop();
    if (!child->log_damage().empty()) trace_.damage.push_back(child->log_damage());
  }

  int64_t threads() const { return run_.spec.threads > 0 ? run_.spec.threads : around_.machine.cpu.usable_threads; }

  // The first request asks the training to end, the second one kills it.
  void pass_on_interrupts(ChildProcess& child) {
    const int wanted = around_.interrupts ? around_.interrupts() : 0;
    for (; interrupts_passed_ < wanted; ++interrupts_passed_) child.stop();
  }

  void end_hang(ChildProcess& child) {
    const double now = seconds_since(start_);
    const bool is_stopped = interrupts_passed_ > 0 || now >= options_.time_limit_seconds.value_or(now + 1.0);
    if (trace_.hung || is_stopped) return;
    trace_.hung = hang_.find_hang(now);
    if (!trace_.hung) return;
    std::error_code unreadable;
    const auto size = std::filesystem::file_size(run_.plan.log_path, unreadable);
    if (!unreadable) trace_.log_bytes = static_cast<int64_t>(size);
    child.stop();
  }

  void look(const Sampler& sampler) {
    if (seconds_since(last_look_) < k_look_interval_seconds) return;
    last_look_ = SteadyClock::now();
    steps_->read_new(unix_time_seconds());
    tell_waiting();
    hang_.look(steps_->steps(), seconds_since(start_));
    Progress progress = measure_progress(steps_->steps(), run_.spec.steps, run_.spec.tokens_per_step());
    progress.elapsed_seconds = seconds_since(start_);
    if (run_.profile) progress.tokens_per_second.reset();  // meaningless under a profiler
    progress.late_seconds = hang_.late_seconds(progress.elapsed_seconds);
    add_sensors(progress, sampler);
    reporter_.progressed(progress);
  }

  // What a launcher waits for, such as a free node.
  void tell_waiting() {
    if (!steps_->steps().empty()) return;
    const auto stated = read_stated_cause(run_.plan.cause_path);
    if (!stated || stated->sentence == told_) return;
    told_ = stated->sentence;
    reporter_.noted(told_);
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
  const SuiteContext& around_;
  Reporter& reporter_;
  std::unique_ptr<StepSource> steps_;
  HangWatch hang_;
  TrainingTrace trace_;
  SteadyClock::time_point start_ = SteadyClock::now(), last_look_ = start_;
  int interrupts_passed_ = 0;
  std::string told_;
};

}  // namespace

std::vector<std::unique_ptr<Sensor>> open_sensors_for(const LaunchPlan& plan, const WatchRequest& request) {
  if (plan.place == Whereabouts::elsewhere) return {};
  std::vector<std::unique_ptr<Sensor>> sensors = open_sensors(request);
  if (plan.place == Whereabouts::this_machine)
    std::erase_if(sensors, [](const std::unique_ptr<Sensor>& sensor) { return sensor->name() == "proc"; });
  return sensors;
}

void end_outside_ranks(const LaunchPlan& plan, const SuiteContext& around) {
  if (plan.cleanup_command.empty()) return;
  try {
    run_cleanup(plan, around);
  } catch (const Error& error) {
    log_warning("after the run was stopped: " + to_string(error.problems().front()));
  }
}

TrainingTrace follow_training(const PlannedRun& run, const SuiteOptions& options, const SuiteContext& around,
                              Reporter& reporter) {
  return Follower(run, options, around, reporter).follow();
}

}  // namespace tprimat::suite
