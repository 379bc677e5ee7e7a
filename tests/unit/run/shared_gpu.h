#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/gpu_library.h"

namespace tprimat::suite {

// One GPU, whose memory the processes in `holders_` hold.
class SharedGpu : public GpuLibrary {
 public:
  std::string name() const override { return "nvml"; }
  std::vector<GpuFacts> devices() const override { return {{Platform::nvd, 0, "H100", {}, {}, {}}}; }
  std::optional<std::string> driver_version() const override { return {}; }
  std::optional<std::string> stack_version() const override { return {}; }
  Reading read(int64_t, FaultLog&) const override { return {}; }
  std::vector<GpuHolder> holders(int64_t) const override { return holders_; }
  std::vector<GpuHolder> holders_;
};

}  // namespace tprimat::suite
