#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "base/program_module.h"
#include "cli/elsewhere.h"
#include "cli/from_plan.h"
#include "cli/print_plan.h"
#include "cli/run_options.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/output_target.h"
#include "command_line/terminal.h"
#include "command_line/value_checks.h"
#include "doctor/machine_before_run.h"
#include "launch/installed.h"
#include "launch/launch_plan.h"
#include "launch/mounted_program.h"
#include "launch/trainer_program.h"
#include "process/interrupt.h"
#include "process/process.h"
#include "run/adapt.h"
#include "run/forecast.h"
#include "run/gpus_of_run.h"
#include "run/plan_layouts.h"
#include "run/reporters.h"
#include "run/run.h"
#include "run/version_notes.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/machine.h"
#include "telemetry/memory_nodes.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_run_examples =
    "  tprimat run                                       everything in the configuration, on this machine\n"
    "  tprimat run --model llama --steps 20 --runs 3     one model, three times\n"
    "  tprimat run --framework mega@a,mega@b --runs 3    two installations of one framework, alternating\n"
    "  tprimat run --from-plan top=3 --runs 3            the planner's three best layouts, predicted and measured\n"
    "  tprimat run --profile-steps 3                     stores profiler traces of three further steps beside each "
    "result\n"
    "  tprimat run --dry-run                             shows a short plan and the command of each run\n"
    "  tprimat run --dry-run --verbose > plan.sh         the same as a whole script, with the files\n"
    "  tprimat run --resume --timeout 30m                continues an earlier suite\n"
    "  tprimat run --load checkpoints --steps 2000       continues a training from its checkpoint\n";

void add_overrides(std::vector<std::string>& overrides, const RunOptions& options) {
  if (options.steps > 0) overrides.push_back(fmt::format("training.duration.max_steps={}", options.steps));
  if (options.profile_steps) overrides.push_back(fmt::format("experiment.profile_steps={}", *options.profile_steps));
  if (!options.adapt.empty())
    overrides.push_back(
        fmt::format("experiment.adapt={}", enum_name(parse_choice<suite::Adapt>(options.adapt, "--adapt"))));
  if (!options.launcher.empty())
    overrides.push_back(
        fmt::format("launch.launcher={}", enum_name(parse_choice<Launcher>(options.launcher, "--launcher"))));
  if (options.nodes > 0) overrides.push_back(fmt::format("launch.nodes={}", options.nodes));
}

std::optional<Platform> platform_of(const RunOptions& options) {
  if (options.platform == "auto") return std::nullopt;
  return parse_choice<Platform>(options.platform, "--platform");
}

// The configuration, and the default for this machine's GPUs where that is in force.
struct RunConfig {
  suite::Experiment experiment;
  std::optional<GpuSession> gpu_default;
};

// This machine's memory domains, where the native trainer's ranks can be started on them and each gets its processors.
suite::OpenRanks open_ranks(const RunOptions& options, const MachineFacts& machine) {
  const bool is_native =
      std::ranges::all_of(options.frameworks, [](const std::string& name) { return name == "native"; });
  if (!is_native || !suite::find_in_path("mpirun") || !find_program_module("libtprimat_mpi.so")) return {};
  const std::vector<int> processors = affinity();
  if (machine.cpu.usable_threads < std::ssize(processors)) return {};  // a quota
  const std::vector<MemoryNode> nodes = usable_memory_nodes("/", processors);
  return {std::max<int64_t>(std::ssize(nodes), 1),
          machine.memory_limit_bytes.value_or(machine.memory_bytes.value_or(0))};
}

RunConfig load(const Session& session, const RunOptions& options, const MachineFacts& machine) {
  suite::ConfigSources sources = config_sources(session);
  sources.open_ranks = open_ranks(options, machine);
  auto gpu_default = use_gpu_default(sources, machine, platform_of(options));
  add_overrides(sources.overrides, options);
  // The strategy decides which fairness rules hold, so a single one is the methodology of this run.
  if (options.strategies.size() == 1) sources.strategy = options.strategies.front();
  sources.has_several_strategies = options.strategies.size() > 1;
  sources.plans_layouts = !options.from_plan.empty();
  suite::LoadedExperiment loaded = suite::load_experiment(sources);
  for (const Problem& warning : loaded.warnings) log_warning(to_string(warning));
  log_detail("configuration: " + loaded.origin.text());
  const auto cpu = loaded.experiment.platforms.find(Platform::cpu);
  if (sources.open_ranks.domains > 1 && cpu != loaded.experiment.platforms.end() &&
      cpu->second.num_devices == sources.open_ranks.domains)
    log_detail(fmt::format("{} ranks, one per memory domain (NUMA node)", cpu->second.num_devices));
  if (options.runs > 0) loaded.experiment.runs = options.runs;
  if (!options.output.empty()) loaded.experiment.output_directory = options.output;
  if (sources.plans_layouts) refuse_adapting(loaded.experiment);
  return {std::move(loaded.experiment), std::move(gpu_default)};
}

