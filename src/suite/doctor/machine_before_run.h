#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "doctor/doctor_facts.h"
#include "result/machine_finding.h"
#include "telemetry/gpu_libraries.h"

namespace tprimat::suite {

// What a run that is about to start needs of this machine.
struct RunNeeds {
  Platform platform = Platform::cpu;
  std::optional<GpuUse> gpus;  // that it works on; nothing on cpu
  std::filesystem::path output;
};

// The facts behind the checks of the machine itself. Starts no program; watches the processor for half a second, on a
// GPU platform for a second, since a driver's utilisation covers up to that time.
DoctorFacts read_machine_before_run(const RunNeeds& needs, const MachineFacts& machine,
                                    const std::vector<std::shared_ptr<const GpuLibrary>>& libraries);

// What the checks of the machine find in them.
DoctorReport examine_machine(const DoctorFacts& facts);

}  // namespace tprimat::suite
