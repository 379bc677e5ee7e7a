#pragma once

#include <string>
#include <vector>

#include "probe/gpu_probes.h"

namespace tprimat::engine {

// For people: aligned tables.
std::string render_gpu_probe(const GpuProbeReport& report);

// What disturbed a measurement, as sentences.
std::vector<std::string> list_disturbances(const GpuProbeReport& report);

}  // namespace tprimat::engine
