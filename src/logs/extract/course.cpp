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

std::optional<std::vector<double>> if_any(std::vector<double> values) {
  return values.empty() ? std::nullopt : std::optional(std::move(values));
}

// Appends the figures of the steps from `begin` to `end`. Nothing happens until one is known; the steps before it then
// get a NaN.
void append_figures(const Course& course, size_t begin, size_t end, FigureMember member, std::vector<double>& values) {
  const auto is_known = [member](const ExtractedStep* step) { return (step->*member).known(); };
  const auto first = course.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = course.begin() + static_cast<std::ptrdiff_t>(end);
  if (values.empty()) {
    if (std::none_of(first, last, is_known)) return;
    values.reserve(course.size());
    values.resize(begin, k_nan);
  }
  for (auto step = first; step != last; ++step) values.push_back(((*step)->*member).value_or(k_nan));
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
  auto last = counts.end();  // most steps have the batch of the step before
  for (const ExtractedStep* step : course) {
    const auto batch = printed_batch(*step);
    if (!batch) continue;
    if (last == counts.end() || last->first != *batch) last = counts.try_emplace(*batch, 0).first;
    ++last->second;
  }
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
  if (counts.size() < 2) return counts.empty() ? std::nullopt : std::optional(counts.begin()->first);
  std::optional<int64_t> usual;
  for (const ExtractedStep* step : course)
    if (const auto batch = printed_batch(*step);
        batch && batch != usual && (!usual || counts.at(*batch) >= counts.at(*usual)))
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
  return std::move(*std::max_element(stretches.begin(), stretches.end(),
                                     [](const Course& a, const Course& b) { return a.size() < b.size(); }));
}

// Half a unit of the last digit of a counter that may be rounded to three digits.
double rounding_of(double counter) {
  constexpr double k_max_counter = 9e18;  // that int64_t holds
  if (std::floor(counter) != counter || counter >= k_max_counter) return 0.5;
  const auto whole = static_cast<int64_t>(counter);
  int64_t unit = 1;
  while (whole / 1000 >= unit && whole % (10 * unit) == 0) unit *= 10;
  return static_cast<double>(unit) / 2;
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

// The framework's own figures, and where a result has them.
constexpr FigureMember k_reported_members[] = {&ExtractedStep::tflops_per_gpu,
                                               &ExtractedStep::mfu,
                                               &ExtractedStep::tokens_per_second,
                                               &ExtractedStep::tokens_per_second_per_gpu,
                                               &ExtractedStep::samples_per_second,
                                               &ExtractedStep::loss_scale,
                                               &ExtractedStep::power_watts_per_gpu,
                                               &ExtractedStep::energy_joules_per_gpu,
                                               &ExtractedStep::unix_time};
constexpr std::optional<std::vector<double>> ReportedFigures::*k_reported_fields[] = {
    &ReportedFigures::tflops_per_gpu,
    &ReportedFigures::mfu,
    &ReportedFigures::tokens_per_second,
    &ReportedFigures::tokens_per_second_per_gpu,
    &ReportedFigures::samples_per_second,
    &ReportedFigures::loss_scale,
    &ReportedFigures::power_watts_per_gpu,
    &ReportedFigures::energy_joules_per_gpu,
    &ReportedFigures::unix_time};

ReportedFigures name_reported(std::vector<std::vector<double>> all) {
  ReportedFigures reported;
  for (size_t i = 0; i < all.size(); ++i) reported.*k_reported_fields[i] = if_any(std::move(all[i]));
  return reported;
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
  course.reserve(log.steps.size());
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

std::vector<std::vector<double>> all_series(const Course& course, std::span<const FigureMember> members) {
  constexpr size_t k_together = 512;  // steps that stay in the cache: a long log does not fit
  std::vector<std::vector<double>> all(members.size());
  for (size_t begin = 0; begin < course.size(); begin += k_together)
    for (size_t i = 0; i < members.size(); ++i)
      append_figures(course, begin, std::min(begin + k_together, course.size()), members[i], all[i]);
  return all;
}

ReportedFigures reported_figures(const Course& course) { return name_reported(all_series(course, k_reported_members)); }

void fill_series(RunResult& result, const Course& course) {
  using S = ExtractedStep;
  std::vector<FigureMember> members = {&S::time_seconds, &S::loss, &S::learning_rate, &S::grad_norm,
                                       &S::memory_allocated_gb};
  const auto own = static_cast<std::ptrdiff_t>(members.size());
  members.insert(members.end(), std::begin(k_reported_members), std::end(k_reported_members));
  std::vector<std::vector<double>> all = all_series(course, members);
  result.step_times = std::move(all[0]);
  if (result.step_times.empty()) result.step_times.assign(course.size(), k_nan);
  result.loss_values = std::move(all[1]);
  result.learning_rates = std::move(all[2]);
  result.grad_norms = std::move(all[3]);
  result.memory_values = std::move(all[4]);
  result.reported = name_reported({std::make_move_iterator(all.begin() + own), std::make_move_iterator(all.end())});
}

void number_steps(RunResult& result, const Course& course, int64_t counts_from) {
  StepSeries steps;
  steps.counts_from = counts_from;
  std::vector<int64_t> numbers, mean_of;
  numbers.reserve(course.size()), mean_of.reserve(course.size());
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
  std::vector<std::vector<double>> bounds =
      all_series(course, std::array{&ExtractedStep::time_low, &ExtractedStep::time_high});
  steps.time_low = if_any(std::move(bounds[0]));
  steps.time_high = if_any(std::move(bounds[1]));
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
