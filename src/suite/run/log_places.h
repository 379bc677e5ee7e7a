#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "spec/names.h"

namespace tprimat::suite {

// A folder in which trainings usually leave their logs.
struct LogPlace {
  std::string name;  // "output folder", "paths.primus.installation"
  std::filesystem::path folder;
  std::optional<Framework> framework = {};  // that writes there
  std::string model = {};                   // of all logs there; empty: not known
  int depth = 0;                            // levels of folders below it that are searched
  bool any_name = true;                     // false: only names that a training's log usually has
  bool exists = false;                      // set by search_logs, as the following
  size_t logs = 0;
  std::string incomplete = {};  // why not all of it was searched
};

// The output folder, the current folder, and those of every framework's installation: itself, and its folders output,
// logs, tensorboard ...
std::vector<LogPlace> list_log_places(const Experiment& experiment, const std::filesystem::path& output);

struct FoundLog {
  std::filesystem::path path, below;  // below: relative to its place
  size_t place = 0;
  double unix_time = 0;  // of its last change
};

struct SkippedFile {
  std::filesystem::path path;
  std::string why;
};

struct SearchLimits {
  size_t entries = 20000;  // of one place, folders included
};

struct LogSearch {
  std::vector<FoundLog> logs;  // each file once, the newest first
  std::vector<SkippedFile> skipped;
};

// Every file that may be a log by its name. Links to folders are not followed; pipes and devices are not opened. Hidden
// folders and those of checkpoints are left out.
LogSearch search_logs(std::vector<LogPlace>& places, const SearchLimits& limits);

}  // namespace tprimat::suite
