#pragma once

#include <string>

#include "command_line/options.h"
#include "command_line/session.h"
#include "report/plots/picture.h"
#include "run/plan_question.h"

namespace tprimat::cli {

// What `tprimat plan MODEL` was asked, and how the answer is shown.
struct PlanModelRequest {
  suite::PlanModelOptions question;
  std::string plot;
  bool yaml = false;
};

// Draws a plot for --plot FILE, by the ending of its name; `-`: SVG on standard output.
void draw_plan_plot(const std::string& path, const results::Picture& picture);

void add_plan_model_options(CommandLine& verb, PlanModelRequest& request);

// Throws Error for options that contradict each other.
void check_plan_request(const PlanModelRequest& request, bool prints_json);

// `configured`: the configuration that holds.
ExitStatus plan_model(const Session& session, const PlanModelRequest& request,
                      const suite::LoadedExperiment& configured, const planner::PlannerSettings& planner);

}  // namespace tprimat::cli
