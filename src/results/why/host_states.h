#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "trace/trace.h"
#include "why/step_pieces.h"

namespace tprimat::results {

// What the threads of a process did while nothing ran.
class HostStates {
 public:
  explicit HostStates(const logs::Trace& trace);

  // The gap as pieces in time's order, each with `event`: data before collection before synchronisation, of the given
  // thread and of the main one; the rest is the host's. Absent thread: the main one alone.
  std::vector<Piece> split(const logs::Span& gap, std::optional<uint32_t> thread, uint32_t event) const;

 private:
  struct Thread {
    logs::IntervalSet data, collection, synchronisation;
  };
  std::vector<Thread> threads_;
  std::optional<uint32_t> main_;
};

// The thread that runs the steps: it launches the first work, without a GPU it runs the most operations.
std::optional<uint32_t> main_thread(const logs::Trace& trace);

// A stretch of a thread's time with the innermost event of that moment.
struct HostStretch {
  logs::Span span;
  uint32_t event = 0;     // of host_events
  bool encloses = false;  // the event has others within
};

// Of all threads' chosen events. An event that outlives the one around it ends with it.
std::vector<HostStretch> innermost_events(const logs::Trace& trace,
                                          const std::function<bool(const logs::HostEvent&)>& is_chosen);

}  // namespace tprimat::results
