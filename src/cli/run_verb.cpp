#include <fmt/format.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/number_range.h"
#include "cli/parse_choice.h"
#include "cli/run_options.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "config/load.h"
#include "launch/dry_run.h"
#include "probe/gemm_probe.h"
#include "probe/memory_probe.h"
#include "process/interrupt.h"
#include "process/local_runner.h"
#include "run/forecast.h"
#include "run/reporters.h"
#include "run/run.h"
#include "telemetry/gpu_libraries.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

constexpr const char* k_run_examples =
    "  tprimat run                                       everything the configuration names, on this machine\n"
    "  tprimat run --model llama --steps 20 --runs 3     one model, three times\n"
    "  tprimat run --dry-run                             shows commands and files, starts nothing\n"
    "  tprimat run --resume --timeout 30m                goes on where an earlier suite ended\n";

void add_launch_overrides(std::vector<std::string>& overrides, const RunOptions& options) {
  if (!options.launcher.empty())
    overrides.push_back(
        fmt::format("launch.launcher={}", enum_name(parse_choice<Launcher>(options.launcher, "--launcher"))));
  if (options.nodes > 0) overrides.push_back(fmt::format("launch.nodes={}", options.nodes));
}

LoadedExperiment load(const Session& session, const RunOptions& options) {
  ConfigSources sources;
  if (!session.config_path.empty()) sources.path = session.config_path;
  sources.overrides = session.overrides;
  if (options.steps > 0) sources.overrides.push_back(fmt::format("training.duration.max_steps={}", options.steps));
  add_launch_overrides(sources.overrides, options);
  // The strategy decides which fairness rules hold, so a single one is the methodology of this run.
  if (options.strategies.size() == 1) sources.strategy = options.strategies.front();
  sources.environment = current_environment();
  LoadedExperiment loaded = load_experiment(sources);
  for (const Problem& warning : loaded.warnings) log_warning(to_string(warning));
  log_detail("configuration: " + loaded.origin);
  if (options.runs > 0) loaded.experiment.runs = options.runs;
  if (!options.output.empty()) loaded.experiment.output_directory = options.output;
  return loaded;
}

SuiteRequest request_of(const RunOptions& options) {
  SuiteRequest request;
  if (options.platform != "auto") request.platform = parse_choice<Platform>(options.platform, "--platform");
  for (const std::string& name : options.frameworks)
    request.frameworks.push_back(parse_choice<Framework>(name, "--framework"));
  request.models = options.models;
  request.strategies = options.strategies;
  if (!options.dataset.empty()) request.dataset = options.dataset;
  request.own_program = std::filesystem::read_symlink("/proc/self/exe").string();
  if (options.dry_run) request.presence = Presence::any;
  request.profile = options.profile;
  return request;
}

std::optional<MeasuredPeak> measure_cpu_peak(Precision precision, int64_t threads, const StopRequest& is_stopped) {
  const auto peak = measure_gemm_peak(precision, static_cast<int>(threads), is_stopped);
  if (!peak) return std::nullopt;
  MeasuredPeak measured{{fmt::format("measured:cpu:{}", enum_name(peak->precision)), peak->flops_per_second, peak->how},
                        {}};
  const MemoryBandwidth memory = measure_memory_bandwidth(static_cast<int>(threads), {StreamKernel::triad}, is_stopped);
  measured.peak.memory_bytes_per_second = memory.rate(StreamKernel::triad);
  measured.peak.memory_source = "triad: " + memory.how;
  constexpr double k_undisturbed_share = 0.95;
  if (peak->cpu_share < k_undisturbed_share)
    measured.warning = fmt::format(
        "while the matmul peak was measured, other processes took {} of the CPU time: the peak is too low, "
        "so MFU is overstated against it",
        format_percent(1.0 - peak->cpu_share));
  return measured;
}

void write_progress(std::string_view text) { write_stderr(text); }

std::unique_ptr<Reporter> make_reporter(const Session& session) {
  if (session.quiet) return std::make_unique<SilentReporter>();
  constexpr size_t k_usual_width = 80;
  const auto width = [] { return terminal_width(STDERR_FILENO, k_usual_width); };
  if (is_live_terminal(STDERR_FILENO)) return std::make_unique<TerminalReporter>(write_progress, width);
  return std::make_unique<PlainReporter>(write_progress);
}

