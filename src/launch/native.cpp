#include "launch/native.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/build_info.h"
#include "base/error.h"
#include "text/json.h"

namespace tprimat {
namespace {

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    if (::access((std::string(rest.substr(0, colon)) + "/" + program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

void require_mpirun(int64_t ranks) {
  if (is_in_path("mpirun")) return;
  throw Error(Problem{fmt::format("this layout needs {} ranks, and there is no mpirun to start them", ranks), "PATH",
                      "sudo apt-get install openmpi-bin"},
              ExitStatus::missing_component);
}

// Threads are placed by the system, not by mpirun, which would bind each rank to one core. More ranks than processors
// are allowed: a layout can be tried on a small machine. In containers everybody is root.
std::vector<std::string> mpirun_words(int64_t ranks) {
  return {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
}

// A relative directory of checkpoints is one inside the run's own folder.
TrainSpec place_checkpoints(TrainSpec spec, const std::filesystem::path& folder) {
  std::string& directory = spec.checkpoint.directory;
  if (!directory.empty()) directory = (folder / directory).string();
  return spec;
}

}  // namespace

std::optional<Installation> find_native() { return Installation{std::string(build_info().version), "built in"}; }

LaunchPlan plan_native(const LaunchRequest& request) {
  const std::string spec_path = request.paths.folder + "/train_spec.json";
  const int64_t ranks = request.spec.parallel.ranks();
  LaunchPlan plan;
  if (ranks > 1) {
    require_mpirun(ranks);
    plan.command = mpirun_words(ranks);
  }
  plan.steps_path = request.paths.folder + "/steps.jsonl";
  for (const std::string& word : {request.own_program, std::string("train"), std::string("--spec"), spec_path})
    plan.command.push_back(word);
  plan.environment = {{"TPRIMAT_STEPS", plan.steps_path}};
  plan.working_directory = request.paths.working_directory;
  const TrainSpec spec = place_checkpoints(request.spec, request.paths.folder);
  plan.checkpoints_path = spec.checkpoint.directory;
  plan.files = {{spec_path, print_json(train_spec_to_json(spec))}};
  plan.log_path = request.paths.log;
  plan.result_path = request.paths.result;
  return plan;
}

}  // namespace tprimat
