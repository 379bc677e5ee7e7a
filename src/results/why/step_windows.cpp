#include "why/step_windows.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace tprimat::results {
namespace {

using logs::StepMark;
using logs::Trace;

std::vector<StepMark> marks_of(const Trace& trace, std::optional<int32_t> device) {
  std::vector<StepMark> marks;
  for (const StepMark& mark : trace.marks)
    if (mark.device == device && mark.span.length() > 0) marks.push_back(mark);
  return marks;
}

// In their order; of several marks of one step the longest.
std::vector<StepMark> ordered(std::vector<StepMark> marks) {
  std::ranges::sort(marks, [](const StepMark& a, const StepMark& b) {
    return std::pair(a.step, -a.span.length()) < std::pair(b.step, -b.span.length());
  });
  const auto rest = std::ranges::unique(marks, {}, &StepMark::step);
  marks.erase(rest.begin(), rest.end());
  std::ranges::sort(marks, {}, [](const StepMark& mark) { return mark.span.begin; });
  return marks;
}

void check_marks(const std::vector<StepMark>& marks, std::string_view where) {
  if (marks.empty())
    throw Error({"the trace marks no steps, and its work does not repeat", std::string(where),
                 "call the profiler's step() after each step, or record with tprimat run --profile-steps 3"});
  for (size_t i = 0; i + 1 < marks.size(); ++i) {
    const int64_t overlap = marks[i].span.end - marks[i + 1].span.begin;
    if (overlap * 100 > marks[i].span.length())
      throw Error({fmt::format("steps {} and {} overlap by {:.3f} ms, so the trace's times are not those of a run",
                               marks[i].step, marks[i + 1].step, static_cast<double>(overlap) / 1e6),
                   std::string(where), "record the trace again"});
  }
}

// For each mark, the end of the last device work that was launched since its begin and before the next one's.
std::vector<int64_t> last_ends(const Trace& trace, const std::vector<StepMark>& marks, int32_t device) {
  std::vector<int64_t> ends(marks.size(), INT64_MIN);
  for (const logs::GpuEvent& event : trace.events) {
    if (event.device != device) continue;
    const int64_t launched = event.launched >= 0 ? event.launched : event.span.begin;
    const auto after = std::ranges::upper_bound(marks, launched, {}, [](const StepMark& m) { return m.span.begin; });
    if (after == marks.begin()) continue;
    const auto mark = after - marks.begin() - 1;
    if (launched <= marks[mark].span.end) ends[mark] = std::max(ends[mark], event.span.end);
  }
  return ends;
}

}  // namespace

std::optional<int32_t> busiest_device(const Trace& trace) {
  std::map<int32_t, int64_t> busy;
  for (const logs::GpuEvent& event : trace.events) busy[event.device] += event.span.length();
  const auto most = std::ranges::max_element(busy, {}, [](const auto& each) { return each.second; });
  return most == busy.end() ? std::nullopt : std::optional(most->first);
}

std::vector<StepWindow> find_windows(const Trace& trace, std::optional<int32_t> device, std::string_view where) {
  std::vector<StepMark> marks = ordered(marks_of(trace, std::nullopt));
  const bool of_host = !marks.empty();
  if (!of_host && device) marks = ordered(marks_of(trace, device));
  if (marks.empty()) marks = ordered(logs::find_steps(trace));
  check_marks(marks, where);
  const std::vector<int64_t> ends =
      device ? last_ends(trace, marks, *device) : std::vector<int64_t>(marks.size(), INT64_MIN);
  std::vector<StepWindow> windows;
  for (size_t i = 0; i < marks.size(); ++i) {
    const logs::Span& span = marks[i].span;
    const bool is_last = i + 1 == marks.size();
    const int64_t next = is_last ? INT64_MAX : marks[i + 1].span.begin;
    const bool is_followed = !is_last && (next - span.end) * 100 <= span.length();
    const int64_t end = is_followed || (!of_host && !is_last) ? next : std::min(next, std::max(span.end, ends[i]));
    // What the device's marks leave between them is idle time of the step.
    windows.push_back({marks[i].step, {span.begin, end}, of_host ? span.length() : end - span.begin});
  }
  return windows;
}

}  // namespace tprimat::results
