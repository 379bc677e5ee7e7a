#pragma once

#include <cstddef>

namespace tprimat::engine::gpu::host {

// How the shim's NCCL behaves, for tests.
struct NcclHabits {
  int abort_milliseconds = 0;  // that a group takes to end unfinished
  bool breaks_events = false;  // nothing can be recorded behind an exchange
  // Of the device's memory, which a group takes when it is made, and once more when two of its ranks first exchange
  // messages.
  size_t connection_bytes = 0;
};
NcclHabits& nccl_habits();

}  // namespace tprimat::engine::gpu::host
