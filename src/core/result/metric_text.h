#pragma once

#include <map>
#include <string>

#include "result/metrics.h"

namespace tprimat {

// "41.7 %", "60.50 GB", "13 425": without the unit where the title has it.
std::string format_figure(const Metric& metric, double value);

// All known figures of a run by key, with intervals.
std::map<std::string, Estimate> list_figures(const RunResult& result);

// What the run's tokens cost in memory, energy, money and time: "tokens per Wh: 5 120; days for 1e12 tokens: 128", of
// the figures that are known. Peaks in GB are not repeated.
std::string describe_resources(const std::map<std::string, Estimate>& figures);

}  // namespace tprimat
