#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/frameworks.h"
#include "launch/launch_plan.h"

namespace tprimat {

// A framework that one of our own Python adapters drives (frameworks/train_<id>.py). The adapter's sources are part of
// this program and are written beside each run, so that what ran can be read and run again.
struct PythonFramework {
  Framework id;
  std::string_view package;  // whose version is the framework's
  std::string_view script;   // the adapter's main file
  bool always_torchrun;      // also for one rank
  std::vector<Precision> precisions;
  std::vector<int64_t> zero_stages;  // that it can do
  bool selective_recompute;
};

// Where `frameworks/setup.sh ID` makes virtual environments: $TPRIMAT_FRAMEWORKS, else
// $XDG_DATA_HOME/tprimat/frameworks, else ~/.local/share/tprimat/frameworks.
std::filesystem::path python_environments();

// The virtual environment <python_environments()>/<id> with the package in it; nothing where one of the two is missing.
std::optional<Installation> find_python_framework(const PythonFramework& framework);

// Command, environment and files of one training. Throws Error that names what the framework cannot do.
TrainProgram plan_python_framework(const PythonFramework& framework, const LaunchRequest& request);

}  // namespace tprimat
