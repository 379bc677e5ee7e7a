#include "why/sweep.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace tprimat::results {

void sweep(std::vector<SweepItem> items, const logs::Span& window, const SweepVisitor& visit) {
  std::erase_if(items, [&](const SweepItem& item) {
    return item.span.length() <= 0 || item.span.end <= window.begin || item.span.begin >= window.end;
  });
  const auto order = [](const SweepItem& item) { return std::tuple(item.span.begin, item.rank, item.event); };
  std::ranges::sort(items, {}, order);
  const auto later = [](const SweepItem* a, const SweepItem* b) {
    return std::tuple(a->rank, a->span.begin, a->event) > std::tuple(b->rank, b->span.begin, b->event);
  };
  std::priority_queue<const SweepItem*, std::vector<const SweepItem*>, decltype(later)> running(later);
  size_t next = 0;
  for (int64_t now = window.begin; now < window.end;) {
    while (next < items.size() && items[next].span.begin <= now) running.push(&items[next++]);
    while (!running.empty() && running.top()->span.end <= now) running.pop();
    int64_t until = next < items.size() ? items[next].span.begin : window.end;
    if (running.empty()) {
      visit.gap({now, until}, next < items.size() ? &items[next] : nullptr);
    } else {
      until = std::min({until, running.top()->span.end, window.end});
      visit.item({now, until}, *running.top());
    }
    now = until;
  }
}

}  // namespace tprimat::results
