#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/measuring.h"
#include "result/probe_report.h"

namespace tprimat::engine {

// Walks through at least 1 GB and four times the last-level cache (less on machines with less free memory), for about
// three seconds with all kinds. `threads` as in measure_gemm_peak. Throws Error when memory runs out.
MemoryBandwidth measure_memory_bandwidth(int threads);
MemoryBandwidth measure_memory_bandwidth(int threads, const std::vector<StreamKernel>& kinds);

}  // namespace tprimat::engine
