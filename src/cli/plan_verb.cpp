#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "cli/counted_request.h"
#include "cli/parse_choice.h"
#include "cli/plan_inputs.h"
#include "cli/verbs.h"
#include "planner/plan_report.h"
#include "planner/plan_validation.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

constexpr const char* k_plan_examples =
    "  tprimat plan llama --gpu H100 --gpus 64                     the fastest layouts of a model on 64 GPUs\n"
    "  tprimat plan llama3.1_405b --gpu GB200,B200 --gpus 512 --gbs 1536 --precision fp8 --json\n"
    "  tprimat plan --validate results.tsv --rows                  how wrong is the planner on published "
    "measurements?\n"
    "  tprimat plan --calibrate results.tsv --output parameters.tsv\n"
    "  tprimat plan llama3_8b --gpu H100 --gpus 64 --parameters parameters.tsv\n";

struct PlanOptions {
  std::string model, framework = "megatron_core", precision = "bf16";
  std::vector<std::string> gpu;
  int64_t gpus = 0, sequence_length = 0, global_batch = 0;
  size_t top = 10;
  std::vector<std::string> tables, calibration;
  std::string output, parameters;
  bool rows = false, every_row_fits = false;
};

ParameterSet load_parameters(const PlanOptions& options) {
  if (options.parameters.empty()) return built_in_parameters();
  return parse_parameters(read_file(options.parameters), options.parameters);
}

template <class Named>
std::vector<std::string> ids_of(const std::vector<Named>& all) {
  std::vector<std::string> ids;
  for (const Named& each : all) ids.push_back(each.id);
  return ids;
}

std::string remedy(const std::string& name, const std::vector<std::string>& ids) {
  const std::string near = nearest_word(name, ids);
  return near.empty() ? fmt::format("choose of: {}", fmt::join(ids, ", ")) : fmt::format("did you mean '{}'?", near);
}

Machine require_machine(const std::string& name) {
  if (auto machine = find_machine(name)) return *machine;
  throw Error(Problem{fmt::format("the planner knows no GPU '{}'", name.substr(0, 64)), "--gpu",
                      remedy(name.substr(0, 64), ids_of(machines()))});
}

const Family& require_family(const std::string& name) {
  if (const Family* family = find_family(name)) return *family;
  throw Error(Problem{fmt::format("the planner knows no framework '{}'", name.substr(0, 64)), "--framework",
                      remedy(name.substr(0, 64), ids_of(families()))});
}

PlanRequest read_request(const Session& session, const PlanOptions& options, const std::string& gpu) {
  const Experiment experiment = load_session_experiment(session);
  PlanRequest request;
  request.shape = require_counted(experiment, options.model, "MODEL");
  if (const std::string what = unpredictable(request.shape); !what.empty())
    throw Error(Problem{fmt::format("'{}' is {}, which the planner does not predict", options.model, what), "MODEL",
                        "choose a dense model; docs/models.md lists them"});
  request.sequence_length = options.sequence_length > 0 ? options.sequence_length : experiment.sequence_length;
  request.global_batch = options.global_batch > 0 ? options.global_batch : experiment.global_batch_size;
  request.gpus = options.gpus;
  request.machine = require_machine(gpu);
  request.family = &require_family(options.framework);
  request.precision = parse_choice<PlanPrecision>(options.precision, "--precision");
  if (request.machine.peak(request.precision) <= 0)
    throw Error(Problem{fmt::format("{} has no {} products", request.machine.id, enum_name(request.precision)),
                        "--precision", "choose bf16, or another GPU"});
  return request;
}

ExitStatus plan_model(const Session& session, const PlanOptions& options) {
  if (options.gpu.empty() || options.gpus <= 0)
    throw Error(Problem{"needs --gpu and --gpus", "plan", "for instance: tprimat plan llama --gpu H100 --gpus 64"});
  const ParameterSet parameters = load_parameters(options);
  std::vector<PlanReport> reports;
  bool any_fits = false;
  for (const std::string& gpu : options.gpu) {
    const PlanRequest request = read_request(session, options, gpu);
    reports.push_back(make_plan_report(request, search_layouts(request, parameters, options.top)));
    any_fits |= reports.back().fitting > 0;
  }
  std::string text;
  for (const PlanReport& report : reports) text += (text.empty() ? "" : "\n") + render_plan_report(report);
  print_result(session.json ? print_json(to_json(reports)) : text);
  return any_fits ? ExitStatus::done : ExitStatus::work_failed;
}

