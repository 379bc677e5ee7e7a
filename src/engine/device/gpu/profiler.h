#pragma once

namespace tprimat::engine::gpu::profiler {

// Ranges of NVTX or ROCTX, which Nsight Systems and rocprofv3 show; they cost next to nothing where no profiler
// watches, and do nothing where ROCTX is not installed.
void begin_range(const char* name);
void end_range();
// The window that such a profiler records, where it was started to wait for it (docs/profile.md).
void watch(bool watches);

}  // namespace tprimat::engine::gpu::profiler
