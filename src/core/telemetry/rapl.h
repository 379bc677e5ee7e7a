#pragma once

#include <filesystem>
#include <memory>

#include "telemetry/sensor.h"

namespace tprimat {

// Energy of the processor packages and, where it is counted apart, their memory: the kernel's powercap counters (Intel
// RAPL and its AMD equivalent). Null when the machine has none or they may not be read (usually only root may).
std::unique_ptr<Sensor> open_rapl(const std::filesystem::path& powercap = "/sys/class/powercap");

}  // namespace tprimat
