#include "why/host_states.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tprimat::results {
namespace {

using logs::HostEvent;
using logs::HostEventKind;
using logs::IntervalSet;
using logs::Span;

bool contains_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// Waits for the device, allocates its memory, or copies from pageable memory, which waits too.
bool waits_or_allocates(std::string_view name) {
  return contains_any(name, {"Synchronize", "Malloc", "Free", "Memcpy", "MemAlloc", "WaitEvent"}) &&
         name.find("StreamWaitEvent") == std::string_view::npos;
}

bool collects_garbage(std::string_view name) {
  return contains_any(name, {"gc.collect", "garbage collect", "Garbage collect", "built-in function collect",
                             "built-in method collect"});
}

}  // namespace

std::optional<uint32_t> main_thread(const logs::Trace& trace) {
  const auto of_launcher = [&](const logs::GpuEvent& event) { return event.launcher < trace.host_events.size(); };
  const auto first = std::ranges::min_element(trace.events, {}, [&](const logs::GpuEvent& event) {
    return std::pair(!of_launcher(event), event.launched >= 0 ? event.launched : event.span.begin);
  });
  if (first != trace.events.end() && of_launcher(*first)) return trace.host_events[first->launcher].thread;
  std::map<uint32_t, int64_t> operations;
  for (const HostEvent& event : trace.host_events)
    if (event.kind == HostEventKind::operation && event.collective == logs::k_none) ++operations[event.thread];
  const auto most = std::ranges::max_element(operations, {}, [](const auto& each) { return each.second; });
  return most == operations.end() ? std::nullopt : std::optional(most->first);
}

HostStates::HostStates(const logs::Trace& trace) : main_(main_thread(trace)) {
  enum Kind : uint8_t { nothing, collection, synchronisation };
  std::vector<Kind> kinds(trace.names.size(), nothing);
  for (size_t i = 0; i < kinds.size(); ++i)
    kinds[i] = collects_garbage(trace.names[i])     ? collection
               : waits_or_allocates(trace.names[i]) ? synchronisation
                                                    : nothing;
  struct Spans {
    std::vector<Span> data, collection, synchronisation;
  };
  std::vector<Spans> spans;
  for (const HostEvent& event : trace.host_events) {
    const Kind kind = event.name < kinds.size() ? kinds[event.name] : nothing;
    const bool waits = kind == synchronisation && event.kind == HostEventKind::runtime;
    if (event.phase != logs::Phase::data && kind != collection && !waits) continue;
    if (event.thread >= spans.size()) spans.resize(event.thread + size_t{1});
    Spans& thread = spans[event.thread];
    (event.phase == logs::Phase::data ? thread.data
     : waits                          ? thread.synchronisation
                                      : thread.collection)
        .push_back(event.span);
  }
  for (Spans& each : spans)
    threads_.push_back(
        {unite(std::move(each.data)), unite(std::move(each.collection)), unite(std::move(each.synchronisation))});
}

std::vector<Piece> HostStates::split(const Span& gap, std::optional<uint32_t> thread, uint32_t event) const {
  std::vector<Piece> pieces;
  IntervalSet rest;
  if (gap.length() > 0) rest.push_back(gap);
  const auto take = [&](IntervalSet Thread::*state, Moment moment) {
    if (rest.empty()) return;
    IntervalSet found;
    for (const auto& each : {thread, main_})
      if (each && *each < threads_.size()) found = unite(found, clip(threads_[*each].*state, gap));
    if (found.empty()) return;
    const IntervalSet left = subtract(rest, found);
    for (const Span& span : subtract(rest, left)) pieces.push_back({span, moment, event});
    rest = left;
  };
  take(&Thread::data, Moment::data);
  take(&Thread::collection, Moment::collection);
  take(&Thread::synchronisation, Moment::synchronisation);
  for (const Span& span : rest) pieces.push_back({span, Moment::host, event});
  std::ranges::sort(pieces, {}, [](const Piece& piece) { return piece.span.begin; });
  return pieces;
}

std::vector<HostStretch> innermost_events(const logs::Trace& trace,
                                          const std::function<bool(const HostEvent&)>& is_chosen) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < trace.host_events.size(); ++i)
    if (trace.host_events[i].span.length() > 0 && is_chosen(trace.host_events[i])) order.push_back(i);
  const auto key = [&](uint32_t i) {
    const HostEvent& event = trace.host_events[i];
    return std::tuple(event.thread, event.span.begin, -event.span.end, i);
  };
  std::ranges::sort(order, {}, key);
  struct Open {
    uint32_t event;
    int64_t end, from;  // from: the innermost time not handed out yet
    bool encloses;
  };
  std::vector<HostStretch> stretches;
  std::vector<Open> stack;
  const auto close = [&] {
    const Open top = stack.back();
    stack.pop_back();
    if (top.from < top.end) stretches.push_back({{top.from, top.end}, top.event, top.encloses});
    if (!stack.empty()) stack.back().from = std::max(stack.back().from, top.end);
  };
  uint32_t thread = 0;
  for (const uint32_t i : order) {
    const HostEvent& event = trace.host_events[i];
    while (!stack.empty() && (event.thread != thread || stack.back().end <= event.span.begin)) close();
    thread = event.thread;
    int64_t end = event.span.end;
    if (!stack.empty()) {
      Open& outer = stack.back();
      if (outer.from < event.span.begin) stretches.push_back({{outer.from, event.span.begin}, outer.event, true});
      outer.encloses = true;
      outer.from = event.span.begin;
      end = std::min(end, outer.end);
    }
    stack.push_back({i, end, event.span.begin, false});
  }
  while (!stack.empty()) close();
  return stretches;
}

}  // namespace tprimat::results
