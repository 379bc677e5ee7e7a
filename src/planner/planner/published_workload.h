#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/memory.h"
#include "planner/usual_settings.h"
#include "published/table.h"

namespace tprimat::planner {

// A row of a published table as a step to predict, and what was measured of it.
struct PublishedWorkload {
  Workload workload;
  Machine machine;
  double tokens_per_second_per_gpu = 0;  // 0: not printed
  std::optional<double> memory_bytes;    // most on one GPU
  MemoryReading memory_reading = {};
  std::optional<double> activation_bytes;  // of them, what is kept for the backward pass
  std::optional<double> activation_share;  // the same over that without recomputation and sequence parallelism
  bool out_of_memory = false;
  const UsualSettings* usual = nullptr;  // of its program and model, for what the row does not say
  std::vector<std::string> assumptions;  // of inputs that the row does not print
  std::string weak;                      // why its figures are left out of fits; empty where they are not
  std::string missing;                   // why nothing can be predicted; empty when something can
};
PublishedWorkload read_published_workload(const PublishedRow& row);

}  // namespace tprimat::planner
