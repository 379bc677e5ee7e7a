#include "cli/estimate_memory.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cli/counted_request.h"
#include "cli/parse_choice.h"
#include "run/forecast.h"
#include "telemetry/gpu_libraries.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

SuiteRequest suite_of(const MemoryRequest& request) {
  SuiteRequest suite;
  suite.models = {request.model};
  if (request.platform != "auto") suite.platform = parse_choice<Platform>(request.platform, "--platform");
  if (!request.framework.empty()) suite.frameworks = {parse_choice<Framework>(request.framework, "--framework")};
  if (!request.strategy.empty()) suite.strategies = {request.strategy};
  suite.own_program = "tprimat";
  suite.presence = Presence::any;
  return suite;
}

std::string render_memory_parts(const MemoryEstimate& memory) {
  TextTable table{{"part", "memory", "share"}, {}, {1, 2}};
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > 0) table.rows.push_back({name, format_memory(bytes), format_percent(bytes / memory.total())});
  table.rows.push_back({"all", format_memory(memory.total()), format_percent(1)});
  return render_text(table);
}

std::string render_room(const Forecast& known, const PlannedRun& run, const PlannerSettings& planner) {
  if (!known.room) return "memory of the device: not known\n";
  const std::string room = fmt::format("{} ({})", format_memory(known.room->bytes), known.room->source);
  const std::string who =
      known.room->ranks > 1 ? fmt::format("all {} ranks, {}: ", known.room->ranks, format_memory(known.needed)) : "";
  if (known.fits()) return fmt::format("{}fits into {}\n", who, room);
  return fmt::format("{}does not fit into {}\n{}\n", who, room, suggest_fitting(run, known, planner));
}

std::string render_memory(const PlannedRun& run, const Forecast& known, const PlannerSettings& planner) {
  const std::string title = fmt::format("{}, {}\n\n", name_training(run), print_planned_layout(run));
  if (!known.memory) return title + fmt::format("the planner does not predict {}\n", known.missing);
  return title + render_memory_parts(*known.memory) + "\n" + render_room(known, run, planner);
}

}  // namespace

ExitStatus estimate_layout_memory(const Session& session, const MemoryRequest& request) {
  const Experiment experiment = load_session_experiment(session);
  const MachineFacts machine = read_machine(open_gpu_libraries());
  const PlannerSettings planner = load_planner_settings(experiment.planner_parameters);
  const SuitePlan suite = plan_suite(experiment, suite_of(request), machine);
  for (const Problem& problem : suite.unavailable) log_warning(to_string(problem));
  Json list = Json::array();
  std::string text;
  for (const PlannedRun& run : suite.runs) {
    if (run.run > 1) continue;  // a repetition
    const Forecast known = forecast(run, machine, planner);
    Json each = forecast_to_json(known);
    each["run"] = name_training(run);
    list.push_back(std::move(each));
    text += (text.empty() ? "" : "\n") + render_memory(run, known, planner);
  }
  print_result(session.json ? print_json(list) : text);
  return ExitStatus::done;
}

}  // namespace tprimat
