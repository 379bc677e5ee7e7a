#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "planner/parameters.h"
#include "planner/plan_comparison.h"
#include "planner/planned_config.h"
#include "run/machine_option.h"

namespace tprimat::suite {

// The options of `tprimat plan MODEL`, as written.
struct PlanModelOptions {
  std::string model, framework = "megatron_core", precision = "bf16";
  std::vector<std::string> gpu, gpus, price;
  int64_t sequence_length = 0, global_batch = 0;
  size_t top = 10;
  std::string tokens, scaling;
  std::string recipe;               // of FP8
  std::string routing, dispatcher;  // of a sparse model
  double expert_load = 0;           // 0: not stated
  std::string graphs;               // of a sparse model
  bool expert_overlap = false, tuned = false;
  int64_t moment_bytes = 0, gradient_bytes = 0;  // 0: as usual
  double target_days = 0, budget_usd = 0;
  double failure_gpu_hours = 0, restart_minutes = -1, checkpoint_bandwidth_gb = 0, node_noise_percent = -1;
  bool zero_bubble = false, lora = false;
  MachineOptions machine;
};

// The options combined with the configuration: one case per GPU and number of GPUs.
struct PlanQuestion {
  std::vector<planner::PlanCase> cases;
  planner::ComparisonOptions compared;
  std::vector<std::string> left_out;  // entries of --gpus without a plan, as sentences
  planner::PlannedModel model;        // parts of the model's entry for a plan written as a configuration
  std::optional<Framework> framework;
};

// `configured`: the effective configuration. Measures this processor if --gpu names it. Throws Error.
PlanQuestion read_plan_question(const PlanModelOptions& options, const LoadedExperiment& configured,
                                const planner::PlannerSettings& planner);

// The fastest layout of the first case as a configuration. Throws Error where there is none.
std::string render_fastest_config(const PlanQuestion& question, const planner::PlanComparison& comparison);

}  // namespace tprimat::suite
