#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/plan_model.h"
#include "cli/progress.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/output_target.h"
#include "command_line/value_checks.h"
#include "compare/planner_inputs.h"
#include "planner/cross_validation.h"
#include "process/process.h"
#include "published/built_in_tables.h"
#include "report/draw_plot.h"
#include "report/plan_plots.h"
#include "text/choice.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_plan_examples =
    "  tprimat plan llama3.1_8b --gpu H100 --gpus 64               the fastest layouts of a model on 64 GPUs\n"
    "  tprimat plan llama3.1_405b --gpu GB200,B200 --gpus 512 --gbs 1536 --precision fp8 --json\n"
    "  tprimat plan llama3.1_8b --gpu H100,B200 --gpus 8..512 --scaling strong\n"
    "  tprimat plan llama3.1_8b --gpu H100 --gpus 8..512 --tokens 15T --price 2.5 --target-days 60\n"
    "  tprimat plan llama3.1_8b --gpu H100 --gpus 64 --gbs 512 --seq 8192 --yaml\n"
    "  tprimat plan llama3.1_8b --machine probe.json --gpus 64     a cluster of nodes like the measured one\n"
    "  tprimat plan deepseek_v3 --gpu H100 --gpus 2048 --gbs 8192 --seq 4096 --routing balanced\n"
    "  tprimat plan --validate results.tsv --rows                  planner errors on published measurements\n"
    "  tprimat plan --validate published                           the same on the built-in ones\n"
    "  tprimat plan --calibrate results.tsv --output parameters.tsv\n"
    "  tprimat plan llama3.1_8b --gpu H100 --gpus 64 --parameters parameters.tsv\n";

struct PlanOptions {
  PlanModelRequest model;
  std::vector<std::string> tables, calibration;
  std::string output, parameters, intervals, fit;
  int64_t folds = 0;
  std::string folds_by = "rows";
  bool rows = false;
};

// --parameters, else those that the configuration names.
planner::PlannerSettings load_settings(const PlanOptions& options, const suite::Experiment& experiment) {
  return planner::load_planner_settings(options.parameters.empty() ? experiment.planner_parameters
                                                                   : options.parameters);
}

std::vector<planner::PlannedTable> plan_tables(const std::vector<planner::PublishedTable>& tables,
                                               const planner::ParameterSet& parameters) {
  std::vector<planner::PlannedTable> planned;
  for (const planner::PublishedTable& table : tables) planned.push_back(planner::plan_table(table, parameters));
  return planned;
}

void draw_plans(const std::vector<planner::PlannedTable>& tables, const std::string& path) {
  draw_plan_plot(path, results::plot_plan_errors(tables));
}

// A planner compared with published tables and results of runs.
struct Validated {
  const std::vector<planner::PlannedTable>& tables;
  const results::PlanInputs& inputs;
  const planner::ParameterSet& parameters;
  const planner::ParameterSet* before = nullptr;  // those that a fit began with
  std::optional<std::vector<planner::MovedParameter>> moved = {};
};

ExitStatus print_validation(const Session& session, const PlanOptions& options, const Validated& validated) {
  const auto& [tables, inputs, parameters, before, moved] = validated;
  if (!options.model.plot.empty()) draw_plans(tables, options.model.plot);
  planner::PlanValidation report{planner::make_validation_report(tables), {}};
  std::string text = tables.empty() ? "" : planner::render_plan_validation(report, options.rows);
  if (!inputs.results.empty()) {
    planner::OwnResultsReport own = planner::report_own_results(inputs.results, parameters, before);
    own.moved = moved;
    text += (text.empty() ? "" : "\n") + planner::render_own_results(own);
    report.results = std::move(own);
  }
  print_beside_output(session.json ? print_json(to_json(report)) : text, names_stdout(options.output) ||
                                                                             names_stdout(options.intervals) ||
                                                                             names_stdout(options.model.plot));
  return ExitStatus::done;
}

ExitStatus validate_plans(const Session& session, const PlanOptions& options) {
  const results::PlanInputs inputs = results::sort_plan_inputs(options.tables);
  const planner::ParameterSet parameters = load_settings(options, load_session_config(session).experiment).parameters;
  return print_validation(session, options,
                          {plan_tables(planner::load_published_tables(inputs.tables), parameters), inputs, parameters});
}

