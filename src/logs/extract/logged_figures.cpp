#include "extract/logged_figures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "extract/logged_routing.h"
#include "result/summary.h"

namespace tprimat::logs {
namespace {

void raise(std::optional<double>& kept, const std::vector<double>& values) {
  for (const double value : values)
    if (std::isfinite(value)) kept = std::max(kept.value_or(0), value);
}

std::optional<int64_t> known_number(int64_t number) {
  return number >= 0 ? std::optional<int64_t>(number) : std::nullopt;
}

int64_t first_step(const ReadLog& read) { return read.dialect != nullptr ? read.dialect->counts_from : 1; }

// Step k at place k - first. Of a step that was reported again after a restart the last report counts; a step that the
// log lacks has no figures.
std::vector<ExtractedStep> place_steps(const ReadLog& read, size_t count, int64_t first) {
  std::vector<ExtractedStep> placed(count);
  for (size_t i = 0; i < count; ++i) placed[i].step = static_cast<int64_t>(i) + first;
  for (const ExtractedStep& step : read.log.steps) {
    const int64_t number = step.step - first_step(read) + 1;
    if (number < first || number >= first + static_cast<int64_t>(count)) continue;
    ExtractedStep& place = placed[static_cast<size_t>(number - first)];
    place = step;
    place.step = number;
  }
  return placed;
}

// The records have the loss scale and the time at which each step ended.
void add_rates(RunResult& result, const Course& course) {
  ReportedFigures figures = reported_figures(course);
  if (result.reported) figures.unix_time = result.reported->unix_time, figures.loss_scale = result.reported->loss_scale;
  result.reported = std::move(figures);
}

// A step without a time makes the run invalid; `steps` would excuse it, as in a log that reports every tenth step.
void label_steps(RunResult& result, const Course& course) {
  if (std::ranges::all_of(result.step_times, is_valid_step_time)) number_steps(result, course, 1);
}

void add_events(RunResult& result, const ReadLog& read, const Course& course) {
  fill_events(result, read.log);
  if (result.events)
    for (RunEvent& event : *result.events)
      if (event.step) *event.step += 1 - first_step(read);
  if (read.dialect == nullptr || read.dialect->one_optimizer)
    result.skipped_updates = count_skipped_updates(course, read.log);
}

}  // namespace

void fill_memory(RunResult& result, const ExtractedLog& log, const Course& course) {
  MemoryMetrics& memory = result.memory_metrics;
  if (!log.memory_gb.empty()) result.memory_by_rank.emplace();
  for (const auto& [key, gb] : log.memory_gb) result.memory_by_rank->push_back({known_number(key.rank), key.kind, gb});
  raise_peaks_of_ranks(result);
  const auto held = all_series(course, std::array{&ExtractedStep::memory_reserved_gb, &ExtractedStep::memory_used_gb});
  raise(memory.peak_memory_reserved_gb, held[0]);
  raise(memory.peak_device_used_gb, held[1]);
  const bool any = memory.peak_memory_allocated_gb || memory.peak_memory_reserved_gb || memory.peak_device_used_gb ||
                   !result.memory_values.empty();
  if (any) memory.measurement_method = "as the log reports it";
}

void fill_events(RunResult& result, const ExtractedLog& log) {
  if (log.events.empty()) return;
  result.events.emplace();
  for (const LogEvent& event : log.events)
    result.events->push_back({event.kind, event.line, known_number(event.step), known_number(event.rank),
                              event.seconds.to_optional(), event.value.to_optional(), event.text});
  result.event_counts = log.event_counts;
}

void add_logged_figures(RunResult& result, const ReadLog& read) {
  const int64_t first = result.training_config.loaded_step.value_or(0) + 1;
  const std::vector<ExtractedStep> placed = place_steps(read, result.step_times.size(), first);
  Course course;
  for (const ExtractedStep& step : placed) course.push_back(&step);
  add_rates(result, course);
  fill_experts(result, read.log.facts, read.log.settings, course);
  label_steps(result, course);
  fill_memory(result, read.log, course);
  add_events(result, read, final_course(read.log));
  for (const std::string& note : read.log.notes) add_warning(result, note);
}

}  // namespace tprimat::logs
