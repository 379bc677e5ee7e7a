#include "result/expert_summary.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "result/summary.h"

namespace tprimat {
namespace {

using Series = std::optional<std::vector<double>>;

std::optional<double> mean_without(const RunResult& result, const std::vector<double>& series,
                                   const std::set<int64_t>& labelled) {
  double sum = 0;
  int64_t count = 0;
  for (auto i = static_cast<size_t>(std::max<int64_t>(0, result.warmup.steps_excluded)); i < series.size(); ++i) {
    const bool is_steady = i < result.step_times.size() && is_valid_step_time(result.step_times[i]) &&
                           !labelled.contains(step_number(result, i));
    if (!is_steady || !std::isfinite(series[i])) continue;
    sum += series[i];
    ++count;
  }
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

}  // namespace

std::optional<double> steady_mean(const RunResult& result, const std::vector<double>& series) {
  return mean_without(result, series, labelled_steps(result));
}

void summarise_experts(RunResult& result) {
  if (!result.experts) return;
  ExpertFigures& experts = *result.experts;
  const std::set<int64_t> labelled = labelled_steps(result);
  const auto summarise = [&](std::optional<double>& mean, const Series& series) {
    if (series) mean = mean_without(result, *series, labelled);
  };
  summarise(experts.load, experts.load_values);
  summarise(experts.dropped_share, experts.dropped_values);
  summarise(experts.aux_loss, experts.aux_loss_values);
  summarise(experts.z_loss, experts.z_loss_values);
}

}  // namespace tprimat
