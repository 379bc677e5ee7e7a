#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trace/intervals.h"

namespace tprimat::results {

// Something that runs for a while; of several at once the one of lowest rank has the moment, then the earlier begun.
struct SweepItem {
  logs::Span span;
  uint32_t event = 0;
  uint8_t rank = 0;
};

// Hands out [window.begin, window.end) in order, without overlap: stretches of an item, and gaps with the item that
// ends them (null at the window's end). O(n log n); items in any order.
struct SweepVisitor {
  std::function<void(const logs::Span&, const SweepItem&)> item;
  std::function<void(const logs::Span&, const SweepItem*)> gap;
};
void sweep(std::vector<SweepItem> items, const logs::Span& window, const SweepVisitor& visit);

}  // namespace tprimat::results
