#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "telemetry/gpu_library.h"
#include "telemetry/gpu_use.h"
#include "telemetry/sensor.h"

namespace tprimat {

// What to watch while a run's process tree lives.
struct WatchRequest {
  pid_t root = 0;                                            // first process of the run
  int64_t threads = 1;                                       // that the run may use: the capacity behind "utilisation"
  std::vector<std::shared_ptr<const GpuLibrary>> libraries;  // whose devices are watched
  std::optional<GpuUse> gpus = std::nullopt;                 // these of them; absent: all
};

// All sensors that this machine has, in the order in which they appear in a result: "proc" (the tree), "proc:machine",
// "rapl", one per GPU.
std::vector<std::unique_ptr<Sensor>> open_sensors(const WatchRequest& request);

}  // namespace tprimat
