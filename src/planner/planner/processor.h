#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/machine.h"
#include "result/probe_report.h"

namespace tprimat::planner {

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

// Nothing where the report has no product. The machine's memory is not in it.
std::optional<ProcessorFacts> processor_facts(const ProbeReport& report);

}  // namespace tprimat::planner
