#pragma once

#include "planner/step_time.h"

namespace tprimat {

// One step of tprimat's own trainer on a processor whose cores all ranks share (docs/planner.md, "Our own trainer").
// The slowest rank's path takes as long as its threads need, and all ranks together no less than their work over all
// cores: ranks beyond the cores wait for each other's turns, and a pipeline's bubble then costs nothing.
StepTime time_native_step(const Workload& workload, const Machine& machine, const NativeRates& rates);

NativeRates resolve_native_rates(const ParameterSet& parameters, const Machine& machine, const Workload& workload);

// A processor by what was measured of it: figures of all its usable threads together.
struct ProcessorFacts {
  std::string name;
  int64_t threads = 1;
  double peak_16 = 0, peak_32 = 0;  // of matrix products, FLOP/s; 0: not measured
  bool widens = false;              // 16-bit numbers are multiplied in fp32, so peak_16 is that of fp32
  double memory_bandwidth = 0;      // STREAM's triad, bytes/s
  double memory_bytes = 0;
};
Machine processor_machine(const ProcessorFacts& facts);

}  // namespace tprimat
