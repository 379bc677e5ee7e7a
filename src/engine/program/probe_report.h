#pragma once

#include <string>
#include <vector>

#include "probe/collective_probe.h"
#include "probe/gpu_probes.h"
#include "probe/probes.h"

namespace tprimat::engine {

// For people: aligned tables, then the rules of the measurements.
std::string render_probe(const ProbeReport& report);
std::string render_model_probe(const ModelProbeReport& report);
std::string render_collectives(const CollectiveReport& report);

// What disturbed a measurement, as sentences; a disturbed figure is shown, but not silently.
std::vector<std::string> list_disturbances(const ProbeReport& report);
std::vector<std::string> list_disturbances(const ModelProbeReport& report);
std::vector<std::string> list_disturbances(const CollectiveReport& report);

// For people: aligned tables.
std::string render_gpu_probe(const GpuProbeReport& report);

// What disturbed a measurement, as sentences.
std::vector<std::string> list_disturbances(const GpuProbeReport& report);

}  // namespace tprimat::engine
