#include "extract/course.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tprimat::logs {
namespace {

std::optional<int64_t> sum_of_counters(const Course& course) {
  constexpr double k_max_skipped = 1e12;  // a broken counter
  std::optional<int64_t> sum;
  for (const ExtractedStep* step : course)
    if (step->skipped_updates.finite() && *step->skipped_updates >= 0 && *step->skipped_updates < k_max_skipped)
      sum = sum.value_or(0) + std::llround(*step->skipped_updates);
  return sum;
}

// An event belongs to the next record in the log. A restart that drops the record drops the event too.
int64_t count_events(const Course& course, const ExtractedLog& log) {
  const std::set<const ExtractedStep*> kept(course.begin(), course.end());
  int64_t events = 0;
  size_t next = 0;
  for (const LogEvent& event : log.events) {
    if (event.kind != EventKind::skipped_update) continue;
    while (next < log.steps.size() && log.steps[next].line < event.line) ++next;
    events += next == log.steps.size() || kept.contains(&log.steps[next]) ? 1 : 0;
  }
  return events;
}

}  // namespace

Course final_course(const ExtractedLog& log) {
  Course course;
  for (const ExtractedStep& step : log.steps) {
    while (!course.empty() && course.back()->step >= step.step) course.pop_back();
    course.push_back(&step);
  }
  return course;
}

std::optional<int64_t> stated_tokens(const Course& course) {
  std::optional<int64_t> tokens;
  for (const ExtractedStep* step : course) {
    if (!step->tokens.finite() || *step->tokens < 1 || *step->tokens > 1e15) return std::nullopt;
    const auto each = static_cast<int64_t>(*step->tokens);
    if (tokens && *tokens != each) return std::nullopt;
    tokens = each;
  }
  return tokens;
}

std::optional<int64_t> count_skipped_updates(const Course& course, const ExtractedLog& log) {
  if (course.empty()) return std::nullopt;
  const auto sum = sum_of_counters(course);  // Megatron-DeepSpeed's stays 0 while DeepSpeed skips
  const auto all = log.event_counts.find(EventKind::skipped_update);
  if (sum.value_or(0) > 0 || all == log.event_counts.end() || all->second == 0) return sum;
  return course.size() == log.steps.size() ? all->second : count_events(course, log);
}

}  // namespace tprimat::logs
