#include "cli/print_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "run/adapt.h"
#include "run/forecast.h"
#include "run/gpu_default.h"
#include "run/plan_summary.h"
#include "run/suite_document.h"
#include "run/version_notes.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

std::string comment_lines(const std::string& text) {
  std::string comments;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    comments += suite::render_comment(text.substr(at, end - at));
    at = end + 1;
  }
  return comments.empty() ? "" : comments + "\n";
}

}  // namespace

void note_other_platform(const suite::SuitePlan& suite, const MachineFacts& machine) {
  if (suite.runs.empty()) return;
  const Platform planned = suite.runs.front().platform;
  if (planned != machine.platform && planned != Platform::cpu)
    log_note(fmt::format("this machine has no {} devices; the plan is for {} (--platform selects another)",
                         display_name(planned), enum_name(planned)));
}

ExitStatus print_plan(const suite::SuitePlan& suite, const LayoutPlans& layouts, const MachineFacts& machine,
                      const planner::PlannerSettings& planner, const Session& session) {
  for (const Problem& problem : suite.unavailable) log_warning(to_string(problem));
  for (const Problem& problem : suite::list_unchecked_versions(suite)) log_warning(to_string(problem));
  for (const Problem& problem : suite::find_misfits(suite, machine, planner)) log_warning(to_string(problem));
  for (const Problem& problem : suite::find_doubtful_fits(suite, machine, planner)) log_warning(to_string(problem));
  std::vector<suite::document::PlannedTraining> list;
  if (!session.json)
    print_result(comment_lines(suite::render_default_choice(suite)) + comment_lines(suite::render_adaptations(suite)) +
                 comment_lines(suite::render_layout_plans(layouts)));
  for (const suite::PlannedRun& run : suite.runs) {
    const suite::Forecast known = suite::forecast(run, machine, planner);
    if (session.json) {
      list.push_back(suite::document::describe_planned(run, known, layouts));
      continue;
    }
    print_result(suite::render_dry_run(run, known, session.verbose) + "\n");
  }
  if (session.json) print_result(print_json(to_json(list)));
  return ExitStatus::done;
}

}  // namespace tprimat::cli