std::string list_reasons(const std::map<std::string, int64_t>& reasons) {
  std::string text;
  for (const auto& [reason, count] : reasons) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", reason, count);
  return text;
}

void require_observations(const std::vector<planner::Observation>& observations, const results::PlanInputs& inputs,
                          const std::vector<planner::PublishedTable>& tables, const planner::ParameterSet& parameters) {
  if (!observations.empty()) return;
  std::map<std::string, int64_t> reasons = planner::report_own_results(inputs.results, parameters).not_predicted;
  for (const planner::PublishedTable& table : tables)
    for (const planner::PlannedRow& row : planner::plan_table(table, parameters).rows)
      ++reasons[row.missing ? *row.missing : row.weak.value_or("no rate")];
  throw Error(Problem{fmt::format("no data to fit: {}", list_reasons(reasons)), "--calibrate",
                      "see docs/planner.md for the facts that a result or row must state"});
}

void tell_use(const PlanOptions& options) {
  if (options.folds == 0) log_note("errors after the fit are on the fitted data, not on unseen data");
  if (names_stdout(options.output)) return;
  log_note(options.output.empty()
               ? "parameters not saved: write them with --output FILE"
               : fmt::format("wrote {0}; use it with tprimat plan --parameters {0}, or in a configuration as "
                             "benchmarking.planner_parameters",
                             options.output));
}

struct Fitted {
  planner::ParameterSet parameters;
  std::optional<std::vector<planner::MovedParameter>> moved;  // by results alone
};

Fitted fit_parameters(const PlanOptions& options, bool results_alone, const planner::ParameterSet& before,
                      const std::vector<planner::Observation>& observations) {
  const auto scope =
      options.fit.empty() ? planner::FitScope::machine : parse_choice<planner::FitScope>(options.fit, "--fit");
  if (!results_alone) {
    if (!options.fit.empty() && scope != planner::FitScope::all)
      throw Error(
          Problem{"tables fit all parameters, those of programs too", "--fit", "omit it, or give results alone"});
    return {planner::calibrate(before, observations), {}};
  }
  if (scope == planner::FitScope::machine)
    log_note("only parameters of the results' machines move; --fit all also moves those of the programs");
  planner::Refinement refined = planner::refine(before, observations, scope);
  return {std::move(refined.parameters), std::move(refined.moved)};
}

// Fits take seconds each.
planner::TellFits show_fits() {
  return [start = SteadyClock::now()](size_t done, size_t all) { show_progress({done, all}, "fits", start); };
}

std::vector<planner::PlannedTable> predict_unseen(const PlanOptions& options,
                                                  const std::vector<planner::PublishedTable>& tables,
                                                  const planner::ParameterSet& priors) {
  const auto by = parse_choice<planner::FoldsBy>(options.folds_by, "--folds-by");
  return planner::cross_validate(tables, priors, {options.folds, by}, show_fits());
}

ExitStatus calibrate_plans(const Session& session, const PlanOptions& options) {
  require_no_input(options.output, options.calibration, "--output");
  require_no_input(options.intervals, options.calibration, "--intervals");
  const results::PlanInputs inputs = results::sort_plan_inputs(options.calibration);
  const std::vector<planner::PublishedTable> tables = planner::load_published_tables(inputs.tables);
  const planner::ParameterSet before = load_settings(options, load_session_config(session).experiment).parameters;
  std::vector<planner::Observation> observations = inputs.observations();
  for (const planner::PublishedTable& table : tables) {
    const auto more = planner::observations_of(table);
    observations.insert(observations.end(), more.begin(), more.end());
  }
  require_observations(observations, inputs, tables, before);
  const auto [fitted, moved] = fit_parameters(options, inputs.tables.empty(), before, observations);
  if (!options.output.empty()) write_output(options.output, planner::format_parameters(fitted));
  if (!options.intervals.empty())
    write_output(options.intervals, planner::format_intervals(planner::fit_intervals(tables, before, show_fits())));
  const auto planned = options.folds > 0 ? predict_unseen(options, tables, before) : plan_tables(tables, fitted);
  const ExitStatus status = print_validation(session, options, {planned, inputs, fitted, &before, moved});
  tell_use(options);
  return status;
}

