#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "trace/trace.h"

namespace tprimat::logs {

// Indices of the host events that keep(event) accepts, thread by thread and by begin; an outer event stands before
// those within it, and an operation before a call of the same time.
template <class Keep>
std::vector<uint32_t> order_by_nesting(const std::vector<HostEvent>& events, Keep&& keep) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < events.size(); ++i)
    if (keep(events[i])) order.push_back(i);
  const auto key = [&](uint32_t i) {
    const HostEvent& event = events[i];
    return std::tuple(event.thread, event.span.begin, -event.span.end, event.kind == HostEventKind::runtime);
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  return order;
}

// visit(event, open) for every event in that order, with those that are open around it on its thread, the outermost
// first.
template <class Visit>
void each_nested(const std::vector<HostEvent>& events, const std::vector<uint32_t>& order, Visit&& visit) {
  std::vector<uint32_t> open;
  for (const uint32_t i : order) {
    while (!open.empty() &&
           (events[open.back()].thread != events[i].thread || events[open.back()].span.end <= events[i].span.begin))
      open.pop_back();
    visit(i, open);
    open.push_back(i);
  }
}

}  // namespace tprimat::logs
