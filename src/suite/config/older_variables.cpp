#include "config/older_variables.h"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "config/values.h"

namespace tprimat::suite {
namespace {

constexpr std::pair<const char*, const char*> k_of_layout[] = {{"TP", "tensor_model_parallel_size"},
                                                               {"PP", "pipeline_model_parallel_size"},
                                                               {"DP", "data_parallel_size"},
                                                               {"GACC", "gradient_accumulation_steps"}};

// Platforms as those scripts call them.
constexpr std::pair<const char*, const char*> k_platforms[] = {{"NVIDIA", "nvd"}, {"AMD", "amd"}};

void add_layout(const YamlNode& tree, const std::string& prefix, const std::string& path,
                std::vector<ConfigVariable>& variables) {
  if (find_path(tree, path) == nullptr) return;
  for (const auto& [ending, key] : k_of_layout)
    variables.push_back({fmt::format("{}_{}", prefix, ending), join_path(path, key)});
}

}  // namespace

const std::vector<ConfigVariable>& older_variables() {
  static const std::vector<ConfigVariable> variables = {
      {"CONFIG_TRAIN_ITERS", "training.duration.max_steps"},
      {"CONFIG_MAX_STEPS", "training.duration.max_steps"},
      {"CONFIG_GLOBAL_BATCH_SIZE", "training.data.global_batch_size"},
      {"CONFIG_MICRO_BATCH_SIZE", "training.data.micro_batch_size"},
      {"CONFIG_SEQ_LENGTH", "training.data.seq_length"},
      {"CONFIG_LEARNING_RATE", "training.optimizer.learning_rate"},
      {"CONFIG_MIN_LEARNING_RATE", "training.optimizer.min_learning_rate"},
      {"CONFIG_WARMUP_STEPS", "training.optimizer.warmup_steps"},
      {"CONFIG_WEIGHT_DECAY", "training.optimizer.weight_decay"},
      {"CONFIG_METHODOLOGY", "experiment.methodology"},
      {"CONFIG_PROF_ENABLED", "experiment.profiling"},
      {"CONFIG_PRIMUS_PATH", "paths.primus.installation"},
      {"CONFIG_PROF_WAIT", ""},
      {"CONFIG_PROF_WARMUP", ""},
      {"CONFIG_PROF_ACTIVE", ""},
      {"CONFIG_PROF_MEMORY", ""},
      {"CONFIG_PROF_RECORD_SHAPES", ""}};
  return variables;
}

std::vector<ConfigVariable> older_variables_of(const YamlNode& tree, const std::string& strategy) {
  std::vector<ConfigVariable> variables;
  const YamlNode* section = tree.find("models");
  const std::vector<YamlEntry> models = section == nullptr ? std::vector<YamlEntry>() : section->entries;
  for (const auto& [name, platform] : k_platforms) {
    const std::string prefix = fmt::format("CONFIG_{}", name), path = "hardware.platforms." + std::string(platform);
    const bool is_configured = find_path(tree, path) != nullptr;
    const std::string options = "platform_optimizations." + std::string(platform);
    const std::pair<const char*, std::string> keys[] = {{"_PRECISION", options + ".precision"},
                                                        {"_ACT_CHECKPOINT", options + ".activation_checkpointing"}};
    for (const auto& [ending, key] : keys) variables.push_back({prefix + ending, is_configured ? key : ""});
    for (const YamlEntry& model : models)
      add_layout(tree, fmt::format("CONFIG_{}_{}", upper_path(model.key), name),
                 fmt::format("parallelism.{}.{}.{}", strategy, model.key, platform), variables);
  }
  for (const YamlEntry& model : models) {
    const std::string prefix = fmt::format("CONFIG_{}", upper_path(model.key));
    variables.push_back({prefix + "_PRIMUS_CONFIG", fmt::format("models.{}.primus_config", model.key)});
    variables.push_back({prefix + "_LOG_FILE", ""});
  }
  return variables;
}

}  // namespace tprimat::suite
