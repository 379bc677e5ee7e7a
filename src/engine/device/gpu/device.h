#pragma once

#include <memory>
#include <string>

#include "device/accelerator.h"

namespace tprimat::engine::gpu {

// How many GPUs this process sees; 0 where the driver is missing or sees none. Throws Error (missing component) where
// the driver is older than what the program was built with.
int count_devices();

// Where GPU `index` of those is on this machine: the same text in every process that sees it. Throws Error where there
// is no such GPU.
std::string device_address(int index);

// The GPU of this process: context() is its. One at a time. Throws Error where there is no such GPU.
std::unique_ptr<Accelerator> make_device(int index);

}  // namespace tprimat::engine::gpu
