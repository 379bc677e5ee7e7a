#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/suite_plan.h"
#include "telemetry/gpu_libraries.h"

namespace tprimat::suite {

// The GPUs of this machine that a run works on: the first that it sees, one for each of its ranks here. By
// `visible_devices` of the configuration, else by this program's environment, which processes that the run starts
// inherit and containers do not. Nothing on cpu: what is not used does not count there.
std::optional<GpuUse> gpus_of(const PlannedRun& run);

// Watches who else holds the GPUs that a run uses. It only looks: what belongs to others is never touched.
class GpuNeighbours {
 public:
  using Libraries = std::vector<std::shared_ptr<const GpuLibrary>>;

  // Before the run: everything there belongs to others. On cpu nothing is asked.
  GpuNeighbours(const Libraries& libraries, Platform platform);

  // After the run, whose processes are all gone: sentences on who was there before, and who is there that was not. A
  // driver takes a moment to let go of a process; `patience_seconds` waits for it.
  std::vector<std::string> report(double patience_seconds) const;

 private:
  std::vector<GpuProcess> list() const;
  std::vector<GpuProcess> list_new() const;

  const Libraries& libraries_;
  Platform platform_;
  std::vector<GpuProcess> before_;
};

}  // namespace tprimat::suite
