#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "claim/claim.h"
#include "cli/claim_options.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "published/built_in_tables.h"
#include "result/result_file.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_claim_examples =
    "  tprimat claim llama3.1_8b --gpu H100 --gpus 8 --precision bf16 --seq 8192 --tokens-per-second-per-gpu 12000\n"
    "  tprimat claim llama3.1_70b --gpu MI300X --gpus 64 --mfu 45 --convention causal\n"
    "  tprimat claim deepseek_v3 --gpu H100 --gpus 256 --precision fp8 --tflops-per-gpu 420 --routing learned\n"
    "  tprimat claim output/train_nvd_mega_llama.json              a result of tprimat run or extract\n"
    "  tprimat claim --table results.tsv --json                    every row of a table of results\n";

ExitStatus status_of(const planner::ClaimReport& report) {
  if (report.verdict == planner::ClaimVerdict::impossible) return ExitStatus::work_failed;
  return report.verdict == planner::ClaimVerdict::suspicious ? ExitStatus::gate_failed : ExitStatus::done;
}

// Impossible before suspicious.
ExitStatus worst_of(ExitStatus a, ExitStatus b) {
  if (a == ExitStatus::work_failed || b == ExitStatus::work_failed) return ExitStatus::work_failed;
  return a == ExitStatus::done ? b : a;
}

std::vector<planner::PublishedRun> load_runs(const ClaimOptions& options) {
  if (options.published.empty()) return planner::built_in_runs();
  std::vector<planner::PublishedTable> tables;
  for (const std::string& path : options.published) tables.push_back(planner::load_published_table(path));
  return planner::read_published_runs(tables);
}

ExitStatus judge_tables(const Session& session, const ClaimOptions& options, const planner::ParameterSet& parameters) {
  const std::vector<planner::PublishedRun> runs = load_runs(options);
  std::vector<planner::ClaimReport> reports;
  ExitStatus status = ExitStatus::done;
  for (const std::string& path : options.tables)
    for (const planner::PublishedRow& row : planner::load_published_table(path).rows) {
      const planner::Claim claim = planner::claim_of_row(row);
      reports.push_back(options.unseen ? planner::judge_claim(claim, {planner::without_copies(runs, row), parameters})
                                       : planner::judge_claim(claim, {runs, parameters}));
      reports.back().line = row.line;
      status = worst_of(status, status_of(reports.back()));
    }
  print_result(session.json ? print_json(to_json(reports)) : planner::render_claims(reports));
  return status;
}

bool is_result(const std::string& word) {
  std::error_code ignored;
  return word.ends_with(".json") || std::filesystem::is_regular_file(word, ignored);
}

ExitStatus judge_one(const Session& session, const ClaimOptions& options, const suite::Experiment& experiment,
                     const planner::ParameterSet& parameters) {
  if (options.model.empty())
    throw Error(Problem{"needs a model, a result or --table FILE", "claim", "see tprimat claim --help"});
  const bool result = is_result(options.model);
  if (result) require_no_settings(options);
  const planner::Claim claim = result ? planner::claim_of_result(load_run_result(options.model), options.model)
                                      : read_stated_claim(options, experiment);
  const planner::ClaimReport report = planner::judge_claim(claim, {load_runs(options), parameters});
  if (report.missing)
    throw Error(Problem{"cannot be judged: " + *report.missing, result ? options.model : "claim",
                        "see docs/claim.md for the facts that a claim must state"});
  print_result(session.json ? print_json(to_json(report)) : planner::render_claim(report));
  return status_of(report);
}

}  // namespace

void add_claim_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "claim", "Judge a stated training rate: possible, expected, published",
                               k_claim_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  auto options = std::make_shared<ClaimOptions>();
  add_claim_options(*verb, *options);
  verb->callback([&session, options] {
    session.action = [&session, options] {
      const suite::Experiment experiment = load_session_experiment(session);
      const planner::PlannerSettings settings = planner::load_planner_settings(experiment.planner_parameters);
      if (!options->tables.empty()) return judge_tables(session, *options, settings.parameters);
      return judge_one(session, *options, experiment, settings.parameters);
    };
  });
}

}  // namespace tprimat::cli
