#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "extract/to_result.h"
#include "run/model_identity.h"

namespace tprimat::suite {

// What the name and the folder of a log say of its run.
struct NamedFacts {
  std::optional<Framework> framework;
  std::string framework_from;  // "paths.primus.installation", "the log's name"
  std::optional<Platform> platform;
  std::string platform_from = "the log's path";
  std::filesystem::path path;  // the parts of the log's path that may name its model
};

struct ConfiguredFacts {
  logs::KnownFacts known;             // those given, and those of the configuration that the log is silent about
  std::vector<std::string> warnings;  // where log and configuration contradict each other
  std::string family = {};  // the model's name, if no size follows from it: a key of the built-in configuration
};

// Adds model, platform, device, devices, batch, sequence length, precision and price of the configuration, as far as a
// person stated them and neither the log nor an option does; each is listed in known.assumed. `result` is that of the
// log with the facts given. A value that contradicts the log is not taken: the warning names both. Nothing is taken for
// a log that is of no model of the configuration.
ConfiguredFacts add_configured_facts(const LoadedExperiment& configuration, const RunResult& result,
                                     const ModelBelief& belief, const NamedFacts& named, const logs::KnownFacts& given);

}  // namespace tprimat::suite