ExitStatus plan_asked_model(const Session& session, const PlanOptions& options) {
  const suite::LoadedExperiment configured = load_session_config(session);
  return plan_model(session, options.model, configured, load_settings(options, configured.experiment));
}

void check_options(const Session& session, const PlanOptions& options) {
  require_one_on_stdout({{"--json", session.json},
                         {"--output -", names_stdout(options.output)},
                         {"--intervals -", names_stdout(options.intervals)},
                         {"--plot -", names_stdout(options.model.plot)}});
  parse_choice<planner::FoldsBy>(options.folds_by, "--folds-by");
  const bool reads_tables = !options.tables.empty() || !options.calibration.empty();
  if (options.rows && !reads_tables)
    throw Error(Problem{"shows the rows of tables, but no table is given", "--rows", "add --validate TABLE"});
  const char* table_option = options.calibration.empty() ? "--validate" : "--calibrate";
  if (reads_tables && !options.model.question.model.empty())
    throw Error(
        Problem{fmt::format("reads tables and cannot also plan model '{}'", options.model.question.model.substr(0, 64)),
                table_option, "omit one of the two"});
}

void add_parameter_options(CommandLine& verb, PlanOptions& options) {
  verb.add_option("--parameters", options.parameters,
                  "Fitted parameters, as written by --calibrate (default: the configuration's, else the built-in ones)")
      ->type_name("FILE");
}

void add_fold_options(CommandLine& verb, PlanOptions& options, Option* calibration) {
  Option* folds =
      verb.add_option("--folds", options.folds,
                      "Cross-validate: split the rows into this many folds, predict each from a fit to the others")
          ->type_name("N")
          ->needs(calibration)
          ->check(number_from(2, 1000));
  verb.add_option("--folds-by", options.folds_by,
                  "Rows that share a fold: each by itself, near copies, or all rows of a source, a model, a GPU, a "
                  "program on a GPU, a kind of model on an architecture, or an architecture")
      ->choices(choices_of<planner::FoldsBy>())
      ->capture_default_str()
      ->needs(folds);
  verb.add_option("--intervals", options.intervals,
                  "Write the 80 % intervals of predictions, from the errors of rows that were not fitted; -: stdout")
      ->type_name("FILE")
      ->needs(calibration);
}

void add_table_options(CommandLine& verb, PlanOptions& options) {
  Option* validate = verb.add_option("--validate", options.tables,
                                     "Predict the rows of these tables of published measurements (published: the "
                                     "built-in ones), or these run results")
                         ->type_name("TABLE|DIR|FILE");
  Option* calibration =
      verb.add_option("--calibrate", options.calibration,
                      "Fit the parameters to these tables (published: the built-in ones), or to run results "
                      "(files or folders)")
          ->type_name("TABLE|DIR|FILE")
          ->excludes(validate);
  verb.add_option(
          "--fit", options.fit,
          "Parameters that results alone may move: machine (those of their machines; the default), or all (those of "
          "the programs too)")
      ->choices(choices_of<planner::FitScope>())
      ->type_name("NAME")
      ->needs(calibration);
  verb.add_option("--output", options.output, "Write the fitted parameters to this file; -: stdout")
      ->type_name("FILE")
      ->needs(calibration);
  verb.add_flag("--rows", options.rows, "Show every row, not only the summary of errors");
  add_fold_options(verb, options, calibration);
}

}  // namespace

void add_plan_verb(CommandLine& program, Session& session) {
  CommandLine* verb =
      add_verb(program, session, "plan", "Predict step time and memory; rank all layouts of a model", k_plan_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  auto options = std::make_shared<PlanOptions>();
  add_plan_model_options(*verb, options->model);
  add_parameter_options(*verb, *options);
  add_table_options(*verb, *options);
  verb->callback([&session, options] {
    session.action = [&session, options] {
      check_options(session, *options);
      if (!options->calibration.empty()) return calibrate_plans(session, *options);
      if (!options->tables.empty()) return validate_plans(session, *options);
      if (!options->model.question.model.empty()) return plan_asked_model(session, *options);
      throw Error(Problem{"needs a model, --validate TABLE or --calibrate TABLE", "plan", "see tprimat plan --help"});
    };
  });
}

}  // namespace tprimat::cli
