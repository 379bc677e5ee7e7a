#include <algorithm>
#include <map>
#include <vector>

#include "trace/kernel_classes.h"
#include "trace/trace.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_fewest_steps = 2;
constexpr size_t k_fewest_events = 8;  // of a step; fewer show nothing that repeats

// An event in the order of begin, part of an optimizer or not.
struct Work {
  Span span;
  bool is_optimizer = false;
};

// A stretch of work that ends with the optimizer.
struct Stretch {
  Span span;
  size_t count = 0;
};

// The most events between two events of an optimizer. Few lie between those of one step and many between those of two:
// half of this number separates the cases.
size_t longest_run(const std::vector<Work>& work) {
  size_t run = 0, longest = 0;
  bool begun = false;
  for (const Work& each : work) {
    if (each.is_optimizer && begun) longest = std::max(longest, run);
    begun = begun || each.is_optimizer;
    run = each.is_optimizer ? 0 : run + 1;
  }
  return longest;
}

std::vector<Stretch> cut_behind_optimizers(const std::vector<Work>& work) {
  const size_t separates = std::max<size_t>(longest_run(work) / 2, 1);
  std::vector<Stretch> stretches;
  Stretch open{{work.front().span.begin, 0}, 0};
  int64_t optimizer_end = -1;
  size_t run = 0;
  for (const Work& each : work) {
    run = each.is_optimizer ? 0 : run + 1;
    if (run == separates && optimizer_end >= 0) {
      open.span.end = std::max(optimizer_end, open.span.begin);
      open.count -= run - 1;
      stretches.push_back(open);
      open = {{open.span.end, 0}, run - 1};
      optimizer_end = -1;
    }
    ++open.count;
    if (each.is_optimizer) optimizer_end = std::max(optimizer_end, each.span.end);
  }
  if (optimizer_end >= 0) {
    open.span.end = std::max(optimizer_end, open.span.begin);
    open.count -= run;
    stretches.push_back(open);
  }
  return stretches;
}

// Drops steps that the recording cut, and others whose number of events is far from the median.
std::vector<Stretch> keep_similar(std::vector<Stretch> stretches) {
  if (stretches.size() < k_fewest_steps) return {};
  std::vector<size_t> counts;
  for (const Stretch& stretch : stretches) counts.push_back(stretch.count);
  std::nth_element(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2), counts.end());
  const size_t usual = counts[counts.size() / 2];
  const auto differs = [usual](const Stretch& s) { return s.count * 5 < usual * 4 || s.count * 4 > usual * 5; };
  const size_t before = stretches.size();
  std::erase_if(stretches, differs);
  const bool repeats = usual >= k_fewest_events && stretches.size() >= k_fewest_steps && stretches.size() * 2 > before;
  return repeats ? stretches : std::vector<Stretch>();
}

std::vector<StepMark> marks_of(std::vector<Work> work, std::optional<int32_t> device) {
  if (std::none_of(work.begin(), work.end(), [](const Work& each) { return each.is_optimizer; })) return {};
  std::stable_sort(work.begin(), work.end(), [](const Work& a, const Work& b) { return a.span.begin < b.span.begin; });
  std::vector<StepMark> marks;
  for (const Stretch& stretch : keep_similar(cut_behind_optimizers(work)))
    marks.push_back({static_cast<int64_t>(marks.size()) + 1, device, stretch.span});
  return marks;
}

std::vector<StepMark> find_on_device(const Trace& trace, int32_t device) {
  std::vector<bool> is_optimizer;
  for (const std::string& name : trace.names) is_optimizer.push_back(classify_kernel(name) == KernelClass::optimizer);
  std::vector<Work> work;
  for (const GpuEvent& event : trace.events)
    if (event.device == device && event.kind == GpuEventKind::kernel)
      work.push_back({event.span, is_optimizer[event.name]});
  return marks_of(std::move(work), device);
}

std::vector<StepMark> find_on_host(const Trace& trace) {
  std::vector<Work> work;
  for (const HostEvent& event : trace.host_events)
    if (event.kind == HostEventKind::operation || event.kind == HostEventKind::annotation)
      work.push_back({event.span, trace.names[event.name].starts_with("Optimizer.step")});
  return marks_of(std::move(work), std::nullopt);
}

}  // namespace

std::vector<StepMark> find_steps(const Trace& trace) {
  if (trace.events.empty()) return find_on_host(trace);
  std::map<int32_t, size_t> devices;
  for (const GpuEvent& event : trace.events) ++devices[event.device];
  const auto busiest = std::max_element(devices.begin(), devices.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return find_on_device(trace, busiest->first);
}

}  // namespace tprimat::logs
