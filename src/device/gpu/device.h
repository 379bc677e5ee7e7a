#pragma once

#include <memory>

#include "device/accelerator.h"

namespace tprimat::gpu {

// How many GPUs this process sees; 0 where the driver is missing or sees none.
int count_devices();

// The GPU of this process: context() is its. One at a time. Throws Error where there is no such GPU.
std::unique_ptr<Accelerator> make_device(int index);

}  // namespace tprimat::gpu
