#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/workload.h"
#include "published/table.h"

namespace tprimat::planner {

// A task of MLPerf Training that a row of its tables is about.
struct TargetTask {
  std::string benchmark;  // "llama2_70b_lora"; empty: none
  std::string round;      // "v5.1"
};
TargetTask target_task(const PublishedRow& row);

// Samples that the task's reference needs with that batch, from src/planner/planner/targets.tsv: between two listed
// batches in proportion, nothing beyond them.
std::optional<double> samples_to_target(const TargetTask& task, int64_t global_batch);

// Minutes from the first step to the evaluation that reaches the target: steps and the evaluations between them, which
// take as long as their forward passes.
std::optional<double> minutes_to_target(const TargetTask& task, const Workload& workload, double step_seconds);

}  // namespace tprimat::planner
