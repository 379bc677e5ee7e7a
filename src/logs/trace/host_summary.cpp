#include "trace/host_summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "trace/nesting.h"

namespace tprimat::logs {
namespace {

double to_seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

struct OwnTime {
  int64_t calls = 0, nanoseconds = 0;
};

// Own time by name. The time of an event's children is subtracted from it.
std::map<uint32_t, OwnTime> total_names(const std::vector<HostEvent>& events) {
  std::vector<int64_t> own(events.size());
  const auto order = order_by_nesting(events, [](const HostEvent&) { return true; });
  each_nested(events, order, [&](uint32_t i, const std::vector<uint32_t>& open) {
    own[i] = events[i].span.length();
    if (open.empty()) return;
    const HostEvent& outer = events[open.back()];  // an event that ends after it counts only up to that end
    own[open.back()] -= std::min(outer.span.end, events[i].span.end) - events[i].span.begin;
  });
  std::map<uint32_t, OwnTime> totals;
  for (size_t i = 0; i < events.size(); ++i) {
    OwnTime& total = totals[events[i].name];
    ++total.calls;
    total.nanoseconds += std::max<int64_t>(own[i], 0);
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
  HostSummary summary;
  std::vector<Span> spans;
  for (const HostEvent& event : trace.host_events) {
    summary.threads = std::max<int64_t>(summary.threads, event.thread + int64_t{1});
    spans.push_back(event.span);
  }
  const auto first = std::min_element(spans.begin(), spans.end(), [](Span a, Span b) { return a.begin < b.begin; });
  const auto last = std::max_element(spans.begin(), spans.end(), [](Span a, Span b) { return a.end < b.end; });
  summary.span_seconds = to_seconds(last->end - first->begin);
  const IntervalSet busy = unite(std::move(spans));
  summary.busy_seconds = to_seconds(measure(busy));
  add_totals(trace, total_names(trace.host_events), summary);
  add_steps(trace, busy, summary);
  return summary;
}

}  // namespace tprimat::logs