suite::SuiteRequest request_of(const RunOptions& options) {
  suite::SuiteRequest request;
  request.platform = platform_of(options);
  for (const std::string& name : options.frameworks)
    if (name == "all")
      request.all_frameworks = true;
    else
      request.frameworks.push_back(suite::parse_framework_choice(name, "--framework"));
  for (const suite::FrameworkChoice& each : request.frameworks)
    if (request.all_frameworks && each.label)
      throw Error(Problem{fmt::format("'all' and '{}' cannot be combined", each.name()), "--framework",
                          "list the frameworks by name"});
  if (request.all_frameworks) request.frameworks.clear();
  request.models = options.models;
  request.strategies = options.strategies;
  if (!options.dataset.empty()) request.dataset = options.dataset;
  if (options.load && options.load->empty())
    throw Error(
        Problem{"the folder of the checkpoint is an empty text", "--load", "name the folder, or leave --load out"});
  if (options.load) request.load = *options.load;
  request.own_program = std::filesystem::read_symlink("/proc/self/exe").string();
  request.program_files = suite::find_program_files();
  if (options.dry_run) request.presence = suite::Presence::any;
  request.profile = options.profile;
  return request;
}

void write_progress(std::string_view text) { write_stderr(text); }

std::unique_ptr<suite::Reporter> make_reporter(const Session& session) {
  if (session.quiet) return std::make_unique<suite::SilentReporter>();
  constexpr size_t k_usual_width = 80;
  const auto width = [] { return terminal_width(STDERR_FILENO, k_usual_width); };
  if (is_live_terminal(STDERR_FILENO)) return std::make_unique<suite::TerminalReporter>(write_progress, width);
  return std::make_unique<suite::PlainReporter>(write_progress);
}

// The trainer's own libraries, for the record. That it cannot name them keeps nothing from being measured.
std::map<std::string, std::string> built_in_libraries(ProcessRunner& processes, const InterruptGuard& interrupts) {
  if (!suite::find_trainer_program()) return {};
  try {
    return suite::read_trainer_libraries(processes, Platform::cpu, [&] { return interrupts.count() > 0; }).built_in;
  } catch (const Error& error) {
    if (error.status() == ExitStatus::interrupted) throw;
    for (Problem problem : error.problems()) {
      problem.what += ", so results will not name the trainer's libraries";
      log_warning(to_string(problem));
    }
    return {};
  }
}

suite::SuiteContext suite_context(ProcessRunner& processes, const InterruptGuard& interrupts) {
  const auto libraries = open_gpu_libraries();
  return {processes,
          read_machine(libraries),
          libraries,
          [&](Precision precision, int64_t threads) {
            return suite::measure_cpu_peak(processes, precision, threads, [&] { return interrupts.count() > 0; });
          },
          [&interrupts] { return interrupts.count(); },
          {},
          {}};
}

// What the doctor finds on this machine when a run is about to start.
std::function<DoctorReport(const suite::PlannedRun&)> examine_before_run(const suite::SuiteContext& around) {
  return [machine = around.machine, libraries = around.gpu_libraries](const suite::PlannedRun& run) {
    const suite::RunNeeds needs{run.platform, suite::gpus_of(run),
                                std::filesystem::path(run.plan.result_path).parent_path()};
    return suite::examine_machine(suite::read_machine_before_run(needs, machine, libraries));
  };
}

bool has_problem(const suite::SuitePlan& suite, const Problem& problem) {
  for (const Problem& each : suite.unavailable)
    if (each.what == problem.what && each.where == problem.where) return true;
  return false;
}

// With `experiment.profiling`, every training once more after the measured runs. That a profiler is missing does not
// keep these from being measured.
suite::SuitePlan plan_all(const suite::Experiment& experiment, const RunOptions& options, const MachineFacts& machine,
                          suite::LayoutPlanner& layouts) {
  suite::SuiteRequest request = request_of(options);
  request.planner = planner::load_planner_settings(experiment.planner_parameters);
  if (!options.from_plan.empty())
    request.choose_layouts = [&](const suite::PlannedRun& training) {
      if (training.framework == Framework::native) suite::require_trainer_program();  // which measures the processor
      return layouts.choose(training);
    };
  suite::SuitePlan suite = suite::plan_suite(experiment, request, machine);
  if (!experiment.profiling || options.profile) return suite;
  request.profile = suite::ProfileRequest();
  try {
    suite::SuitePlan profiles = suite::plan_suite(experiment, request, machine);
    for (suite::PlannedRun& run : profiles.runs) suite.runs.push_back(std::move(run));
    for (const Problem& problem : profiles.unavailable)
      if (!has_problem(suite, problem)) suite.unavailable.push_back(problem);
  } catch (const Error& error) {
    for (const Problem& problem : error.problems())
      if (!has_problem(suite, problem)) suite.unavailable.push_back(problem);
  }
  return suite;
}

