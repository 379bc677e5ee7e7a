#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "trace/trace.h"

namespace tprimat::test {

// A trace in the making: the processor's operations one after the other, with step marks. Times are milliseconds.
class RankTrace {
 public:
  explicit RankTrace(int64_t rank, double clock = 0) : now_(clock) { trace_.rank = rank; }

  RankTrace& begin_step(int64_t step) {
    trace_.marks.push_back({step, {}, {nanoseconds(now_), nanoseconds(now_)}});
    return *this;
  }
  RankTrace& end_step() {
    trace_.marks.back().span.end = nanoseconds(now_);
    return *this;
  }
  RankTrace& idle(double length) {
    now_ += length;
    return *this;
  }
  RankTrace& work(std::string_view name, double length) {
    add(name, length);
    return *this;
  }
  RankTrace& collective(std::string_view operation, std::string_view group, int64_t size, double length,
                        int64_t bytes = 1024) {
    const logs::CollectiveCall call{std::string(operation), std::string(group), bytes, size};
    const auto known = std::find(trace_.collectives.begin(), trace_.collectives.end(), call);
    const auto index = static_cast<uint32_t>(known - trace_.collectives.begin());
    if (known == trace_.collectives.end()) trace_.collectives.push_back(call);
    add(operation, length).collective = index;
    return *this;
  }

  const logs::Trace& trace() const { return trace_; }

 private:
  static int64_t nanoseconds(double milliseconds) { return static_cast<int64_t>(milliseconds * 1e6); }

  logs::HostEvent& add(std::string_view name, double length) {
    const auto known = std::find(trace_.names.begin(), trace_.names.end(), name);
    logs::HostEvent event;
    event.name = static_cast<uint32_t>(known - trace_.names.begin());
    if (known == trace_.names.end()) trace_.names.emplace_back(name);
    event.span = {nanoseconds(now_), nanoseconds(now_ + length)};
    now_ += length;
    trace_.host_events.push_back(event);
    return trace_.host_events.back();
  }

  logs::Trace trace_;
  double now_;
};

}  // namespace tprimat::test
