#include "extract/course.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "extract/scan_text.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "stats/descriptive.h"

namespace tprimat::logs {
namespace {

constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();

std::optional<std::vector<double>> optional_series(const Course& course, Figure ExtractedStep::*member) {
  std::vector<double> values = series(course, member);
  return values.empty() ? std::nullopt : std::optional(std::move(values));
}

std::optional<int64_t> sum_of_counters(const Course& course) {
  constexpr double k_max_skipped = 1e12;  // above: a corrupt counter
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

std::optional<int64_t> printed_batch(const ExtractedStep& step) {
  const Figure batch = step.global_batch_size;
  return batch.finite() && *batch >= 1 && *batch < 1e12 ? std::optional(std::llround(*batch)) : std::nullopt;
}

// Steps by the batch that their records print.
std::map<int64_t, int64_t> count_batches(const Course& course) {
  std::map<int64_t, int64_t> counts;
  for (const ExtractedStep* step : course)
    if (const auto batch = printed_batch(*step)) ++counts[*batch];
  return counts;
}

// The first printed one; 0 if there is none.
int64_t first_batch(const Course& course) {
  for (const ExtractedStep* step : course)
    if (const auto batch = printed_batch(*step)) return *batch;
  return 0;
}

// Of two equally frequent ones the later, which a ramp-up ends at.
std::optional<int64_t> usual_batch(const Course& course, const std::map<int64_t, int64_t>& counts) {
  std::optional<int64_t> usual;
  for (const ExtractedStep* step : course)
    if (const auto batch = printed_batch(*step); batch && (!usual || counts.at(*batch) >= counts.at(*usual)))
      usual = batch;
  return usual;
}

struct BatchWitness {
  const char* name;
  double batch;
  double rounding = 0;  // maximum error
};

// The longest stretch of steps at `batch` in one attempt, of those that show the counter of samples. Restarts may reset
// it.
Course longest_stretch(const Course& course, int64_t batch) {
  std::vector<Course> stretches(1);
  for (const ExtractedStep* step : course) {
    Course& last = stretches.back();
    const bool is_same = printed_batch(*step).value_or(batch) == batch;
    if (!last.empty() && (!is_same || last.back()->attempt != step->attempt)) stretches.emplace_back();
    if (is_same && step->samples_seen.finite()) stretches.back().push_back(step);
  }
  return *std::max_element(stretches.begin(), stretches.end(),
                           [](const Course& a, const Course& b) { return a.size() < b.size(); });
}

// Half a unit of the last digit of a counter that may be rounded to three digits.
double rounding_of(double counter) {
  double unit = 1;
  while (counter >= 1000 * unit && std::fmod(counter, 10 * unit) == 0) unit *= 10;
  return unit / 2;
}

// Samples that one step adds to the counter, over half of the stretch, because a rounded counter stands still for many
// steps; the median, because a figure may be damaged.
std::optional<BatchWitness> counted_batch(const Course& course, int64_t batch) {
  constexpr size_t k_enough = 4;
  const Course stretch = longest_stretch(course, batch);
  std::vector<double> each, roundings;
  for (size_t half = stretch.size() / 2, i = half; i < stretch.size() && stretch.size() >= k_enough; ++i) {
    const ExtractedStep &before = *stretch[i - half], &step = *stretch[i];
    const auto steps = static_cast<double>(step.step - before.step);
    const double added = *step.samples_seen - *before.samples_seen;
    if (added <= 0) continue;
    each.push_back(added / steps);
    roundings.push_back((rounding_of(*before.samples_seen) + rounding_of(*step.samples_seen)) / steps);
  }
  if (each.empty()) return std::nullopt;
  return BatchWitness{"counter of samples", median(each), median(roundings)};
}

void record_contradiction(RunResult& result, const BatchWitness& stated, const BatchWitness& effective) {
  result.config_audit.push_back(
      {"global_batch_size", fmt::format("{:.6g}", stated.batch), fmt::format("{:.6g}", effective.batch)});
  add_warning(result, fmt::format("the log contradicts itself: the global batch is {:.6g} according to its {}, but "
                                  "{:.6g} according to its {}, so its rate is not reliable",
                                  stated.batch, stated.name, effective.batch, effective.name));
}

// Whether the step trained on another batch than the run's, or its time is a mean over such steps. `before` may be
// null.
bool has_other_batch(const ExtractedStep& step, const ExtractedStep* before, std::optional<int64_t> batch) {
  const auto printed = printed_batch(step);
  if (!printed || !batch) return false;
  const bool follows_other = before != nullptr && step.mean_of > 1 && printed_batch(*before).value_or(*batch) != *batch;
  return *printed != *batch || follows_other;
}

// The second step's time is the mean of both if the clock was not restarted.
bool is_mean_with_first(const ExtractedStep& step, const ExtractedStep* before) {
  return before != nullptr && step.mean_of == 2 && step.step - before->step == 1;
}

std::optional<StepLabel> label_of(const ExtractedStep& step, const ExtractedStep* before,
                                  std::optional<int64_t> batch) {
  if (has_other_batch(step, before, batch)) return StepLabel::other_batch;
  if (step.with_evaluation) return StepLabel::evaluation;
  if (step.with_checkpoint) return StepLabel::checkpoint;
  if (before != nullptr && before->attempt != step.attempt) return StepLabel::restart;
  if (is_mean_with_first(step, before)) return StepLabel::mean_of_two;
  return std::nullopt;
}

constexpr int64_t k_last_record = int64_t{1} << 50;  // beyond any training: a broken log must not overflow

StepRecord to_record(const ExtractedStep& step, int64_t first) {
  StepRecord record;
  record.step = step.step - first + 1;
  record.time_seconds = step.time_seconds.value_or(k_nan);
  record.loss = step.loss.to_optional();
  record.learning_rate = step.learning_rate.to_optional();
  record.grad_norm = step.grad_norm.to_optional();
  record.memory_allocated_gb = step.memory_allocated_gb.to_optional();
  record.memory_reserved_gb = step.memory_reserved_gb.to_optional();
  record.loss_scale = step.loss_scale.to_optional();
  record.expert_load = step.expert_load.to_optional();
  record.dropped_share = step.dropped_share.to_optional();
  if (step.tokens.finite()) record.tokens = static_cast<int64_t>(*step.tokens);
  if (step.skipped) record.skipped = true;
  return record;
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

std::vector<double> series(const Course& course, Figure ExtractedStep::*member) {
  std::vector<double> values;
  const auto has_it = [member](const ExtractedStep* step) { return (step->*member).known(); };
  if (std::ranges::none_of(course, has_it)) return values;
  values.reserve(course.size());
  for (const ExtractedStep* step : course) values.push_back((step->*member).value_or(k_nan));
  return values;
}

ReportedFigures reported_figures(const Course& course) {
  using R = ReportedFigures;
  using S = ExtractedStep;
  constexpr std::pair<std::optional<std::vector<double>> R::*, Figure S::*> k_members[] = {
      {&R::tflops_per_gpu, &S::tflops_per_gpu},
      {&R::mfu, &S::mfu},
      {&R::tokens_per_second, &S::tokens_per_second},
      {&R::tokens_per_second_per_gpu, &S::tokens_per_second_per_gpu},
      {&R::samples_per_second, &S::samples_per_second},
      {&R::loss_scale, &S::loss_scale},
      {&R::power_watts_per_gpu, &S::power_watts_per_gpu},
      {&R::energy_joules_per_gpu, &S::energy_joules_per_gpu},
      {&R::unix_time, &S::unix_time}};
  std::array<bool, std::size(k_members)> known{};
  for (const ExtractedStep* step : course)  // once, as a long log does not fit into the caches
    for (size_t i = 0; i < known.size(); ++i) known[i] |= (step->*k_members[i].second).known();
  ReportedFigures reported;
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i]) reported.*k_members[i].first = series(course, k_members[i].second);
  return reported;
}

void fill_series(RunResult& result, const Course& course) {
  result.step_times = series(course, &ExtractedStep::time_seconds);
  if (result.step_times.empty()) result.step_times.assign(course.size(), k_nan);
  result.loss_values = series(course, &ExtractedStep::loss);
  result.learning_rates = series(course, &ExtractedStep::learning_rate);
  result.grad_norms = series(course, &ExtractedStep::grad_norm);
  result.memory_values = series(course, &ExtractedStep::memory_allocated_gb);
  result.reported = reported_figures(course);
}

void number_steps(RunResult& result, const Course& course, int64_t counts_from) {
  StepSeries steps;
  steps.counts_from = counts_from;
  std::vector<int64_t> numbers, mean_of;
  for (size_t i = 0; i < course.size(); ++i) {
    const ExtractedStep* before = i > 0 ? course[i - 1] : nullptr;
    numbers.push_back(course[i]->step);
    mean_of.push_back(is_mean_with_first(*course[i], before) ? 1 : course[i]->mean_of);
    const auto label = label_of(*course[i], before, result.training_config.global_batch_size);
    if (label) steps.labelled.push_back({course[i]->step, *label});
  }
  if (std::any_of(mean_of.begin(), mean_of.end(), [](int64_t n) { return n != 1; })) steps.mean_of = mean_of;
  for (size_t i = 0; i < numbers.size() && !steps.numbers; ++i)
    if (numbers[i] != static_cast<int64_t>(i) + 1) steps.numbers = numbers;
  steps.time_low = optional_series(course, &ExtractedStep::time_low);
  steps.time_high = optional_series(course, &ExtractedStep::time_high);
  result.steps = std::move(steps);
}

void settle_batch(RunResult& result, StatedFacts& stated, const Course& course) {
  LoggedFacts& facts = stated.facts;
  const auto counts = count_batches(course);
  const auto usual = usual_batch(course, counts);
  const auto told = facts.global_batch_size;
  if (usual) facts.global_batch_size = usual;
  if (counts.size() > 1)
    add_warning(result, fmt::format("the global batch size changes from {} to {}: the rate covers the {} steps at {}; "
                                    "the others count as warm-up",
                                    first_batch(course), first_batch({course.rbegin(), course.rend()}),
                                    counts.at(*usual), *usual));
  else if (usual && told && *told != *usual && !names_ramp_up(stated.settings))
    record_contradiction(result, {"arguments", static_cast<double>(*told)}, {"records", static_cast<double>(*usual)});
  if (!facts.global_batch_size) return;
  constexpr double k_tolerance = 0.01;  // step numbers may be off by one or two
  const auto counted = counted_batch(course, *facts.global_batch_size);
  const auto batch = static_cast<double>(*facts.global_batch_size);
  if (counted && std::abs(counted->batch - batch) > k_tolerance * batch + counted->rounding)
    record_contradiction(result, {usual ? "records" : "arguments", batch}, *counted);
}

std::vector<StepRecord> make_step_records(const ReadLog& read) {
  const int64_t first = read.dialect != nullptr ? read.dialect->counts_from : 1;
  std::vector<StepRecord> records;
  for (const ExtractedStep& step : read.log.steps)
    if (step.step <= k_last_record) records.push_back(to_record(step, first));
  return records;
}

}  // namespace tprimat::logs