// A result of such a run has the sentence among its warnings.
void warn_of_unprofiled(const suite::SuitePlan& suite) {
  for (const suite::PlannedRun& run : suite.runs)
    if (run.run == 1 && !run.unprofiled.empty()) log_warning(suite::name_training(run) + ": " + run.unprofiled);
}

// Nothing is started where something cannot end well. What `resume` finds complete does not start.
void refuse_misfits(suite::SuitePlan suite, const MachineFacts& machine, const planner::PlannerSettings& planner,
                    const RunOptions& options) {
  if (options.resume)
    std::erase_if(suite.runs, [](const suite::PlannedRun& run) { return !run.profile && find_complete_result(run); });
  std::vector<Problem> problems = suite::find_misfits(suite, machine, planner);
  if (!options.force) throw_if_any(std::move(problems));
  for (const Problem& problem : problems) log_warning(to_string(problem));
  for (const Problem& problem : suite::find_doubtful_fits(suite, machine, planner)) log_warning(to_string(problem));
}

suite::SuiteOptions suite_options_of(const RunOptions& options, const suite::Experiment& experiment) {
  suite::SuiteOptions suite;
  suite.resume = options.resume;
  suite.fixed_warmup_steps = experiment.fixed_warmup_steps;
  if (options.time_limit_seconds > 0.0) suite.time_limit_seconds = options.time_limit_seconds;
  suite.hang.factor = options.hang_factor;
  if (options.startup_seconds >= 0.0) suite.hang.startup_seconds = options.startup_seconds;
  suite.cool_down_seconds = options.cool_down_seconds >= 0.0 ? options.cool_down_seconds : experiment.cool_down_seconds;
  suite.retries = options.retries;
  suite.planner = planner::load_planner_settings(experiment.planner_parameters);
  return suite;
}

ExitStatus run_experiment(const Session& session, const RunOptions& options, const RunConfig& config,
                          suite::SuiteContext& around, const InterruptGuard& interrupts) {
  const suite::Experiment& experiment = config.experiment;
  const suite::SuiteOptions how = suite_options_of(options, experiment);
  const std::unique_ptr<suite::Reporter> reporter = make_reporter(session);
  suite::LayoutPlanner layouts(suite::parse_top(options.from_plan).value_or(0), around, how.planner, *reporter);
  suite::SuitePlan suite = plan_all(experiment, options, around.machine, layouts);
  state_choice(config.gpu_default, suite, how.planner.parameters);
  note_missing_layouts(layouts.plans());
  const bool needs_trainer = std::any_of(suite.runs.begin(), suite.runs.end(), [&](const suite::PlannedRun& run) {
    const bool uses_trainer = run.framework == Framework::native || suite::has_start_script(run.plan);
    return uses_trainer && !(options.resume && !run.profile && find_complete_result(run));
  });
  if (options.dry_run) warn_of_unprofiled(suite);
  if (options.dry_run && options.platform == "auto") note_other_platform(suite, around.machine);
  if (options.dry_run) return print_plan(suite, layouts.plans(), around.machine, how.planner, session);
  for (const Problem& problem : suite::list_unchecked_versions(suite)) log_warning(to_string(problem));
  if (!session.quiet)
    write_stderr(suite::render_default_choice(suite) + suite::render_adaptations(suite) +
                 suite::render_layout_plans(layouts.plans()));
  if (needs_trainer) suite::require_trainer_program();
  refuse_misfits(suite, around.machine, how.planner, options);
  around.libraries = built_in_libraries(around.processes, interrupts);
  around.measured_peaks = layouts.measured_peaks();
  around.examine = examine_before_run(around);

  const suite::SuiteReport report = suite::run_suite(suite, how, around, *reporter);
  print_report(report, layouts.plans(), session.json);
  return suite::exit_status_of(report);
}

