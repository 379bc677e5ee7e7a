#pragma once

#include <string>
#include <vector>

namespace tprimat::engine::gpu::host {

// What a profiler of the shim would have seen: the names of ranges in the order in which they began, and how deep each
// lies in others.
struct SeenRange {
  std::string name;
  int depth;
  bool watched;  // inside the window
};
std::vector<SeenRange>& seen_ranges();
int open_ranges();

}  // namespace tprimat::engine::gpu::host
