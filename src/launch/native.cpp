#include "launch/native.h"

#include <nlohmann/json.hpp>

#include "base/build_info.h"
#include "text/json.h"

namespace tprimat {

std::optional<Installation> find_native() { return Installation{std::string(build_info().version), "built in"}; }

LaunchPlan plan_native(const LaunchRequest& request) {
  const std::string spec_path = request.paths.folder + "/train_spec.json";
  LaunchPlan plan;
  plan.steps_path = request.paths.folder + "/steps.jsonl";
  plan.command = {request.own_program, "train", "--spec", spec_path};
  plan.environment = {{"TPRIMAT_STEPS", plan.steps_path}};
  plan.working_directory = request.paths.working_directory;
  plan.files = {{spec_path, print_json(train_spec_to_json(request.spec))}};
  plan.log_path = request.paths.log;
  plan.result_path = request.paths.result;
  return plan;
}

}  // namespace tprimat
