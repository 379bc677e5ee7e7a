#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "trace/trace.h"
#include "why/waiting.h"

namespace tprimat::results {

struct RecordedSteps {
  double count = 1;    // the whole recording is one step where none is marked
  double seconds = 0;  // mean length
};
RecordedSteps recorded_steps(const logs::Trace& trace);

// Seconds per step of what a rank does by itself, collectives left out: kernels by their launching operation or name,
// operations and annotations of the processor by name without what they call, and the rest of the step ("no recorded
// operation").
std::map<std::string, double> own_work(const logs::Trace& trace);

// What one rank does longer than the median of the others, longest first.
std::vector<LongerWork> find_longer_work(std::span<const logs::Trace> ranks, size_t late);

}  // namespace tprimat::results
