// A profiler's ranges on the processor, as host_runtime.cpp has the runtime's calls.
#include "emulator/host_profiler.h"

#include "device/gpu/profiler.h"

namespace tprimat::engine::gpu {
namespace host {
namespace {

int depth = 0;
bool is_watched = false;

}  // namespace

std::vector<SeenRange>& seen_ranges() {
  static std::vector<SeenRange> seen;
  return seen;
}
int open_ranges() { return depth; }

}  // namespace host

namespace profiler {

void begin_range(const char* name) { host::seen_ranges().push_back({name, host::depth++, host::is_watched}); }
void end_range() { --host::depth; }
void watch(bool watches) { host::is_watched = watches; }

}  // namespace profiler
}  // namespace tprimat::engine::gpu
