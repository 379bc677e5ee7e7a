#pragma once

#include <map>
#include <string>
#include <vector>

#include "spec/train_spec.h"

namespace tprimat {

struct GeneratedFile {
  std::string path, content;
};

// One training as the operating system sees it: everything needed to start it, and where its traces will be. Paths are
// absolute.
struct LaunchPlan {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // added to the caller's
  std::string working_directory;
  std::vector<GeneratedFile> files;  // written before the start
  std::string log_path;              // stdout and stderr
  std::string steps_path;            // StepRecords, one JSON per line
  std::string checkpoints_path;      // folder of checkpoints; empty where none are written
  std::string result_path;
};

// Where one run keeps what it needs and writes. Paths are absolute.
struct RunPaths {
  std::string folder;  // for generated files and step records
  std::string log, result;
  std::string working_directory;
};

struct LaunchRequest {
  TrainSpec spec;
  Platform platform = Platform::cpu;
  RunPaths paths;
  std::string own_program;  // path of this program, for the native trainer
};

}  // namespace tprimat
