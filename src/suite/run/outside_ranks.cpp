#include "run/outside_ranks.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace tprimat::suite {
namespace {

constexpr double k_cleanup_limit_seconds = 60.0;  // a busy batch system takes its time
constexpr double k_hurried_limit_seconds = 5.0;   // of which a suite that is to end itself has none

void run_cleanup(const LaunchPlan& plan, const SuiteContext& around) {
  const bool is_hurried = around.interrupts && around.interrupts() > 0;
  Command command;
  command.argv = plan.cleanup_command;
  command.time_limit_seconds = is_hurried ? k_hurried_limit_seconds : k_cleanup_limit_seconds;
  command.grace_seconds = 1.0;
  const std::unique_ptr<ChildProcess> child = around.processes.start(command);
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

void end_outside_ranks(const LaunchPlan& plan, const SuiteContext& around) {
  if (plan.cleanup_command.empty()) return;
  try {
    run_cleanup(plan, around);
  } catch (const Error& error) {
    log_warning("after the run was stopped: " + to_string(error.problems().front()));
  }
}

}  // namespace tprimat::suite
