#include "cli/plan_model.h"

#include "base/error.h"
#include "base/log.h"
#include "process/process.h"
#include "report/draw_plot.h"
#include "report/plan_plots.h"
#include "text/json_fields.h"

namespace tprimat::cli {

ExitStatus plan_model(const Session& session, const PlanModelRequest& request,
                      const suite::LoadedExperiment& configured, const planner::PlannerSettings& planner) {
  check_plan_request(request, session.json);
  const suite::PlanQuestion question = suite::read_plan_question(request.question, configured, planner);
  if (request.yaml && question.cases.size() != 1)
    throw Error(Problem{"needs one GPU type and one GPU count", "--yaml", "for instance --gpu H100 --gpus 64"});
  for (const std::string& sentence : question.left_out) log_note(sentence);
  const planner::PlanComparison comparison =
      planner::compare_plans(question.cases, planner.parameters, question.compared);
  if (request.yaml)
    print_result(suite::render_fastest_config(question, comparison));
  else
    print_result(session.json ? print_json(to_json(comparison)) : planner::render_plan_comparison(comparison));
  if (!request.plot.empty()) {
    LocalRunner runner;
    const results::PlotFormat format = results::require_plot_format(request.plot, "--plot");
    results::require_drawn(runner, results::render_scaling_plot(comparison, format), request.plot);
    log_note("wrote " + request.plot);
  }
  return comparison.is_answered() ? ExitStatus::done : ExitStatus::work_failed;
}

}  // namespace tprimat::cli