Json validation_json(const std::vector<PlannedTable>& tables) {
  Json document = Json::object();
  document["tables"] = to_json(tables);
  document["together"] = to_json(join_errors(tables));
  return document;
}

// `before`: the parameters that a fit began with.
ExitStatus validate_plans(const Session& session, const PlanOptions& options, const ParameterSet& parameters,
                          const PlanInputs& inputs, const ParameterSet* before = nullptr) {
  std::vector<PlannedTable> tables;
  for (const std::string& path : inputs.tables) tables.push_back(plan_table(load_published_table(path), parameters));
  Json document = validation_json(tables);
  std::string text = tables.empty() ? "" : render_plan_validation(tables, options.rows);
  if (!inputs.results.empty()) {
    const OwnResultsReport own = report_own_results(inputs.results, parameters, before);
    document["results"] = to_json(own);
    text += (text.empty() ? "" : "\n") + render_own_results(own);
  }
  print_result(session.json ? print_json(document) : text);
  return ExitStatus::done;
}

ExitStatus calibrate_plans(const Session& session, const PlanOptions& options) {
  const PlanInputs inputs = sort_plan_inputs(options.calibration);
  std::vector<Observation> observations = inputs.observations();
  for (const std::string& path : inputs.tables) {
    const auto more = observations_of(load_published_table(path), options.every_row_fits);
    observations.insert(observations.end(), more.begin(), more.end());
  }
  const ParameterSet before = load_parameters(options);
  const ParameterSet fitted = calibrate(before, observations);
  if (!options.output.empty()) write_file_atomically(options.output, format_parameters(fitted));
  return validate_plans(session, options, fitted, inputs, &before);
}

void add_search_options(CLI::App& verb, PlanOptions& options) {
  verb.add_option("model", options.model, "Model of the configuration or of the catalogue")->type_name("MODEL");
  verb.add_option("--gpu", options.gpu, "GPUs to plan for, side by side")->type_name("LIST")->delimiter(',');
  verb.add_option("--gpus", options.gpus, "How many")->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb.add_option("--framework", options.framework, "Program that trains: megatron_core, fsdp2, nanotron, ...")
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--precision", options.precision, "bf16, fp16, fp8 or fp4")->type_name("NAME")->capture_default_str();
  verb.add_option("--seq", options.sequence_length, "Tokens per sequence (default: the configuration's)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  verb.add_option("--gbs", options.global_batch, "Sequences per step (default: the configuration's)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb.add_option("--parameters", options.parameters,
                  "Fitted parameters that --calibrate wrote (default: the built-in ones)")
      ->type_name("FILE");
  verb.add_option("--top", options.top, "Layouts to show")->capture_default_str()->check(CLI::Range(1, 10000));
}

void add_table_options(CLI::App& verb, PlanOptions& options) {
  CLI::Option* validate =
      verb.add_option("--validate", options.tables,
                      "Predict the rows of these tables of published measurements, or these results of runs")
          ->type_name("TABLE");
  CLI::Option* calibration =
      verb.add_option("--calibrate", options.calibration,
                      "Fit the parameters to these tables, or to results of runs (files or folders)")
          ->type_name("TABLE")
          ->excludes(validate);
  verb.add_option("--output", options.output, "Write the fitted parameters to this file")
      ->type_name("FILE")
      ->needs(calibration);
  verb.add_flag("--rows", options.rows, "Show every row, not the errors alone");
  verb.add_flag("--every-row", options.every_row_fits, "Fit to every row, and leave none to test with")
      ->needs(calibration);
}

}  // namespace

void add_plan_verb(CLI::App& program, Session& session) {
  CLI::App* verb =
      add_verb(program, session, "plan", "Predict step time and memory; rank all layouts of a model", k_plan_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  auto options = std::make_shared<PlanOptions>();
  add_search_options(*verb, *options);
  add_table_options(*verb, *options);
  verb->callback([&session, options] {
    session.action = [&session, options] {
      if (!options->calibration.empty()) return calibrate_plans(session, *options);
      if (!options->tables.empty())
        return validate_plans(session, *options, load_parameters(*options), sort_plan_inputs(options->tables));
      if (!options->model.empty()) return plan_model(session, *options);
      throw Error(Problem{"needs a model, --validate TABLE or --calibrate TABLE", "plan", "see tprimat plan --help"});
    };
  });
}

}  // namespace tprimat