void add_choices(CommandLine& verb, RunOptions& options) {
  verb.add_option("--platform", options.platform, "auto (this machine's platform), nvd, amd or cpu")
      ->choices(choices_of<Platform>({"auto"}))
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--framework", options.frameworks,
                  "Frameworks to run, separated by commas, or all (default: as configured); mega@LABEL names an "
                  "installation")
      ->delimiter(',')
      ->choices(choices_of<Framework>({"all"}))
      ->type_name("LIST");
  verb.add_option("--model", options.models, "Configured models, separated by commas (default: all)")
      ->delimiter(',')
      ->type_name("LIST");
  verb.add_option("--strategy", options.strategies,
                  "Configured layouts, separated by commas (default: experiment.methodology)")
      ->delimiter(',')
      ->type_name("LIST");
  verb.add_option("--adapt", options.adapt,
                  "What to do with settings that a framework does not support: strict (refuse) or nearest (the closest "
                  "that it supports)")
      ->choices(choices_of<suite::Adapt>())
      ->type_name("HOW");
  verb.add_option("--launcher", options.launcher,
                  "Launcher that starts the ranks: local, mpi, slurm, docker or kubernetes")
      ->choices(choices_of<Launcher>())
      ->type_name("NAME");
  verb.add_option("--nodes", options.nodes, "Nodes per training (default: as configured, else 1)")
      ->check(positive_count())
      ->type_name("N");
  verb.add_option("--dataset", options.dataset, "Prefix of a Megatron .bin/.idx pair, or synthetic")
      ->type_name("PREFIX");
  verb.add_option("--output", options.output, "Directory for results and logs (default: as configured, else ./output)")
      ->check(folder_output("a folder of results and logs"))
      ->type_name("DIR");
}

void add_time(CommandLine& verb, const std::string& name, double& seconds, const std::string& help) {
  verb.add_option(name, seconds, help)->transform(time_in_seconds())->type_name("TIME");
}

void add_limits(CommandLine& verb, RunOptions& options) {
  verb.add_option("--steps", options.steps, "Optimizer steps of every run (default: as configured)")
      ->check(positive_count());
  add_time(verb, "--timeout", options.time_limit_seconds, "Stop a run after this time: 90, 90s, 30m, 2h");
  verb.add_option("--hang-factor", options.hang_factor,
                  "Stop a run when no step arrives for this many median step times, at least a minute; 0: never")
      ->check(number_from(0.0, 1e6))
      ->capture_default_str();
  add_time(
      verb, "--startup-timeout", options.startup_seconds,
      "Time limit for the first steps, and for shutdown after the last one (default: 15m on GPUs, 1h on cpu); 0: none");
  add_time(verb, "--cool-down", options.cool_down_seconds, "Pause between runs (default: as configured, else none)");
  verb.add_option("--retries", options.retries, "Retry a failed run up to this many times (default: never)")
      ->check(number_from(0, 100));
  verb.add_flag("--force", options.force, "Also start runs that the planner expects to run out of memory");
  verb.add_flag(
      "--dry-run", options.dry_run,
      "Print a short plan and the command of each run, with --verbose also its files, as a script to paste; start "
      "nothing");
}

}  // namespace

void add_run_options(CommandLine& verb, Session& session, RunOptions& options) {
  add_json_option(verb, session);
  add_config_options(verb, session);
  add_choices(verb, options);
  add_limits(verb, options);
}

ExitStatus run_configuration(const Session& session, const RunOptions& options) {
  LocalRunner processes;
  const InterruptGuard interrupts;
  suite::SuiteContext around = suite_context(processes, interrupts);
  const RunConfig config = load(session, options, around.machine);
  const MachineFacts machine = around.machine;
  try {
    return run_experiment(session, options, config, around, interrupts);
  } catch (const Error& error) {
    throw with_alternatives(error, session, options, config.experiment, machine);
  }
}

void add_run_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "run", "Train the configured models on this machine and measure them", k_run_examples);
  auto options = std::make_shared<RunOptions>();
  add_run_options(*verb, session, *options);
  verb->add_option("--runs", options->runs, "Repeat every run this many times (default: as configured)")
      ->check(number_from(1, 1000));
  add_from_plan_option(*verb, options->from_plan);
  verb->add_option("--profile-steps", options->profile_steps,
                   "After the measured steps of each run, train this many more under the framework's profiler "
                   "(default: as configured, else none)")
      ->check(number_from(0, 1000));
  verb->add_option("--load", options->load,
                   "Continue from this checkpoint, or from the newest of this directory: native, mega, mgds")
      ->type_name("DIR");
  verb->add_flag("--resume", options->resume,
                 "Skip runs that already have a complete result for the same configuration");
  verb->callback(
      [&session, options] { session.action = [&session, options] { return run_configuration(session, *options); }; });
}

}  // namespace tprimat::cli
