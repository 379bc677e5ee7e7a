#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "ops/kernel_report.h"

namespace tprimat::engine {

// The warnings of a GPU's operations, which this takes out of the report, as this rank is to say them: what every rank
// would say alike, rank 0 says alone. Collective.
std::vector<std::string> take_shared_warnings(KernelReport& report, Communicator& world);
// As of this rank alone.
std::vector<std::string> take_own_warnings(KernelReport& report, const Communicator& world);

}  // namespace tprimat::engine