Json plan_to_json(const PlannedRun& run, const Forecast& known) {
  Json files = Json::array();
  for (const GeneratedFile& file : run.plan.files) files.push_back({{"path", file.path}, {"content", file.content}});
  Json deviations = Json::array();
  for (const Deviation& each : run.plan.deviations)
    deviations.push_back({{"key", each.key}, {"asked", each.asked}, {"effective", each.effective}});
  return Json{{"run", describe(run)},
              {"command", run.plan.command},
              {"environment", run.plan.environment},
              {"working_directory", run.plan.working_directory},
              {"files", files},
              {"log", run.plan.log_path},
              {"steps_file", run.plan.steps_path},
              {"deviations", deviations},
              {"prediction", forecast_to_json(known)},
              {"cleanup_command", run.plan.cleanup_command},
              {"result", run.plan.result_path},
              {"config_hash", run.config_hash}};
}

ExitStatus print_plan(const SuitePlan& suite, const MachineFacts& machine, const PlannerSettings& planner,
                      bool as_json) {
  for (const Problem& problem : suite.unavailable) log_warning(to_string(problem));
  for (const Problem& problem : find_misfits(suite, machine, planner)) log_warning(to_string(problem));
  Json list = Json::array();
  for (const PlannedRun& run : suite.runs) {
    const Forecast known = forecast(run, machine, planner);
    if (as_json)
      list.push_back(plan_to_json(run, known));
    else
      print_result(render_comment(fmt::format("{}; result: {}", describe(run), run.plan.result_path)) +
                   render_comment("memory: " + describe_memory(known)) + render_shell(run.plan) + "\n");
  }
  if (as_json) print_result(print_json(list));
  return ExitStatus::done;
}

