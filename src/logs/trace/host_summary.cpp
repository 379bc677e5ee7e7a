#include "trace/host_summary.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tprimat::logs {
namespace {

double to_seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

struct OwnTime {
  int64_t calls = 0, nanoseconds = 0;
};

// Events of one thread by begin, an outer one before those within it. The time of an event's children is subtracted
// from it.
std::vector<int64_t> own_times(const std::vector<HostEvent>& events) {
  std::vector<int64_t> own;
  std::vector<size_t> open;
  for (size_t i = 0; i < events.size(); ++i) {
    while (!open.empty() && events[open.back()].span.end <= events[i].span.begin) open.pop_back();
    own.push_back(events[i].span.length());
    if (!open.empty()) {  // an event that ends after its outer one counts only up to that end
      const HostEvent& outer = events[open.back()];
      own[open.back()] -= std::min(outer.span.end, events[i].span.end) - events[i].span.begin;
    }
    open.push_back(i);
  }
  return own;
}

std::vector<HostEvent> by_thread(std::vector<HostEvent> events) {
  std::sort(events.begin(), events.end(), [](const HostEvent& a, const HostEvent& b) {
    return std::tuple(a.thread, a.span.begin, -a.span.end) < std::tuple(b.thread, b.span.begin, -b.span.end);
  });
  return events;
}

// Own time by name.
std::map<uint32_t, OwnTime> total_names(const std::vector<HostEvent>& events) {
  std::map<uint32_t, OwnTime> totals;
  for (auto begin = events.begin(); begin != events.end();) {
    const auto end = std::find_if(begin, events.end(), [&](const HostEvent& e) { return e.thread != begin->thread; });
    const std::vector<HostEvent> thread(begin, end);
    const std::vector<int64_t> own = own_times(thread);
    for (size_t i = 0; i < thread.size(); ++i) {
      OwnTime& total = totals[thread[i].name];
      ++total.calls;
      total.nanoseconds += std::max<int64_t>(own[i], 0);
    }
    begin = end;
  }
  return totals;
}

void add_totals(const Trace& trace, const std::map<uint32_t, OwnTime>& names, HostSummary& summary) {
  std::map<KernelClass, OwnTime> classes;
  int64_t sum = 0;
  for (const auto& [name, total] : names) {
    const KernelClass kernel_class = class_of_operation(trace, name);
    summary.operations.push_back({trace.names[name], kernel_class, total.calls, to_seconds(total.nanoseconds), 0.0});
    classes[kernel_class].calls += total.calls;
    classes[kernel_class].nanoseconds += total.nanoseconds;
    summary.calls += total.calls;
    sum += total.nanoseconds;
  }
  for (const auto& [kernel_class, total] : classes)
    summary.classes.push_back({kernel_class, total.calls, to_seconds(total.nanoseconds), 0.0});
  share_out(summary.operations, to_seconds(sum));
  share_out(summary.classes, to_seconds(sum));
}

void add_steps(const Trace& trace, const IntervalSet& busy, HostSummary& summary) {
  for (const StepMark& mark : trace.marks)
    if (!mark.device)
      summary.steps.push_back({mark.step, to_seconds(mark.span.length()), to_seconds(measure(clip(busy, mark.span)))});
  std::stable_sort(summary.steps.begin(), summary.steps.end(),
                   [](const HostStep& a, const HostStep& b) { return a.step < b.step; });
}

}  // namespace

KernelClass class_of_operation(const Trace& trace, uint32_t name) {
  const auto stated = trace.stated_classes.find(name);
  if (stated != trace.stated_classes.end())
    if (const auto known = parse_enum<KernelClass>(stated->second); known && *known != KernelClass::other)
      return *known;
  return classify_operation(trace.names[name]);
}

std::optional<HostSummary> summarise_host(const Trace& trace) {
  if (trace.host_events.empty()) return std::nullopt;
  const std::vector<HostEvent> events = by_thread(trace.host_events);
  HostSummary summary;
  summary.threads = static_cast<int64_t>(events.back().thread) + 1;
  std::vector<Span> spans;
  for (const HostEvent& event : events) spans.push_back(event.span);
  const auto first = std::min_element(spans.begin(), spans.end(), [](Span a, Span b) { return a.begin < b.begin; });
  const auto last = std::max_element(spans.begin(), spans.end(), [](Span a, Span b) { return a.end < b.end; });
  summary.span_seconds = to_seconds(last->end - first->begin);
  const IntervalSet busy = unite(std::move(spans));
  summary.busy_seconds = to_seconds(measure(busy));
  add_totals(trace, total_names(events), summary);
  add_steps(trace, busy, summary);
  return summary;
}

}  // namespace tprimat::logs
