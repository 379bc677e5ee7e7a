#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_plan.h"

namespace tprimat::suite {

// A program on its way to the operating system: what there is to start, and how many of it.
struct Placement {
  const TrainProgram& program;  // in a container: with the names that things have there
  const LaunchRequest& request;
  int64_t ranks = 1, nodes = 1;
  std::string name;  // of a job or container: unique, and the same for the same run

  int64_t ranks_per_node() const { return ranks / nodes; }
};

// Everything the suite knows about one launcher.
struct LauncherModule {
  Launcher id;
  std::string_view long_name;
  // Completes the plan: its command, where the ranks run, what ends them, and files. The plan has the environment and
  // the paths already.
  void (*place)(const Placement&, LaunchPlan&);
  bool (*is_here)(const LauncherSettings&);
  std::string_view lacking;     // where it is not, in a sentence
  std::string_view installing;  // what brings it here, in a sentence
};

// All of them, in the order of menus and tables.
const std::vector<LauncherModule>& launcher_modules();

// Throws Error (ExitStatus::missing_component) that says how to install it.
void require_launcher(const LauncherSettings& settings);

// Puts a program under the launcher that the request names. Throws Error where the ranks cannot be spread evenly over
// the nodes.
void place_ranks(const TrainProgram& program, const LaunchRequest& request, LaunchPlan& plan);

}  // namespace tprimat::suite
