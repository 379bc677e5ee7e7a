#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/value_checks.h"
#include "config/experiment.h"
#include "published/built_in_tables.h"
#include "published/validate.h"
#include "run/suite_document.h"
#include "spec/flop_breakdown.h"
#include "telemetry/gpu_libraries.h"
#include "text/choice.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_estimate_examples =
    "  tprimat estimate --flops llama                            parameters and FLOPs of a model, part by part\n"
    "  tprimat estimate --flops deepseek_v3 --seq 4096 --recompute selective --json\n"
    "  tprimat estimate --flops gpt3_175b --tp 8                 with the vocabulary padded as in Megatron-LM, TP 8\n"
    "  tprimat estimate --memory llama                           memory of the configured layout, part by part\n"
    "  tprimat estimate --memory mixtral --framework mega --expert-load 1.5   1.5 times the mean on the fullest rank\n"
    "  tprimat estimate --validate results.tsv                   recomputes published TFLOP/s, MFU and HFU\n";

struct MemoryRequest {
  std::string model;
  std::string platform = "auto", framework, strategy;  // empty: as the configuration says
  double expert_load = 1;
};

struct EstimateOptions {
  std::string model;
  FlopRequest flops;  // of no tokens per sequence: as the configuration says
  MemoryRequest memory;
  std::string precision = "bf16", recompute = "none";
  std::vector<std::string> tables;
};

suite::SuiteRequest suite_of(const MemoryRequest& request) {
  suite::SuiteRequest suite;
  suite.models = {request.model};
  if (request.platform != "auto") suite.platform = parse_choice<Platform>(request.platform, "--platform");
  if (!request.framework.empty()) suite.frameworks = {suite::parse_framework_choice(request.framework, "--framework")};
  if (!request.strategy.empty()) suite.strategies = {request.strategy};
  suite.own_program = "tprimat";
  suite.presence = suite::Presence::any;
  return suite;
}

// Of every framework that would run the model.
ExitStatus estimate_memory(const Session& session, const MemoryRequest& request) {
  const suite::SuiteRequest asked = suite_of(request);
  const suite::Experiment experiment = load_session_config(session, asked.platform).experiment;
  const MachineFacts machine = read_machine(open_gpu_libraries());
  const planner::PlannerSettings planner = planner::load_planner_settings(experiment.planner_parameters);
  const suite::SuitePlan suite = suite::plan_suite(experiment, asked, machine);
  for (const Problem& problem : suite.unavailable) log_warning(to_string(problem));
  std::vector<suite::document::MemoryEstimate> list;
  std::string text;
  for (const suite::PlannedRun& run : suite.runs) {
    if (run.run > 1) continue;  // a repetition
    const suite::Forecast known = suite::forecast(run, machine, planner, request.expert_load);
    list.push_back({suite::document::describe_forecast(known), suite::name_training(run)});
    text += (text.empty() ? "" : "\n") + suite::render_memory(run, known, planner);
  }
  print_result(session.json ? print_json(to_json(list)) : text);
  return ExitStatus::done;
}

FlopReport count_flops(const Session& session, const EstimateOptions& options) {
  FlopRequest request = options.flops;
  request.precision = parse_choice<Precision>(options.precision, "--precision");
  request.recompute = parse_choice<Recompute>(options.recompute, "--recompute");
  const suite::Experiment experiment = load_session_experiment(session);
  const KnownModel counted = suite::require_counted(experiment, options.model, "--flops");
  if (request.sequence_length <= 0) request.sequence_length = experiment.sequence_length;
  return make_flop_report(counted, request);
}

ExitStatus validate_tables(const Session& session, const std::vector<std::string>& paths) {
  std::vector<planner::TableCheck> checks;
  for (const planner::PublishedTable& table : planner::load_published_tables(paths))
    checks.push_back(planner::validate_table(table));
  print_result(session.json ? print_json(to_json(checks)) : planner::render_validation(checks));
  return ExitStatus::done;
}

ExitStatus estimate(const Session& session, const EstimateOptions& options) {
  if (!options.tables.empty()) return validate_tables(session, options.tables);
  if (!options.memory.model.empty()) return estimate_memory(session, options.memory);
  if (options.model.empty())
    throw Error(
        Problem{"needs --flops MODEL, --memory MODEL or --validate TABLE", "estimate", "see tprimat estimate --help"});
  const FlopReport report = count_flops(session, options);
  print_result(session.json ? print_json(to_json(report)) : render_flop_report(report));
  return ExitStatus::done;
}

void add_memory_options(CommandLine& verb, MemoryRequest& request, Option* flops) {
  Option* memory = verb.add_option("--memory", request.model,
                                   "Memory of this configured model, on the most loaded rank of its layout")
                       ->type_name("MODEL")
                       ->excludes(flops);
  verb.add_option("--platform", request.platform, "With --memory: auto (this machine's platform), nvd, amd or cpu")
      ->choices(choices_of<Platform>({"auto"}))
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(memory);
  verb.add_option("--framework", request.framework, "With --memory: framework (default: as configured)")
      ->choices(choices_of<Framework>())
      ->type_name("NAME")
      ->needs(memory);
  verb.add_option("--strategy", request.strategy, "With --memory: configured layout (default: experiment.methodology)")
      ->type_name("NAME")
      ->needs(memory);
  verb.add_option("--expert-load", request.expert_load,
                  "With --memory, for a mixture of experts: tokens on the fullest rank over the mean")
      ->check(number_from(1.0, 1e4))
      ->type_name("FACTOR")
      ->capture_default_str()
      ->needs(memory);
}

}  // namespace

void add_estimate_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "estimate", "Count a model's parameters, FLOPs and memory; check published figures",
               k_estimate_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  auto options = std::make_shared<EstimateOptions>();
  Option* flops =
      verb->add_option("--flops", options->model, "Model from the configuration or the catalogue")->type_name("MODEL");
  verb->add_option("--seq", options->flops.sequence_length, "Tokens per sequence (default: the configuration's)")
      ->check(number_from(int64_t{1}, int64_t{1} << 24))
      ->needs(flops);
  verb->add_option("--precision", options->precision, "bf16, fp16, fp8, tf32 or fp32")
      ->choices(choices_of<Precision>())
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(flops);
  verb->add_option("--recompute", options->recompute, "Activation recomputation: none, selective or full")
      ->choices(choices_of<Recompute>())
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(flops);
  verb->add_option("--tp", options->flops.tensor_parallel,
                   "Pad the vocabulary to a multiple of 128 x this, as Megatron-LM does for tensor parallelism")
      ->check(number_from(1, 1 << 16))
      ->needs(flops);
  add_memory_options(*verb, options->memory, flops);
  verb->add_option(
          "--validate", options->tables,
          "Recompute the TFLOP/s, MFU and HFU printed in these tab-separated tables (published: the built-in ones)")
      ->type_name("TABLE")
      ->excludes(flops);
  verb->callback([&session, options] { session.action = [&session, options] { return estimate(session, *options); }; });
}

}  // namespace tprimat::cli
