#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_plan.h"

namespace tprimat::suite {

// A program to launch, and the number of its processes.
struct Placement {
  const TrainProgram& program;  // in a container: with the paths inside it
  const LaunchRequest& request;
  int64_t ranks = 1, nodes = 1;
  std::string name;  // of a job or container: unique, and the same for the same run

  int64_t ranks_per_node() const { return ranks / nodes; }
};

// Everything the suite knows about one launcher.
struct LauncherModule {
  Launcher id;
  std::string_view long_name;
  // Completes the plan: command, location of the ranks, cleanup command and files. The environment and the paths are
  // set already.
  void (*place)(const Placement&, LaunchPlan&);
  bool (*is_here)(const LauncherSettings&);
  std::string_view lacking;     // the message if it is missing
  std::string_view installing;  // how to install it, as a sentence
};

// All of them, in the order of menus and tables.
const std::vector<LauncherModule>& launcher_modules();

// Throws Error (ExitStatus::missing_component) that says how to install it.
void require_launcher(const LauncherSettings& settings);

// Plans a program under the requested launcher. Throws Error where the ranks cannot be spread evenly over the nodes.
void place_ranks(const TrainProgram& program, const LaunchRequest& request, LaunchPlan& plan);

}  // namespace tprimat::suite
