#include "trace/trace_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"

namespace tprimat::logs {
namespace {

constexpr double k_nanoseconds = 1e9;  // of a second
constexpr size_t k_max_devices = 128;  // of one process; beyond any machine

// The three sets that the header defines; disjoint spans in order.
struct DeviceSets {
  IntervalSet compute, communication, copy;
};

// One device's events, and the classes of their names.
struct DeviceView {
  const Trace& trace;
  const std::vector<KernelClass>& classes;  // by name
  std::vector<GpuEvent> events;

  KernelClass class_of(const GpuEvent& event) const {
    return event.kind == GpuEventKind::kernel ? classes[event.name] : KernelClass::copy;
  }
};

DeviceSets sets_of(const DeviceView& view) {
  std::vector<Span> compute, communication, copy;
  for (const GpuEvent& event : view.events) {
    const bool is_collective = view.class_of(event) == KernelClass::collective;
    (event.kind != GpuEventKind::kernel ? copy : is_collective ? communication : compute).push_back(event.span);
  }
  return {unite(std::move(compute)), unite(std::move(communication)), unite(std::move(copy))};
}

DeviceSets clip(const DeviceSets& sets, const Span& window) {
  return {clip(sets.compute, window), clip(sets.communication, window), clip(sets.copy, window)};
}

Timeline timeline_of(const DeviceSets& sets, const Span& window) {
  const auto seconds = [](int64_t nanoseconds) { return static_cast<double>(nanoseconds) / k_nanoseconds; };
  const IntervalSet kernels = unite(sets.compute, sets.communication);
  const int64_t busy = measure(unite(kernels, sets.copy));
  Timeline timeline;
  timeline.span_seconds = seconds(window.length());
  timeline.busy_seconds = seconds(busy);
  timeline.idle_seconds = seconds(window.length() - busy);
  timeline.compute_seconds = seconds(measure(sets.compute));
  timeline.communication_seconds = seconds(measure(sets.communication));
  timeline.exposed_communication_seconds = seconds(measure(subtract(sets.communication, sets.compute)));
  timeline.copy_seconds = seconds(measure(sets.copy));
  timeline.exposed_copy_seconds = seconds(measure(subtract(sets.copy, kernels)));
  return timeline;
}

// Counts and sums of durations, of a class or of a kernel.
struct Tally {
  int64_t calls = 0;
  double nanoseconds = 0.0;  // exact up to 104 days
  void add(const GpuEvent& event) {
    ++calls;
    nanoseconds += static_cast<double>(event.span.length());
  }
  double seconds() const { return nanoseconds / k_nanoseconds; }
};

template <class Total>
double sum_seconds(const std::vector<Total>& totals) {
  double sum = 0.0;
  for (const Total& total : totals) sum += total.total_seconds;
  return sum;
}

// Of the events from `begin` to `end`.
template <class Iterator>
std::vector<ClassTotal> total_classes(const DeviceView& view, Iterator begin, Iterator end) {
  std::array<Tally, std::size(EnumNames<KernelClass>::values)> tallies;
  for (auto event = begin; event != end; ++event) tallies[static_cast<size_t>(view.class_of(*event))].add(*event);
  std::vector<ClassTotal> totals;
  for (size_t i = 0; i < tallies.size(); ++i)
    if (tallies[i].calls > 0)
      totals.push_back({static_cast<KernelClass>(i), tallies[i].calls, tallies[i].seconds(), 0.0});
  share_out(totals, sum_seconds(totals));
  return totals;
}

std::vector<KernelTotal> total_kernels(const DeviceView& view) {
  std::map<std::pair<uint32_t, KernelClass>, Tally> tallies;
  for (const GpuEvent& event : view.events) tallies[{event.name, view.class_of(event)}].add(event);
  std::vector<KernelTotal> totals;
  for (const auto& [key, tally] : tallies)
    totals.push_back({view.trace.names[key.first], key.second, tally.calls, tally.seconds(), 0.0});
  share_out(totals, sum_seconds(totals));
  return totals;
}

// The marks of this device or, where it has none, those of the host; by begin.
std::vector<StepMark> marks_of(const Trace& trace, int32_t device) {
  std::vector<StepMark> own, host;
  for (const StepMark& mark : trace.marks) {
    if (mark.device == device) own.push_back(mark);
    if (!mark.device) host.push_back(mark);
  }
  std::vector<StepMark>& marks = own.empty() ? host : own;
  std::stable_sort(marks.begin(), marks.end(),
                   [](const StepMark& a, const StepMark& b) { return a.span.begin < b.span.begin; });
  return marks;
}

void summarise_steps(const DeviceView& view, const DeviceSets& sets, int32_t device, DeviceSummary& summary) {
  const std::vector<StepMark> marks = marks_of(view.trace, device);
  if (marks.empty()) return;
  summary.step_marks = marks.front().device ? "device" : "host";
  const auto first_from = [&](int64_t time) {
    return std::partition_point(view.events.begin(), view.events.end(),
                                [time](const GpuEvent& event) { return event.span.begin < time; });
  };
  for (const StepMark& mark : marks)
    summary.steps.push_back({mark.step, timeline_of(clip(sets, mark.span), mark.span),
                             total_classes(view, first_from(mark.span.begin), first_from(mark.span.end))});
}

DeviceSummary summarise_device(DeviceView& view, int32_t device) {
  std::sort(view.events.begin(), view.events.end(),
            [](const GpuEvent& a, const GpuEvent& b) { return a.span.begin < b.span.begin; });
  Span window{view.events.front().span.begin, view.events.front().span.end};
  for (const GpuEvent& event : view.events) window.end = std::max(window.end, event.span.end);
  Tally kernels;
  for (const GpuEvent& event : view.events)
    if (event.kind == GpuEventKind::kernel) kernels.add(event);
  const DeviceSets sets = sets_of(view);
  DeviceSummary summary;
  summary.device = device;
  summary.rank = view.trace.rank;
  summary.name = device_name(view.trace, device);
  summary.kernel_calls = kernels.calls;
  summary.kernel_seconds = kernels.seconds();
  summary.timeline = timeline_of(sets, window);
  summary.classes = total_classes(view, view.events.begin(), view.events.end());
  summary.kernels = total_kernels(view);
  summarise_steps(view, sets, device, summary);
  return summary;
}

}  // namespace

std::optional<std::string> device_name(const Trace& trace, int32_t device) {
  const auto own = trace.device_names.find(device);
  if (own != trace.device_names.end()) return own->second;
  for (const auto& [id, name] : trace.device_names)
    if (name != trace.device_names.begin()->second) return std::nullopt;
  return trace.device_names.empty() ? std::nullopt : std::optional(trace.device_names.begin()->second);
}

std::vector<DeviceSummary> summarise_trace(const Trace& trace, std::string_view where) {
  if (trace.events.empty())
    throw Error(Problem{fmt::format("holds no GPU work among its {} events", trace.all_events), std::string(where),
                        "let the profiler record the GPU: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"});
  std::vector<KernelClass> classes;
  for (const std::string& name : trace.names) classes.push_back(classify_kernel(name));
  std::map<int32_t, DeviceView> views;
  for (const GpuEvent& event : trace.events)
    views.try_emplace(event.device, DeviceView{trace, classes, {}}).first->second.events.push_back(event);
  if (views.size() > k_max_devices)
    throw Error(Problem{fmt::format("holds work of {} GPUs, more than one process can use", views.size()),
                        std::string(where), ""});
  std::vector<DeviceSummary> summaries;
  for (auto& [device, view] : views) summaries.push_back(summarise_device(view, device));
  return summaries;
}

void set_kernels(DeviceSummary& device, std::vector<KernelTotal> kernels) {
  std::map<KernelClass, ClassTotal> classes;
  for (const KernelTotal& kernel : kernels) {
    ClassTotal& total = classes[kernel.kernel_class];
    total.kernel_class = kernel.kernel_class;
    total.calls += kernel.calls;
    total.total_seconds += kernel.total_seconds;
  }
  for (const auto& [kernel_class, total] : classes) device.classes.push_back(total);
  const double sum = sum_seconds(kernels);
  device.kernels = std::move(kernels);
  share_out(device.classes, sum);
  share_out(device.kernels, sum);
}

}  // namespace tprimat::logs
