#include "result/lost_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "result/summary.h"

namespace tprimat {
namespace {

// Entries whose loss or gradient is no number, as an event of the step says: without it the figure is only missing.
std::set<int64_t> nan_steps(const RunResult& result) {
  std::set<int64_t> told, steps;
  for (const RunEvent& event : result.events.value_or(std::vector<RunEvent>()))
    if (event.kind == "nan" && event.step) told.insert(*event.step);
  if (told.empty()) return steps;
  const auto is_nan = [](const std::vector<double>& values, size_t i) {
    return i < values.size() && std::isnan(values[i]);
  };
  for (size_t i = 0; i < result.step_times.size(); ++i)
    if (is_nan(result.loss_values, i) || is_nan(result.grad_norms, i))
      if (const int64_t step = step_number(result, i); told.count(step) > 0) steps.insert(step);
  return steps;
}

std::set<int64_t> reported_skips(const RunResult& result) {
  std::set<int64_t> steps;
  for (const RunEvent& event : result.events.value_or(std::vector<RunEvent>()))
    if (event.kind == "skipped_update" && event.step.value_or(-1) >= 0) steps.insert(*event.step);
  return steps;
}

// The scale falls after an overflow. Some frameworks print it before the update, others after it, so that the fall may
// be seen one entry before the skip that the log reports: both are one.
void add_falls_of_scale(const RunResult& result, std::set<int64_t>& steps) {
  if (!result.reported || !result.reported->loss_scale) return;
  const std::set<int64_t> reported = steps;
  const std::vector<double>& scale = *result.reported->loss_scale;
  for (size_t i = 0; i + 1 < std::min(scale.size(), result.step_times.size()); ++i) {
    const int64_t step = step_number(result, i);
    const bool is_told = reported.count(step) + reported.count(step_number(result, i + 1)) > 0;
    if (scale[i + 1] < scale[i] && !is_told) steps.insert(step);
  }
}

// Numbers of the steps that are known to have changed no weight.
std::set<int64_t> lost_steps(const RunResult& result) {
  std::set<int64_t> steps = reported_skips(result);
  add_falls_of_scale(result, steps);
  steps.merge(nan_steps(result));
  return steps;
}

// fp16 starts at a scale of 2^32 and halves it at each overflow until the gradients fit; 16 halvings lead to 2^16,
// where trainings run. The skips of this search follow each other from the first step on. bf16 needs no scale.
int64_t last_of_scale_search(const RunResult& result, const std::set<int64_t>& lost) {
  constexpr size_t k_max_halvings = 16;
  if (result.precision == Precision::bf16) return -1;
  size_t length = 0;
  while (length < result.step_times.size() && lost.count(step_number(result, length)) > 0) ++length;
  return length > 0 && length <= k_max_halvings ? step_number(result, length - 1) : -1;
}

int64_t counted_skips(const RunResult& result) {
  int64_t count = result.skipped_updates.value_or(0);
  if (result.event_counts)
    if (const auto found = result.event_counts->find("skipped_update"); found != result.event_counts->end())
      count = std::max(count, found->second);
  return count;
}

int64_t steps_of(const RunResult& result, size_t begin, size_t end) {
  int64_t steps = 0;
  for (size_t i = begin; i < end; ++i) steps += entry_span(result, i);
  return steps;
}

}  // namespace

SkippedUpdates count_skipped_updates(const RunResult& result) {
  const size_t entries = result.step_times.size();
  const size_t warmup = std::min(entries, static_cast<size_t>(std::max<int64_t>(0, result.warmup.steps_excluded)));
  const std::set<int64_t> placed = lost_steps(result);
  const int64_t last_of_warmup = warmup > 0 ? step_number(result, warmup - 1) : -1;
  const int64_t last_of_start = std::max(last_of_warmup, last_of_scale_search(result, placed));
  const auto count_until = [&](int64_t last) {
    return std::count_if(placed.begin(), placed.end(), [&](int64_t step) { return step <= last; });
  };
  SkippedUpdates skipped;
  skipped.nan = std::ssize(nan_steps(result));
  skipped.steps_after_warmup = steps_of(result, warmup, entries);
  skipped.all = std::min(std::max(counted_skips(result), std::ssize(placed)), steps_of(result, 0, entries));
  const int64_t unplaced = std::max<int64_t>(0, skipped.all - std::ssize(placed));
  const int64_t left_in_warmup = std::max<int64_t>(0, steps_of(result, 0, warmup) - count_until(last_of_warmup));
  skipped.after_warmup =
      std::ssize(placed) - count_until(last_of_start) + std::max<int64_t>(0, unplaced - left_in_warmup);
  return skipped;
}

std::optional<std::string> find_idle_optimizer(const RunResult& result) {
  constexpr size_t k_enough = 5;  // one line of a warm-up may print zero
  const std::vector<double>& rates = result.learning_rates;
  if (rates.size() < k_enough || std::any_of(rates.begin(), rates.end(), [](double rate) { return rate != 0; }))
    return std::nullopt;
  return fmt::format("learning rate 0 at each of {} steps", rates.size());
}

}  // namespace tprimat
