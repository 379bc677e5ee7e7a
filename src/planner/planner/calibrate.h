#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/memory.h"
#include "planner/parameters.h"

namespace tprimat::planner {

// A step that was measured.
struct Observation {
  Workload workload;
  Machine machine;
  double seconds = 0;                  // 0: not known
  std::optional<double> memory_bytes;  // most on one GPU, where it was recorded
  MemoryReading memory_reading = {};
};

// Least squares with priors, of time and memory: minimises the squares of ln(predicted / measured) / 6 %, grown by less
// than their square where they are large, and of ln(value / prior) / spread. The method is Levenberg and Marquardt's
// (lmder of MINPACK), begun at the priors: the values that `priors` brings along stay where no observation feels them,
// and do not matter elsewhere. Releases that the observations name are added as scalars about 1 (standard deviation 5
// %). Parameters of single machines (refine.h) are left out.
ParameterSet calibrate(ParameterSet priors, const std::vector<Observation>& observations);

// The least squares alone, for a set whose values are its priors and observations with that relative noise about the
// model. What no observation feels keeps its value of `before`.
struct Fit {
  ParameterSet parameters;
  std::map<std::string, double> deviations;  // posterior standard deviation of ln(value) of each fitted parameter
};
Fit fit_parameters(const ParameterSet& before, ParameterSet priors, const std::vector<Observation>& observations,
                   double noise);

double predict_seconds(const ParameterSet& parameters, const Machine& machine, const Workload& workload);

}  // namespace tprimat::planner
