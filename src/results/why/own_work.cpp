#include "why/own_work.h"

#include <algorithm>
#include <set>

#include "stats/descriptive.h"
#include "trace/kernel_classes.h"
#include "why/collective_calls.h"
#include "why/host_states.h"

namespace tprimat::results {
namespace {

using logs::HostEvent;
using logs::HostEventKind;
using logs::Span;
using logs::StepMark;
using logs::Trace;

constexpr size_t k_max_entries = 5;
constexpr double k_min_part = 0.05;  // of the longest: less is noise

// The spans in which own work counts.
logs::IntervalSet windows_of(const Trace& trace) {
  std::vector<Span> spans;
  for (const StepMark& mark : dividing_marks(trace)) spans.push_back(mark.span);
  if (!spans.empty()) return logs::unite(std::move(spans));
  Span all{INT64_MAX, INT64_MIN};
  const auto extend = [&](const Span& span) { all = {std::min(all.begin, span.begin), std::max(all.end, span.end)}; };
  for (const auto& event : trace.events) extend(event.span);
  for (const auto& event : trace.host_events) extend(event.span);
  return all.begin < all.end ? logs::IntervalSet{all} : logs::IntervalSet{};
}

int64_t inside(const logs::IntervalSet& windows, const Span& span) { return logs::measure(logs::clip(windows, span)); }

bool is_counted(const Trace& trace, const HostEvent& event) {
  if (event.kind != HostEventKind::operation && event.kind != HostEventKind::annotation) return false;
  return !trace.names[event.name].starts_with("ProfilerStep#");
}

class Sums {
 public:
  Sums(const Trace& trace, const logs::IntervalSet& windows) : trace_(trace), windows_(windows) {
    for (const std::string& name : trace.names) {
      kernel_communicates_.push_back(logs::classify_kernel(name) == logs::KernelClass::collective);
      operation_communicates_.push_back(logs::classify_operation(name) == logs::KernelClass::collective);
    }
  }

  void add_gpu() {
    for (const auto& event : trace_.events) {
      const bool is_kernel = event.kind == logs::GpuEventKind::kernel;
      if (event.collective != logs::k_none || (is_kernel && kernel_communicates_[event.name])) continue;
      const bool known = event.launcher < trace_.host_events.size();
      nanoseconds_[trace_.names[known ? trace_.host_events[event.launcher].name : event.name]] +=
          inside(windows_, event.span);
    }
  }

  // Each thread's operations, less what they contain.
  void add_host() {
    const auto counts = [this](const HostEvent& event) { return is_counted(trace_, event); };
    for (const HostStretch& each : innermost_events(trace_, counts))
      add(trace_.host_events[each.event], inside(windows_, each.span));
  }

  // What no thread and no stream accounts for.
  void add_rest() {
    std::vector<Span> known;
    for (const auto& event : trace_.events) known.push_back(event.span);
    for (const HostEvent& event : trace_.host_events)
      if (trace_.events.empty() && is_counted(trace_, event)) known.push_back(event.span);
    const int64_t rest = logs::measure(logs::subtract(windows_, logs::unite(std::move(known))));
    nanoseconds_[trace_.events.empty() ? "no recorded operation" : "idle GPU"] += rest;
  }

  const std::map<std::string, int64_t>& nanoseconds() const { return nanoseconds_; }

 private:
  void add(const HostEvent& event, int64_t length) {
    const bool is_collective = event.collective != logs::k_none || operation_communicates_[event.name];
    const bool on_gpu = !trace_.events.empty() && event.phase != logs::Phase::data;  // the GPU's work counts there
    if (!is_collective && !on_gpu) nanoseconds_[trace_.names[event.name]] += length;
  }

  const Trace& trace_;
  const logs::IntervalSet& windows_;
  std::vector<bool> kernel_communicates_, operation_communicates_;  // by name
  std::map<std::string, int64_t> nanoseconds_;
};

}  // namespace

RecordedSteps recorded_steps(const Trace& trace) {
  const logs::IntervalSet windows = windows_of(trace);
  const auto count = static_cast<double>(std::max<size_t>(1, dividing_marks(trace).size()));
  return {count, static_cast<double>(logs::measure(windows)) / 1e9 / count};
}

std::map<std::string, double> own_work(const Trace& trace) {
  const logs::IntervalSet windows = windows_of(trace);
  Sums sums(trace, windows);
  sums.add_gpu();
  sums.add_host();
  sums.add_rest();
  const double steps = recorded_steps(trace).count;
  std::map<std::string, double> seconds;
  for (const auto& [name, nanoseconds] : sums.nanoseconds())
    seconds[name] = static_cast<double>(nanoseconds) / 1e9 / steps;
  return seconds;
}

std::vector<LongerWork> find_longer_work(std::span<const Trace> ranks, size_t late) {
  std::vector<std::map<std::string, double>> work;
  std::set<std::string> names;
  for (const Trace& trace : ranks) {
    work.push_back(own_work(trace));
    for (const auto& [name, seconds] : work.back()) names.insert(name);
  }
  const auto seconds_of = [&](size_t rank, const std::string& name) {
    const auto found = work[rank].find(name);
    return found == work[rank].end() ? 0.0 : found->second;
  };
  std::vector<LongerWork> longer;
  for (const std::string& name : names) {
    std::vector<double> others;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (rank != late) others.push_back(seconds_of(rank, name));
    const double typical = median(others);
    if (seconds_of(late, name) > typical) longer.push_back({name, seconds_of(late, name) - typical, typical});
  }
  std::stable_sort(longer.begin(), longer.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  std::erase_if(longer, [&](const LongerWork& each) { return each.seconds < k_min_part * longer.front().seconds; });
  if (longer.size() > k_max_entries) longer.resize(k_max_entries);
  return longer;
}

}  // namespace tprimat::results
