#pragma once

#include <string>
#include <vector>

#include "why/ledger.h"
#include "why/pipeline_report.h"

namespace tprimat::results {

struct PipelineSide {
  std::string label;
  std::vector<std::string> files;
  PipelineReport report;
};
// The step of the mean worker: its computations, the bubble that the schedule costs, and the waiting beyond that.
Ledger make_pipeline_ledger(const PipelineSide& a, const PipelineSide& b);

}  // namespace tprimat::results
