#include "cli/from_plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "command_line/session.h"
#include "run/suite_document.h"
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

void print_report(const suite::SuiteReport& report, const LayoutPlans& plans, bool as_json) {
  std::string text = suite::render_report(report);
  for (const suite::LayoutPlan& plan : plans)
    text += "\n" + suite::render_layout_ranking(suite::rank_layouts(plan, report.outcomes));
  print_result(as_json ? print_json(to_json(suite::document::describe_report(report, plans))) : text);
}

}  // namespace tprimat::cli
