#include "extract/result_batch.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "extract/scan_text.h"
#include "result/summary.h"
#include "stats/descriptive.h"

namespace tprimat {
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

// Of two that are as frequent the later one, which a ramp-up leads to.
std::optional<int64_t> usual_batch(const Course& course, const std::map<int64_t, int64_t>& counts) {
  std::optional<int64_t> usual;
  for (const ExtractedStep* step : course)
    if (const auto batch = printed_batch(*step); batch && (!usual || counts.at(*batch) >= counts.at(*usual)))
      usual = batch;
  return usual;
}

bool names_ramp_up(const std::map<std::string, std::string>& settings) {
  for (const char* key : {"rampup_batch_size", "model.rampup_batch_size", "rampup-batch-size"})
    if (const auto found = settings.find(key); found != settings.end())
      return found->second != "None" && found->second != "null" && !found->second.empty();
  return false;
}

// Samples that one step adds to the counter, of the steps at `batch`. Restarts may count anew.
std::optional<double> counted_batch(const Course& course, int64_t batch) {
  constexpr size_t k_enough = 3;
  std::vector<double> each;
  for (size_t i = 1; i < course.size(); ++i) {
    const ExtractedStep &before = *course[i - 1], &step = *course[i];
    const bool is_same = printed_batch(before).value_or(batch) == batch && printed_batch(step).value_or(batch) == batch;
    if (!is_same || before.attempt != step.attempt || !before.samples_seen.finite() || !step.samples_seen.finite())
      continue;
    const double added = *step.samples_seen - *before.samples_seen;
    if (added > 0) each.push_back(added / static_cast<double>(step.step - before.step));
  }
  return each.size() < k_enough ? std::nullopt : std::optional(median(each));
}

struct BatchWitness {
  const char* name;
  double batch;
};

void record_contradiction(RunResult& result, const BatchWitness& stated, const BatchWitness& effective) {
  result.config_audit.push_back(
      {"global_batch_size", fmt::format("{:.6g}", stated.batch), fmt::format("{:.6g}", effective.batch)});
  add_warning(result, fmt::format("the log contradicts itself: the global batch is {:.6g} by its {}, and {:.6g} by its "
                                  "{}, so its rate proves nothing",
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
                                    *printed_batch(*course.front()), *printed_batch(*course.back()), counts.at(*usual),
                                    *usual));
  else if (usual && told && *told != *usual && !names_ramp_up(stated.settings))
    record_contradiction(result, {"arguments", static_cast<double>(*told)}, {"records", static_cast<double>(*usual)});
  if (!facts.global_batch_size) return;
  constexpr double k_rounding = 0.01;  // counters may be printed with three digits
  const auto counted = counted_batch(course, *facts.global_batch_size);
  const auto batch = static_cast<double>(*facts.global_batch_size);
  if (counted && std::abs(*counted - batch) > k_rounding * batch)
    record_contradiction(result, {usual ? "records" : "arguments", batch}, {"counter of samples", *counted});
}

}  // namespace tprimat