SuiteContext suite_context(ProcessRunner& processes, const InterruptGuard& interrupts) {
  const auto libraries = open_gpu_libraries();
  return {processes,
          read_machine(libraries),
          libraries,
          [&interrupts](Precision precision, int64_t threads) {
            return measure_cpu_peak(precision, threads, [&interrupts] { return interrupts.count() > 0; });
          },
          [&interrupts] { return interrupts.count(); },
          {{"onednn", fmt::format("{}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH)}}};
}

bool has_problem(const SuitePlan& suite, const Problem& problem) {
  for (const Problem& each : suite.unavailable)
    if (each.what == problem.what && each.where == problem.where) return true;
  return false;
}

// With `experiment.profiling`, every training once more after the measured runs. That a profiler is missing does not
// keep these from being measured.
SuitePlan plan_all(const Experiment& experiment, const RunOptions& options, const MachineFacts& machine) {
  SuiteRequest request = request_of(options);
  SuitePlan suite = plan_suite(experiment, request, machine);
  if (!experiment.profiling || options.profile) return suite;
  request.profile = ProfileRequest();
  try {
    SuitePlan profiles = plan_suite(experiment, request, machine);
    for (PlannedRun& run : profiles.runs) suite.runs.push_back(std::move(run));
    for (const Problem& problem : profiles.unavailable)
      if (!has_problem(suite, problem)) suite.unavailable.push_back(problem);
  } catch (const Error& error) {
    for (const Problem& problem : error.problems())
      if (!has_problem(suite, problem)) suite.unavailable.push_back(problem);
  }
  return suite;
}

// Nothing is started where something cannot end well. What `resume` finds complete does not start.
void refuse_misfits(SuitePlan suite, const MachineFacts& machine, const PlannerSettings& planner,
                    const RunOptions& options) {
  if (options.resume)
    std::erase_if(suite.runs, [](const PlannedRun& run) { return !run.profile && find_complete_result(run); });
  std::vector<Problem> problems = find_misfits(suite, machine, planner);
  if (!options.force) throw_if_any(std::move(problems));
  for (const Problem& problem : problems) log_warning(to_string(problem));
}

SuiteOptions suite_options_of(const RunOptions& options, const Experiment& experiment) {
  SuiteOptions suite;
  suite.resume = options.resume;
  suite.fixed_warmup_steps = experiment.fixed_warmup_steps;
  if (options.time_limit_seconds > 0.0) suite.time_limit_seconds = options.time_limit_seconds;
  suite.hang.factor = options.hang_factor;
  if (options.startup_seconds >= 0.0) suite.hang.startup_seconds = options.startup_seconds;
  suite.cool_down_seconds = options.cool_down_seconds;
  suite.retries = options.retries;
  suite.planner = load_planner_settings(experiment.planner_parameters);
  return suite;
}

void add_choices(CLI::App& verb, RunOptions& options) {
  verb.add_option("--platform", options.platform, "auto (what this machine is), nvd, amd or cpu")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--framework", options.frameworks, "Frameworks to run, separated by commas (default: as configured)")
      ->delimiter(',')
      ->type_name("LIST");
  verb.add_option("--model", options.models, "Models of the configuration, separated by commas (default: all)")
      ->delimiter(',')
      ->type_name("LIST");
  verb.add_option("--strategy", options.strategies, "Parallel layouts of the configuration (default: its methodology)")
      ->delimiter(',')
      ->type_name("LIST");
  verb.add_option("--launcher", options.launcher, "What starts the ranks: local, mpi, slurm or docker")
      ->type_name("NAME");
  verb.add_option("--nodes", options.nodes, "Nodes of one training (default: as configured, 1)")
      ->check(positive_count())
      ->type_name("N");
  verb.add_option("--dataset", options.dataset, "Prefix of a Megatron .bin/.idx pair, or synthetic")
      ->type_name("PREFIX");
  verb.add_option("--output", options.output, "Directory for results and logs (default: as configured, ./output)")
      ->type_name("DIR");
}

void add_time(CLI::App& verb, const std::string& name, double& seconds, const std::string& help) {
  verb.add_option(name, seconds, help)->transform(time_in_seconds())->type_name("TIME");
}

void add_limits(CLI::App& verb, RunOptions& options) {
  verb.add_option("--steps", options.steps, "Optimizer steps of every run (default: as configured)")
      ->check(positive_count());
  add_time(verb, "--timeout", options.time_limit_seconds, "Stop a run after this time: 90, 90s, 30m, 2h");
  verb.add_option("--hang-factor", options.hang_factor,
                  "Stop a run after this many times its median step, and a minute, without a step; 0: never")
      ->check(number_from(0.0, 1e6))
      ->capture_default_str();
  add_time(verb, "--startup-timeout", options.startup_seconds,
           "Time until the first steps and after the last one (default: 15m on GPUs, 1h on cpu); 0: any");
  add_time(verb, "--cool-down", options.cool_down_seconds, "Pause between two runs (default: none)");
  verb.add_option("--retries", options.retries, "Try a run that fails again, this often (default: never)")
      ->check(number_from(0, 100));
  verb.add_flag("--force", options.force, "Start what the planner expects not to fit into memory too");
  verb.add_flag("--dry-run", options.dry_run, "Print commands, environment and files, ready to paste; start nothing");
}

}  // namespace

void add_run_options(CLI::App& verb, Session& session, RunOptions& options) {
  add_json_option(verb, session);
  add_config_options(verb, session);
  add_choices(verb, options);
  add_limits(verb, options);
}

ExitStatus run_configuration(const Session& session, const RunOptions& options) {
  const Experiment experiment = load(session, options).experiment;
  LocalRunner processes;
  const InterruptGuard interrupts;
  const SuiteContext around = suite_context(processes, interrupts);
  const SuitePlan suite = plan_all(experiment, options, around.machine);
  const SuiteOptions how = suite_options_of(options, experiment);
  if (options.dry_run) return print_plan(suite, around.machine, how.planner, session.json);
  refuse_misfits(suite, around.machine, how.planner, options);

  const SuiteReport report = run_suite(suite, how, around, *make_reporter(session));
  print_result(session.json ? print_json(report_to_json(report)) : render_report(report));
  return exit_status_of(report);
}

void add_run_verb(CLI::App& program, Session& session) {
  CLI::App* verb = add_verb(program, session, "run", "Train what the configuration names on this machine, and measure",
                            k_run_examples);
  auto options = std::make_shared<RunOptions>();
  add_run_options(*verb, session, *options);
  verb->add_option("--runs", options->runs, "Repeat every run this often (default: as configured)")
      ->check(number_from(1, 1000));
  verb->add_flag("--resume", options->resume, "Skip runs whose complete result for the same configuration is there");
  verb->callback(
      [&session, options] { session.action = [&session, options] { return run_configuration(session, *options); }; });
}

}  // namespace tprimat
