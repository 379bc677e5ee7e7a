#pragma once

#include <string>
#include <vector>

#include "planner/published_workload.h"

namespace tprimat::planner {

// A row with what it leaves open and its source's configurations say: recipes of Primus, layouts of submissions to
// MLPerf that follow from their batch and accumulation.
struct CompletedRow {
  PublishedRow row;
  std::vector<std::string> assumptions;  // "TP1 CP2", "FP8", "SL 4096"
  std::string missing;                   // why nothing can be predicted; empty when something can
  std::string weak;                      // why its figures are left out of fits; empty where they are not
};
CompletedRow complete_row(const PublishedRow& printed);

// What decides the time of a fine-tuning with adapters, and of a submission to MLPerf.
void read_tuning(PublishedWorkload& read, const PublishedRow& row);

}  // namespace tprimat::planner
