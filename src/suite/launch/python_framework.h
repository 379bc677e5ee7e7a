#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/frameworks.h"
#include "launch/launch_plan.h"

namespace tprimat::suite {

// A framework that one of our own Python adapters drives (frameworks/train_<id>.py). The adapter's sources are part of
// this program and are written beside each run, so that what ran can be read and run again.
struct PythonFramework {
  Framework id;
  std::string_view package;                   // whose version is the framework's
  std::string_view script;                    // the adapter's main file
  bool always_torchrun;                       // also for one rank
  std::vector<Precision> precisions;          // on every platform
  std::vector<Precision> precisions_of_gpus;  // those that it has on GPUs besides
  std::vector<int64_t> zero_stages;           // that it can do
};

// Where `frameworks/setup.sh ID` makes virtual environments: $TPRIMAT_FRAMEWORKS, else
// $XDG_DATA_HOME/tprimat/frameworks, else ~/.local/share/tprimat/frameworks.
std::filesystem::path python_environments();

// The version of a package, spelled as its dist-info folder spells it, below a Python's prefix; nothing: not there.
std::optional<std::string> find_package_version(const std::filesystem::path& prefix, std::string_view package);

// train_spec.json, and in adapter/ the script of frameworks/ with the modules that it shares with others.
std::vector<GeneratedFile> list_adapter_files(std::string_view script, const LaunchRequest& request);

// The virtual environment <python_environments()>/<id> with the package in it; nothing where one of the two is missing.
std::optional<Installation> find_python_framework(const PythonFramework& framework);

// Command, environment and files of one training. Throws Error that names what the framework cannot do.
TrainProgram plan_python_framework(const PythonFramework& framework, const LaunchRequest& request);

}  // namespace tprimat::suite
