#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "device/device.h"
#include "probe/measuring.h"
#include "result/collective_report.h"

namespace tprimat::engine {

double bus_factor(CollectiveKind kind, int ranks);

inline const std::vector<int64_t> k_collective_bytes = {1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20};

// Collective over `group`, which has at least two ranks and exchanges what lies in each rank's `device`; every rank
// gets the same report. About 0.3 s for each collective and size, in fp32.
CollectiveReport measure_collectives(Communicator& group, Device& device = cpu_device(),
                                     const std::vector<int64_t>& sizes = k_collective_bytes);

}  // namespace tprimat::engine
