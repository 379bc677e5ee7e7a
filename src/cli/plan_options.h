#pragma once

#include <string>

#include "run/plan_question.h"

#include "command_line/options.h"

namespace tprimat::cli {

// What `tprimat plan MODEL` was asked, and how the answer is shown.
struct PlanModelRequest {
  suite::PlanModelOptions question;
  std::string plot;
  bool yaml = false;
};

void add_plan_model_options(CommandLine& verb, PlanModelRequest& request);

// Throws Error for options that contradict each other.
void check_plan_request(const PlanModelRequest& request, bool prints_json);

}  // namespace tprimat::cli
