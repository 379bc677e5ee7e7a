#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace tprimat::logs {

// Numbers by which a file ties GPU events to what launched them.
struct LaunchNumbers {
  struct Number {
    int64_t number = 0;
    uint32_t host_event = 0;  // index into Trace::host_events
  };

  std::vector<int64_t> correlations, externals;  // one per GPU event; -1: none
  std::vector<Number> calls;                     // of the runtime, by correlation
  std::vector<Number> operations;                // by external id
};

// Enters into the trace's GPU events when and by which operation they were launched, and what collectives do.
void link_launches(Trace& trace, const LaunchNumbers& numbers);

}  // namespace tprimat::logs
