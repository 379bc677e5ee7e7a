#include "run/outside_ranks.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace tprimat {
namespace {

constexpr double k_cleanup_limit_seconds = 60.0;  // a busy batch system takes its time

void run_cleanup(const LaunchPlan& plan, ProcessRunner& processes) {
  Command command;
  command.argv = plan.cleanup_command;
  command.time_limit_seconds = k_cleanup_limit_seconds;
  const std::unique_ptr<ChildProcess> child = processes.start(command);
  std::string words;
  std::optional<ExitReason> exit;
  while (!(exit = child->poll(0.1, [&](std::string_view line) { words = line; }))) {
  }
  if (!exit->success()) log_detail("after the run was stopped: " + (words.empty() ? to_string(*exit) : words));
}

}  // namespace

std::vector<std::unique_ptr<Sensor>> open_sensors_for(const LaunchPlan& plan, const WatchRequest& request) {
  if (plan.place == Whereabouts::elsewhere) return {};
  std::vector<std::unique_ptr<Sensor>> sensors = open_sensors(request);
  if (plan.place == Whereabouts::this_machine)
    std::erase_if(sensors, [](const std::unique_ptr<Sensor>& sensor) { return sensor->name() == "proc"; });
  return sensors;
}

void end_outside_ranks(const LaunchPlan& plan, ProcessRunner& processes) {
  if (plan.cleanup_command.empty()) return;
  try {
    run_cleanup(plan, processes);
  } catch (const Error& error) {
    log_warning("after the run was stopped: " + to_string(error.problems().front()));
  }
}

}  // namespace tprimat
