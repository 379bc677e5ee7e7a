#include "trace/intervals.h"

#include <algorithm>

namespace tprimat::logs {

IntervalSet unite(std::vector<Span> spans) {
  std::erase_if(spans, [](const Span& span) { return span.end <= span.begin; });
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  IntervalSet set;
  for (const Span& span : spans) {
    if (!set.empty() && span.begin <= set.back().end)
      set.back().end = std::max(set.back().end, span.end);
    else
      set.push_back(span);
  }
  return set;
}

IntervalSet unite(const IntervalSet& a, const IntervalSet& b) {
  std::vector<Span> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return unite(std::move(both));
}

IntervalSet subtract(const IntervalSet& from, const IntervalSet& what) {
  IntervalSet rest;
  auto hole = what.begin();
  for (Span span : from) {
    while (hole != what.end() && hole->end <= span.begin) ++hole;
    for (auto each = hole; each != what.end() && each->begin < span.end; ++each) {
      if (each->begin > span.begin) rest.push_back({span.begin, each->begin});
      span.begin = std::min(std::max(span.begin, each->end), span.end);
      if (each->end <= span.end) hole = each + 1;  // it ends here, so no later span can overlap it
    }
    if (span.begin < span.end) rest.push_back(span);
  }
  return rest;
}

IntervalSet clip(const IntervalSet& set, const Span& window) {
  IntervalSet inside;
  auto span = std::partition_point(set.begin(), set.end(), [&](const Span& each) { return each.end <= window.begin; });
  for (; span != set.end() && span->begin < window.end; ++span)
    inside.push_back({std::max(span->begin, window.begin), std::min(span->end, window.end)});
  return inside;
}

int64_t measure(const IntervalSet& set) {
  int64_t total = 0;
  for (const Span& span : set) total += span.length();
  return total;
}

}  // namespace tprimat::logs
