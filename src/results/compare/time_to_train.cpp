#include "compare/time_to_train.h"

#include <fmt/format.h>

#include <algorithm>

#include "compare/contender.h"
#include "compare/differences.h"
#include "compare/verdict.h"
#include "result/quality_target.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

using Facts = std::optional<TimeToTrain>;

template <class T>
std::string word_or(const std::optional<T>& value, const char* other) {
  return value ? words(*value) : other;
}

// "0.925", "9.5 (the closed division demands 0.925)"
std::string describe_target(const TimeToTrain& time) {
  const auto demanded = demanded_target(time);
  const std::string text = word_or(time.target_quality, "unknown");
  return demanded ? fmt::format("{} (the closed division demands {})", text, words(*demanded)) : text;
}

void add_targets(Evidences& evidence, const TimeToTrain& a, const TimeToTrain& b) {
  const bool is_known = a.target_quality && b.target_quality;
  const bool is_demanded = !demanded_target(a) && !demanded_target(b);
  if (!is_known || !is_demanded || !is_equal(*a.target_quality, *b.target_quality))
    evidence.push_back({"target quality", describe_target(a), describe_target(b)});
}

// "0.924", "1.5 (misses the target 0.925)"
std::string describe_reached(const TimeToTrain& time) {
  if (!time.reached_quality) return "unknown";
  const auto reaches = reaches_target(time);
  if (!reaches) return words(*time.reached_quality) + " (unknown whether a higher or a lower one is better)";
  return *reaches ? words(*time.reached_quality)
                  : fmt::format("{} (misses the target {})", words(*time.reached_quality), words(*time.target_quality));
}

// A run that states success may still have missed its target.
void add_reached(Evidences& evidence, const TimeToTrain& a, const TimeToTrain& b) {
  if (!a.target_quality || !b.target_quality) return;
  if (reaches_target(a) != true || reaches_target(b) != true)
    evidence.push_back({"reached quality", describe_reached(a), describe_reached(b)});
}

// "9 min 23 s", "9 min 23 s in the mean of 5 runs"
std::string describe_time(const Contender& side, double seconds) {
  const std::string text = format_duration(seconds);
  return side.runs.size() == 1 ? text : fmt::format("{} in the mean of {} runs", text, side.runs.size());
}

std::string describe_interval(const Estimate& ratio) {
  if (!ratio.low || !ratio.high) return "no interval, as a side has one run";
  return fmt::format("95 % interval {} to {}", format_significant(*ratio.low, 4), format_significant(*ratio.high, 4));
}

// "llama2_70b_lora, target quality 0.925, 3072 against 2688 samples, 8 against 16 devices"
std::string describe_work(const RunResult& leader, const RunResult& other) {
  const TimeToTrain &x = *leader.time_to_train, &y = *other.time_to_train;
  std::string text =
      fmt::format("{}, target quality {:g}", printable(x.benchmark.value_or("benchmark not named")), *x.target_quality);
  if (x.samples && y.samples) text += fmt::format(", {} against {} samples", *x.samples, *y.samples);
  const auto mine = device_count(leader), theirs = device_count(other);
  if (mine && theirs) text += fmt::format(", {} against {} devices", *mine, *theirs);
  return text;
}

const Metric& metric() { return *find_metric("time_to_train"); }

// Of every run of one side with every run of the other, the first that differs.
Evidences find_difference(const Contender& reference, const Contender& subject) {
  for (const LoadedRun& a : reference.runs)
    for (const LoadedRun& b : subject.runs)
      if (Evidences evidence = find_other_rules(a.result, b.result); !evidence.empty()) return evidence;
  return {};
}

}  // namespace

bool has_time_to_train(const RunResult& run) { return run.time_to_train && run.time_to_train->counts(); }

bool stands_for_rate(const RunResult& run) { return run.step_times.empty() && has_time_to_train(run); }

Evidences find_other_rules(const RunResult& reference, const RunResult& subject) {
  Evidences evidence;
  if (!reference.time_to_train || !subject.time_to_train) return evidence;
  const Facts &a = reference.time_to_train, &b = subject.time_to_train;
  add(evidence, "benchmark", a->benchmark, b->benchmark);
  add(evidence, "division", a->division, b->division);
  add_targets(evidence, *a, *b);
  add(evidence, "samples of an evaluation", a->eval_samples, b->eval_samples);
  if (a->is_success() && b->is_success())
    add_reached(evidence, *a, *b);
  else
    evidence.push_back({"status", word_or(a->status, "no run_stop"), word_or(b->status, "no run_stop")});
  return evidence;
}

std::optional<Proof> check_nothing_common(const RunResult& reference, const RunResult& subject) {
  if (!stands_for_rate(reference) && !stands_for_rate(subject)) return std::nullopt;  // rate_missing tells
  const bool has_times = has_time_to_train(reference) && has_time_to_train(subject);
  if (has_times && find_other_rules(reference, subject).empty()) return std::nullopt;
  return Proof(has_times ? "the log has no steps, and the times to train follow different rules"
                         : "one side has only a time to train, the other has none");
}

std::optional<TimeComparison> compare_times(const Contender& reference, const Contender& subject) {
  if (!reference.first().time_to_train || !subject.first().time_to_train) return std::nullopt;
  if (const Evidences evidence = find_difference(reference, subject); !evidence.empty())
    return TimeComparison{{}, fmt::format("the times to train are not comparable: {}", Proof(evidence).figures)};
  const auto before = read_figure(reference, metric()), after = read_figure(subject, metric());
  if (!before || !after) return TimeComparison{{}, "the times to train are not known on both sides"};
  const auto ratio = estimate_ratio_by_figures(*after, *before);  // of times: above 1 the subject needs less
  if (!ratio) return std::nullopt;
  const bool subject_leads = ratio->value >= 1;
  const Contender &leader = subject_leads ? subject : reference, &other = subject_leads ? reference : subject;
  const Estimate lead = subject_leads ? *ratio : *estimate_ratio_by_figures(*before, *after);
  const double fast = std::min(before->value, after->value), slow = std::max(before->value, after->value);
  return TimeComparison{ratio, fmt::format("{} trains to the target in {}, {} in {}: {}x sooner ({}; {})", leader.label,
                                           describe_time(leader, fast), other.label, describe_time(other, slow),
                                           format_significant(lead.value, 4), describe_interval(lead),
                                           describe_work(leader.first(), other.first()))};
}

}  // namespace tprimat::results
