#pragma once

namespace tprimat::gpu::host {

// How the shim's NCCL behaves, for tests.
struct NcclHabits {
  int abort_milliseconds = 0;  // that a group takes to end unfinished
  bool breaks_events = false;  // nothing can be recorded behind an exchange
};
NcclHabits& nccl_habits();

}  // namespace tprimat::gpu::host
