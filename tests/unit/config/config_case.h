#pragma once

#include <algorithm>
#include <string>

#include "base/error.h"
#include "config/load.h"

// What the tests of this folder share: a configuration from text, with nothing of this machine's environment.
namespace tprimat::suite {

struct ConfigCase {
  std::string text;
  std::map<std::string, std::string> environment = {};
  std::vector<std::string> overrides = {};

  LoadedExperiment load() const { return load_experiment_text(text, "config.yaml", sources()); }
  ConfigSources sources() const { return {std::nullopt, overrides, environment}; }

  // The problems that loading throws; empty when it loads.
  std::vector<Problem> errors() const {
    try {
      load();
    } catch (const Error& error) {
      return error.problems();
    }
    return {};
  }
};

inline bool mention(const std::vector<Problem>& problems, std::string_view part) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const Problem& problem) { return to_string(problem).find(part) != std::string::npos; });
}

inline std::string print(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) text += to_string(problem) + "\n";
  return text;
}

// A complete two-platform configuration with eight devices each.
inline std::string eight_devices(const std::string& more = "") {
  return R"(experiment: {methodology: "mine"}
hardware:
  platforms:
    nvidia: {gpu_model: "H100", num_gpus: 8}
    amd: {gpu_model: "MI300X", num_gpus: 8}
models:
  llama: {name: "llama3.1_8b"}
training:
  data: {micro_batch_size: 1, global_batch_size: 128, seq_length: 2048}
parallelism:
  mine:
    llama:
      nvidia: {TP: 4, PP: 1, DP: 2}
      amd: {TP: 4, DP: 2}
platform_optimizations:
  nvidia: {precision: bf16}
)" + more;
}

}  // namespace tprimat::suite
