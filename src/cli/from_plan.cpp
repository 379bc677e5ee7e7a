#include "cli/from_plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "command_line/session.h"
#include "run/layout_ranking.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

Check names_top() {
  return [](std::string& text) -> std::string {
    if (suite::parse_top(text)) return "";
    return fmt::format("'{}' is not top=N with N from 1 to {}, such as top=3", printable(text.substr(0, 64)),
                       suite::k_max_top);
  };
}

}  // namespace

void add_from_plan_option(CommandLine& verb, std::string& choice) {
  verb.add_option("--from-plan", choice,
                  "Train the planner's N best layouts instead of a strategy, and compare the predicted with the "
                  "measured ranking")
      ->check(names_top())
      ->type_name("top=N")
      ->excludes(verb.get_option("--strategy"));
}

void refuse_adapting(const suite::Experiment& experiment) {
  if (experiment.adapt == suite::Adapt::nearest)
    throw Error(
        Problem{"trains the planner's layouts as they are and cannot adapt them", "--from-plan", "add --adapt strict"});
}

void note_missing_layouts(const LayoutPlans& plans) {
  for (const suite::LayoutPlan& plan : plans)
    if (plan.layouts.size() < plan.asked)
      log_note(fmt::format("{} {}: all {} layouts that can run and fit into memory are taken; {} were asked for",
                           enum_name(plan.framework), plan.model, plan.layouts.size(), plan.asked));
}

Json with_plan(Json json, const suite::PlannedRun& run, const LayoutPlans& plans) {
  for (const suite::LayoutPlan& plan : plans)
    for (size_t i = 0; i < plan.layouts.size(); ++i)
      if (plan.framework == run.framework && plan.model == run.spec.model.name &&
          plan.layouts[i].strategy == run.spec.parallel.strategy)
        json["planned"] = Json{{"rank", i + 1}, {"step_time_seconds", plan.layouts[i].step_seconds}};
  return json;
}

void print_report(const suite::SuiteReport& report, const LayoutPlans& plans, bool as_json) {
  Json json = suite::report_to_json(report);
  std::string text = suite::render_report(report);
  for (const suite::LayoutPlan& plan : plans) {
    const suite::LayoutRanking ranking = suite::rank_layouts(plan, report.outcomes);
    json["plan_rankings"].push_back(to_json(ranking));
    text += "\n" + suite::render_layout_ranking(ranking);
  }
  print_result(as_json ? print_json(json) : text);
}

}  // namespace tprimat::cli
