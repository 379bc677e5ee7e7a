#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare/contender.h"
#include "result/active_count.h"
#include "result/gpu_cores.h"
#include "result/summary.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

using Text = std::optional<std::string>;

Text number_text(const std::optional<int64_t>& value) { return value ? Text(fmt::format("{}", *value)) : std::nullopt; }

Text known_text(std::string text) { return text.empty() ? std::nullopt : Text(std::move(text)); }

Text describe_gpu_cores(const RunResult& run) {
  const auto cores = find_gpu_cores(run);
  return cores ? Text(cores->text()) : std::nullopt;
}

Text describe_steps(const RunResult& run) {
  const auto asked = run.training_config.max_steps;
  if (run.step_times.empty()) return number_text(asked);
  std::string text = fmt::format("{}", steps_reached(run));
  if (asked && *asked != steps_reached(run)) text += fmt::format(" of {}", *asked);
  return text;
}

}  // namespace

std::string format_estimate(const Metric& metric, const std::optional<Estimate>& estimate) {
  if (!estimate) return "-";
  std::string text = format_figure(metric, estimate->value);
  if (estimate->low && estimate->high)
    text += fmt::format(" [{} to {}]", format_figure(metric, *estimate->low), format_figure(metric, *estimate->high));
  return text;
}

std::vector<const Metric*> present_metrics(const ModelGroup& group) {
  std::vector<const Metric*> present;
  for (const Metric& metric : metrics())
    if (std::ranges::any_of(group.contenders, [&](const Contender& c) { return read_figure(c, metric).has_value(); }))
      present.push_back(&metric);
  return present;
}

std::vector<RunFact> list_facts(const Contender& contender) {
  const RunResult& run = contender.first();
  const TrainingConfig& training = run.training_config;
  return {{"platform", run.platform ? Text(display_name(*run.platform)) : std::nullopt},
          {"framework", run.framework ? Text(display_name(*run.framework)) : std::nullopt},
          {"device", describe_device(run)},
          {"GPU cores", describe_gpu_cores(run)},
          {"precision", run.precision ? Text(enum_name(*run.precision)) : std::nullopt},
          {"strategy", known_text(run.parallelism_config.strategy_name.value_or(""))},
          {"layout", known_text(describe_layout(run))},
          {"GBS", number_text(training.global_batch_size)},
          {"SL", number_text(training.sequence_length)},
          {"steps", describe_steps(run)},
          {"warm-up", fmt::format("{}{}", run.warmup.steps_excluded, run.warmup.steady ? "" : ", never steady")},
          {"runs", fmt::format("{}", contender.runs.size())},
          {"status", std::string(enum_name(run.status))}};
}

std::vector<RunFact> list_target_facts(const Contender& contender) {
  const auto& time = contender.first().time_to_train;
  if (!time) return {};
  const auto quality = [](const std::optional<double>& value) {
    return value ? Text(format_significant(*value, 4)) : std::nullopt;
  };
  return {{"benchmark", time->benchmark},
          {"division", time->division},
          {"target quality", quality(time->target_quality)},
          {"target from", time->target_source},
          {"reached quality", quality(time->reached_quality)},
          {"samples trained", number_text(time->samples)},
          {"run_stop", time->status}};
}

std::vector<RunFact> list_expert_facts(const Contender& contender) {
  const RunResult& run = contender.first();
  const auto& shape = run.model_info.shape;
  if (!run.experts && (!shape || !shape->experts)) return {};
  const ExpertFigures known = run.experts.value_or(ExpertFigures());
  Text experts, active;
  if (shape && shape->experts) {
    experts = fmt::format("{} of {}", shape->experts->per_token, shape->experts->count);
    if (shape->experts->shared_ffn_hidden_size > 0) *experts += " and shared ones";
    if (const auto count = active_parameters_of(*shape)) active = format_count(*count);
  }
  return {{"experts per token", experts},
          {"active parameters", active},
          {"routing", known.routing ? Text(enum_name(*known.routing)) : std::nullopt},
          {"EP", number_text(run.parallelism_config.expert_model_parallel_size)},
          {"ETP", number_text(run.parallelism_config.expert_tensor_parallel_size)},
          {"dispatcher", known.dispatcher ? Text(enum_name(*known.dispatcher)) : std::nullopt}};
}

std::optional<planner::PublishedStanding> find_standing(const Contender& contender) {
  const auto rate = read_figure(contender, *find_metric("tokens_per_second_per_gpu"));
  return rate ? planner::standing_of(contender.first(), rate->value) : std::nullopt;
}

std::string pair_name(const ModelGroup& group, const Pair& pair) {
  return group.contenders[pair.subject].letter + " / " + group.contenders[pair.reference].letter;
}

std::string count_verdicts(const ModelGroup& group) {
  const auto count = [&](auto&& matches) { return std::ranges::count_if(group.pairs, matches); };
  const auto with = [&](Verdict verdict) {
    return count([&](const Pair& pair) { return pair.comparable && pair.verdict == verdict; });
  };
  return fmt::format("{} pairs: {} decided, {} the same, {} inconclusive, {} not comparable", group.pairs.size(),
                     with(Verdict::faster) + with(Verdict::slower), with(Verdict::same), with(Verdict::inconclusive),
                     count([](const Pair& pair) { return !pair.comparable; }));
}

std::vector<size_t> find_extremes(std::span<const double> values, size_t begin, size_t end, double limit) {
  std::optional<size_t> low, high;
  for (size_t at = begin; at < end; ++at) {
    if (!(std::fabs(values[at]) < limit)) continue;
    if (!low || values[at] < values[*low]) low = at;
    if (!high || values[at] > values[*high]) high = at;
  }
  if (!low) return {};
  if (low == high) return {*low};
  return {std::min(*low, *high), std::max(*low, *high)};
}

bool shows_verdict(const Comparison& comparison, const Pair& pair) { return pair.comparable || comparison.force; }

}  // namespace tprimat::results
