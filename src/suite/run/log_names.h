#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "spec/names.h"

namespace tprimat::suite {

// What the path of a log says.
struct LogName {
  std::filesystem::path path;      // below its place
  std::filesystem::path named_by;  // the part that names the run: the file, or the folder of steps.jsonl
  std::optional<Framework> framework;
  std::optional<Platform> platform;
  std::filesystem::path training;  // what all files of one training share: the path, or a folder
  bool is_series = false;          // an event file, a table or step records: beside the console log of the same run
  int attempt = 0;                 // torchrun: attempt_1/3/stdout.log
  int rank = -1;                   // Primus: rank-7/info.log; -1: a log of all ranks
  bool is_detailed = false;        // Primus: debug.log has the lines of info.log, and the settings

  // Of the files of one training the first is chosen: the latest attempt, the console, all ranks or the lowest, the
  // most detailed.
  auto order() const { return std::tuple(-attempt, is_series, rank, !is_detailed); }
};

// "training_nvd_mega_llama_bc.log" is of Megatron-LM on NVIDIA. `below` is relative to the place of the log. Platform
// and framework stand before the model, one of these keys: "llama_amd_epyc.log" names no platform. In a name without a
// model they stand at its begin.
LogName parse_log_name(const std::filesystem::path& below, const std::vector<std::string>& models = {});

}  // namespace tprimat::suite
