#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/suite_plan.h"
#include "telemetry/gpu_libraries.h"

namespace tprimat::suite {

// The GPUs of this machine that a run works on: the first that it sees, one for each of its ranks here. By
// `visible_devices` of the configuration, else by this program's environment, which processes that the run starts
// inherit and containers do not. Nothing on cpu.
std::optional<GpuUse> gpus_of(const PlannedRun& run);

// Watches for other processes on the GPUs of a run. It never touches them.
class GpuNeighbours {
 public:
  using Libraries = std::vector<std::shared_ptr<const GpuLibrary>>;

  // Before the run: everything there belongs to others. Does nothing on cpu.
  GpuNeighbours(const Libraries& libraries, Platform platform);

  // After the run, once its processes have ended: sentences about processes that were there before, and about new ones.
  // A driver releases a process after a moment; `patience_seconds` waits for it.
  std::vector<std::string> report(double patience_seconds) const;

 private:
  std::vector<GpuProcess> list() const;
  std::vector<GpuProcess> list_new() const;

  const Libraries& libraries_;
  Platform platform_;
  std::vector<GpuProcess> before_;
};

}  // namespace tprimat::suite
