#include "extract/result_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "extract/scan_text.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "stats/descriptive.h"

namespace tprimat::logs {
namespace {

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

// The first that is printed; 0 where none is.
int64_t first_batch(const Course& course) {
  for (const ExtractedStep* step : course)
    if (const auto batch = printed_batch(*step)) return *batch;
  return 0;
}

// Of two that are as frequent the later one, which a ramp-up leads to.
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
  double rounding = 0;  // the truth is at most this far away
};

// The longest stretch of steps at `batch` in one attempt, of those that show the counter of samples. Restarts may count
// anew.
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
  add_warning(result, fmt::format("the log contradicts itself: the global batch is {:.6g} by its {}, and {:.6g} by its "
                                  "{}, so its rate is no evidence",
                                  stated.batch, stated.name, effective.batch, effective.name));
}

}  // namespace

bool has_other_batch(const ExtractedStep& step, const ExtractedStep* before, std::optional<int64_t> batch) {
  const auto printed = printed_batch(step);
  if (!printed || !batch) return false;
  const bool follows_other = before != nullptr && step.mean_of > 1 && printed_batch(*before).value_or(*batch) != *batch;
  return *printed != *batch || follows_other;
}

void settle_batch(RunResult& result, StatedFacts& stated, const Course& course) {
  LoggedFacts& facts = stated.facts;
  const auto counts = count_batches(course);
  const auto usual = usual_batch(course, counts);
  const auto told = facts.global_batch_size;
  if (usual) facts.global_batch_size = usual;
  if (counts.size() > 1)
    add_warning(result, fmt::format("the global batch size changes from {} to {}: the rate is that of the {} steps at "
                                    "{}, and the others count as warm-up",
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

}  // namespace tprimat::logs
