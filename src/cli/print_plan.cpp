#include "cli/print_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "run/adapt.h"
#include "run/forecast.h"
#include "run/plan_summary.h"
#include "run/version_notes.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

Json file_to_json(const suite::GeneratedFile& file) {
  Json json{{"path", file.path}, {"content", file.content}};
  if (file.executable) json["executable"] = true;
  return json;
}

Json plan_to_json(const suite::PlannedRun& run, const suite::Forecast& known) {
  Json files = Json::array();
  for (const suite::GeneratedFile& file : run.plan.files) files.push_back(file_to_json(file));
  Json deviations = Json::array();
  for (const suite::Deviation& each : run.plan.deviations) {
    Json deviation{{"key", each.key}, {"asked", each.asked}, {"effective", each.effective}};
    if (!each.reason.empty()) deviation["reason"] = each.reason;
    deviations.push_back(std::move(deviation));
  }
  Json json{{"run", describe(run)},
            {"command", run.plan.command},
            {"environment", to_json(run.plan.environment)},
            {"working_directory", run.plan.working_directory},
            {"files", files},
            {"log", run.plan.log_path},
            {"steps_file", run.plan.steps_path},
            {"deviations", deviations},
            {"remarks", run.plan.remarks},
            {"prediction", suite::forecast_to_json(known)},
            {"cleanup_command", run.plan.cleanup_command},
            {"result", run.plan.result_path},
            {"config_hash", run.config_hash}};
  if (!run.default_choice.empty()) json["default_choice"] = run.default_choice;
  if (run.installation) json["installation"] = *run.installation;
  if (run.framework_version) json["framework_version"] = *run.framework_version;
  if (const std::string checked = suite::list_checked(run); !checked.empty()) json["checked_against"] = checked;
  return json;
}

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
  Json list = Json::array();
  if (!session.json)
    print_result(comment_lines(suite::render_default_choice(suite)) + comment_lines(suite::render_adaptations(suite)) +
                 comment_lines(suite::render_layout_plans(layouts)));
  for (const suite::PlannedRun& run : suite.runs) {
    const suite::Forecast known = suite::forecast(run, machine, planner);
    if (session.json) {
      list.push_back(with_plan(plan_to_json(run, known), run, layouts));
      continue;
    }
    print_result(suite::render_dry_run(run, known, session.verbose) + "\n");
  }
  if (session.json) print_result(print_json(list));
  return ExitStatus::done;
}

}  // namespace tprimat::cli
